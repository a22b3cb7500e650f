# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Passwords, files and user data of a stack's servers: the servers get them, and no screen shows them."""

from __future__ import annotations

import base64
import pathlib
import shutil

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading
from tests.unit.playbooks.answering import Hosts

SECRETS = {"admin_password": "sesame-of-the-owner", "content": "sesame-in-a-file", "user_data": "sesame-in-user-data"}
STACK = f"""
name: shop
servers:
  - name: web
    flavor: m1.nano
    image: tiny
    admin_password: {SECRETS["admin_password"]}
    user_data: {SECRETS["user_data"]}
    files: [{{path: /etc/key, content: {SECRETS["content"]}}}]
"""


@pytest.mark.parametrize("verbosity", ["-v", "-vvvv"])
def test_no_screen_shows_what_is_secret(seeded: pathlib.Path, tmp_path: pathlib.Path, verbosity: str) -> None:
    hosts = Hosts(tmp_path)
    shutil.copytree(seeded, hosts.home, dirs_exist_ok=True)
    (hosts.elsewhere / "shop.yml").write_text(STACK)
    words = ("stack.yml", "-e", "stack=shop.yml", "--diff", verbosity)
    runs = [hosts.play(*words, "--check"), hosts.play(*words), hosts.play(*words)]
    (hosts.elsewhere / "shop.yml").write_text(STACK.replace("sesame", "sesame-other"))
    runs += [hosts.play(*words, "--check"), hosts.play(*words, "-e", "replace=true")]
    for done in runs:
        assert done.returncode == 0, done.stdout + done.stderr
        assert not [line for line in (done.stdout + done.stderr).splitlines() if "sesame" in line]
    engine = open_ledger(str(hosts.home))
    with reading(engine) as connection:
        query = sa.select(tables.instance.c.user_data).where(tables.instance.c.deleted == 0)
        [recorded] = connection.scalars(query)
    engine.dispose()
    assert base64.b64decode(recorded).decode() == SECRETS["user_data"].replace("sesame", "sesame-other")
    assert hosts.servers()[-1][:2] == ("web", "active")
