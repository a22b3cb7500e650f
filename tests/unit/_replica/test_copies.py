# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies on a second host: whatever is cut off, the newest complete one is there, byte for byte."""

from __future__ import annotations

import os
import pathlib
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._backup.manifest import CRASH, FULL, Manifest, SavedDisk
from ansible_collections.novalite.cloud.plugins.module_utils._backup.writing import UNCHANGED
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from ansible_collections.novalite.cloud.plugins.module_utils._replica.copies import Copy, Place
from tests.support.patience import GENEROUS
from tests.unit._snapshots.test_disks_at_one_moment import MIB, ONE, TWO, UUID, Off, Server

REPOSITORY = pathlib.Path(__file__).parents[3]
SEEDS = range(8)  # of which some are cut off in each step
OFF: t.Any = Off()


def play(seed: int, path: pathlib.Path) -> str:
    """Return what a sequence of copies came to."""
    done = subprocess.run(
        ["/usr/bin/python3", str(pathlib.Path(__file__).with_name("cut_off.py")), str(seed), str(path)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "collections")},
        capture_output=True,
        text=True,
        timeout=GENEROUS,
        check=False,
    )
    return done.stdout.strip() or done.stderr


@pytest.mark.parametrize("seed", SEEDS)
def test_the_newest_complete_copy_is_there_wherever_one_was_cut_off(seed: int, tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o711)
    assert play(seed, tmp_path) == "sound"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 160))
def test_the_newest_complete_copy_is_there_by_many_seeds(seed: int, tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o711)
    assert play(seed, tmp_path) == "sound"


def copied(server: Server, copy_id: str, created: int) -> Place:
    """Return the place of a complete copy of the server's disk, in which it wrote threes, of `created` (seconds)."""
    place, own = Place(server.state_dir, UUID), server.root
    server.write(3)
    place.prepare()
    disk = pathlib.Path(place.root, copy_id, "disk")
    disk.parent.mkdir()
    subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "qcow2", own, disk], check=True)
    saved = SavedDisk("vda", "vda", 8 * MIB, FULL, "", True, None, UNCHANGED, "")
    manifest = Manifest(copy_id, UUID, None, None, created * 1000, CRASH, "<domain/>", (saved,))
    pathlib.Path(place.root, "copy.json").write_text(Copy(manifest, {"vda": "disk"}, copy_id).text())
    server.write(4)
    return place


@pytest.mark.root
@pytest.mark.parametrize("id_in_ledger", [ONE, TWO])
def test_a_server_gets_the_copy_of_which_the_ledger_knows_or_a_newer_one(
    id_in_ledger: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))
    server = Server(tmp_path)
    place = copied(server, ONE, created=20_000)
    used = place.use(id_in_ledger, 20_060, OFF)  # the ledger's clock is a minute ahead of the host's
    assert used is not None and used.manifest.backup == ONE and server.read()[0] == 3
    server.write(5)
    assert place.use(id_in_ledger, 20_060, OFF) is None and server.read()[0] == 5


@pytest.mark.root
def test_an_older_copy_than_the_ledger_promises_is_not_used(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))
    server = Server(tmp_path)
    place = copied(server, ONE, created=20_000)
    with pytest.raises(NotFoundError, match=f"copy {TWO} of server {UUID} is not on this host, which has {ONE}"):
        place.use(TWO, 20_301, OFF)
    assert server.read()[0] == 4
