# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Locks that restic leaves in a store: one of a killed reader would keep all hosts from giving back room, one of a
killed prune from all that there is."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import time

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._backup import without_ledger
from ansible_collections.novalite.cloud.plugins.module_utils._backup.store import Restic
from ansible_collections.novalite.cloud.plugins.module_utils._host.command import CommandError

pytestmark = pytest.mark.skipif(shutil.which("restic") is None, reason="needs restic")
CONTENT = os.urandom(8 << 20)  # more than what waits in pipes


@pytest.fixture
def store(tmp_path: pathlib.Path) -> Restic:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    made = Restic(str(tmp_path / "store"), "a key", str(cache))
    made.prepare()
    return made


def test_who_stops_reading_early_leaves_no_lock(store: Restic) -> None:
    name = store.put({"of": "one"}, lambda stream: stream.write(CONTENT))
    with store.get(name) as stream:
        assert stream.read(10) == CONTENT[:10]
    with pytest.raises(ValueError, match="the first bytes are wrong"), store.get(name) as stream:
        stream.read(10)
        raise ValueError("the first bytes are wrong")
    assert list(pathlib.Path(store.place, "locks").iterdir()) == []
    store.forget([name])
    store.prune(60)


def locks(store: Restic) -> list[str]:
    return [name for name in os.listdir(os.path.join(store.place, "locks")) if "-tmp-" not in name]


def locked_by(store: Restic, *command: str) -> subprocess.Popen[bytes]:
    """A run of restic that has a lock."""
    with store._ready() as (argv, fds):
        process = subprocess.Popen([*argv, *command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=fds)
        deadline = time.monotonic() + 30
        while not locks(store):
            assert process.poll() is None and time.monotonic() < deadline
    return process


def killed_while_pruning(store: Restic) -> None:
    with locked_by(store, "prune", "--quiet") as process:
        process.kill()
    assert locks(store)


def test_a_prune_that_was_killed_keeps_nobody_from_the_store(store: Restic) -> None:
    """As when its host lost power: no more backups of the server, nor a way to any that there is."""
    name = store.put({"of": "one"}, lambda stream: stream.write(CONTENT))
    killed_while_pruning(store)
    with pytest.raises(CommandError), store.get(name) as stream:
        stream.read()
    store.prepare()
    with store.get(name) as stream:
        assert stream.read() == CONTENT
    killed_while_pruning(store)
    store.prepare()
    assert store.put({"of": "two"}, lambda stream: stream.write(CONTENT))


def test_nor_from_a_restore_without_the_ledger(store: Restic, tmp_path: pathlib.Path) -> None:
    server = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
    os.rename(store.place, tmp_path / server)
    there = Restic(str(tmp_path / server), store.key, store.cache)
    killed_while_pruning(there)
    assert without_ledger.opened(str(tmp_path), store.key, server, store.cache).names() == []
    assert locks(there) == []


def test_who_lives_keeps_its_lock(store: Restic) -> None:
    with locked_by(store, "backup", "--stdin", "--quiet") as process:
        there = locks(store)
        store.prepare()
        assert locks(store) == there
        process.communicate(CONTENT)
        assert process.returncode == 0
