# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A launch by the name of an image that the catalogue knows, and the ledger does not yet."""

from __future__ import annotations

import hashlib
import pathlib
import shutil
import subprocess

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading
from tests.unit.playbooks.answering import Hosts

LAUNCH = ("-e", "server=web flavor=m1.nano image=small-1 novalite_facts_max_age=0")


@pytest.fixture
def hosts(seeded: pathlib.Path, tmp_path: pathlib.Path) -> Hosts:
    """Two hosts, and a controller whose catalogue knows an image in a directory."""
    hosts = Hosts(tmp_path)
    shutil.copytree(seeded, hosts.home, dirs_exist_ok=True)
    disk = tmp_path / "mirror/small-1.qcow2"
    disk.parent.mkdir()
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(disk), "8M"], check=True)
    (disk.parent / "SUMS").write_text(f"{hashlib.sha512(disk.read_bytes()).hexdigest()}  small-1.qcow2\n")
    (hosts.home / "images.yml").write_text(
        f"small: {{base: {disk.parent}, checksums: SUMS, login: me, images: {{small-1: {{file: small-1.qcow2}}}}}}\n"
    )
    return hosts


def images(hosts: Hosts) -> list[tuple[str, str, dict[str, str]]]:
    engine, c = open_ledger(str(hosts.home)), tables.image.c
    with reading(engine) as connection:
        rows = connection.execute(sa.select(c.name, c.source, c.properties).where(c.name == "small-1")).all()
    engine.dispose()
    return [(row.name, row.source, row.properties) for row in rows]


def test_the_first_launch_fetches_the_image(hosts: Hosts) -> None:
    checked = hosts.play("launch.yml", *LAUNCH, "--check")
    assert checked.returncode != 0 and "run without --check, which fetches it" in checked.stdout
    assert images(hosts) == [] and not (hosts.home / "catalog").exists()

    done = hosts.play("launch.yml", *LAUNCH)
    assert done.returncode == 0, done.stdout + done.stderr
    ((_name, source, properties),) = images(hosts)
    assert pathlib.Path(source).parent == hosts.home / "catalog" and pathlib.Path(source).exists()
    assert properties["os_admin_user"] == "me"

    shutil.rmtree(hosts.home.parent / "mirror")  # it is asked nothing more
    again = hosts.play("launch.yml", *LAUNCH)
    assert again.returncode == 0, again.stdout + again.stderr


def test_a_checksum_that_is_wrong_ends_the_launch(hosts: Hosts) -> None:
    sums = hosts.home.parent / "mirror/SUMS"
    sums.write_text(f"{'1' * 128}  small-1.qcow2\n")
    done = hosts.play("launch.yml", *LAUNCH)
    assert done.returncode != 0 and "image 'small-1' is refused" in done.stdout
    assert images(hosts) == [] and [path.suffix for path in (hosts.home / "catalog").iterdir()] == [".lock"]


def test_a_name_that_nobody_knows_is_said_as_before(hosts: Hosts) -> None:
    done = hosts.play("launch.yml", "-e", "server=web flavor=m1.nano image=smal")
    assert done.returncode != 0 and "unknown image 'smal'" in done.stdout
