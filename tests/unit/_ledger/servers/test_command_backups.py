# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands `novalite backup ...`."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils import _secret_file
from tests.support.cloud import Cloud
from tests.unit._ledger.servers.test_command import active, called, insert_backup, novalite

__all__ = ["called", "novalite"]  # fixtures


@pytest.fixture(autouse=True)
def on_sqlite(cloud: Cloud) -> None:
    if cloud.engine.dialect.name != "sqlite":
        pytest.skip("a home holds a file")


def test_backups_are_listed_and_shown(cloud: Cloud, novalite: t.Callable[..., str]) -> None:
    backup = insert_backup(cloud, active(cloud, "web"))
    (listed,) = json.loads(novalite("backup", "list", "-o", "json"))
    assert (listed["id"], listed["project"]) == (backup, "demo")
    head, row = novalite("backup", "list").splitlines()
    assert head.split()[:5] == ["SERVER", "NAME", "STATUS", "KIND", "VERIFIED"] and "whole" in row.split()
    for name in ("friday", backup):
        assert json.loads(novalite("backup", "show", name, "-o", "json")) == listed
    assert "friday" in novalite("backup", "show", "friday")
    assert "no backup has the name or id 'monday'" in novalite("backup", "show", "monday", code=1)


@pytest.mark.parametrize(
    ("words", "playbook", "said"),
    [
        (["create", "web"], "backup", {}),
        (["create", "web", "-b", "friday", "--full"], "backup", {"backup": "friday", "full_backup": True}),
        (["verify", "web"], "backup_verify", {}),
        (["restore", "web", "-b", "friday"], "backup_restore", {"backup": "friday"}),
        (["delete", "web", "-b", "friday"], "backup_delete", {"backup": "friday"}),
    ],
)
def test_what_is_done_is_its_playbook(
    cloud: Cloud,
    called: t.Callable[..., dict[str, t.Any]],
    tmp_path: pathlib.Path,
    words: list[str],
    playbook: str,
    said: dict[str, t.Any],
) -> None:
    active(cloud, "web")
    argv = called("--home", str(tmp_path), "backup", *words)["argv"]
    assert f"novalite.cloud.{playbook}" in argv
    assert json.loads(argv[argv.index("-e") + 1]) == {**{"servers": [{"name": "web"}], "project": "demo"}, **said}


def test_a_disk_of_a_backup_becomes_a_volume_by_its_playbook(
    called: t.Callable[..., dict[str, t.Any]], tmp_path: pathlib.Path
) -> None:
    argv = called("--home", str(tmp_path), "backup", "restore-volume", "friday", "vdb", "-n", "copy")["argv"]
    assert "novalite.cloud.backup_restore_volume" in argv
    variables = json.loads(argv[argv.index("-e") + 1])
    assert variables == {"backup": "friday", "backup_disk": "vdb", "volume": "copy"}


def test_the_key_is_exported(novalite: t.Callable[..., str], tmp_path: pathlib.Path) -> None:
    assert "the first backup makes it" in novalite("backup", "key", code=1)
    secret = _secret_file.ensure_secret(str(tmp_path / _secret_file.BACKUP))
    assert novalite("backup", "key") == f"{secret.hex()}\n"
