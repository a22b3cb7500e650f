# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lock of the controller that watches, on PostgreSQL: another takes over once the processes that hold it are gone."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import watch
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.healing import watch_lock
from tests.support.cloud import Cloud
from tests.support.patience import GENEROUS
from tests.support.rows import DEMO
from tests.unit._ledger.healing.watching import Watched

OWNER = """
import subprocess, sys, time
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.healing.watch_lock import WatchLock
lock = WatchLock(*sys.argv[1:])
child = subprocess.Popen(["sleep", "600"], pass_fds=[lock.hold()])
print(lock.number, child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def on_postgresql(postgresql_ledger: t.Callable[[], str]) -> t.Iterator[Watched]:
    cloud = Cloud(postgresql_ledger())
    cloud.project("demo", DEMO)
    yield Watched(cloud)
    cloud.close()


def test_another_controller_takes_over_as_soon_as_all_processes_of_the_owner_are_gone(
    on_postgresql: Watched, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    watched, url = on_postgresql, on_postgresql.cloud.url
    command = [sys.executable, "-c", OWNER, str(tmp_path), url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        number, child = (int(word) for word in owner.stdout.readline().split())
        monkeypatch.setenv(watch_lock.VARIABLE, str(number))
        assert watched.look("one")
        monkeypatch.delenv(watch_lock.VARIABLE)
        standby = watch_lock.WatchLock(str(tmp_path), url)
        try:
            assert not standby.may_watch() and watched.look("two") == {}
            owner.kill()
            owner.wait()
            time.sleep(0.5)  # longer than the server takes to see a session's end
            assert not standby.may_watch() and watched.look("two") == {}
            os.kill(child, signal.SIGKILL)
            until(standby.may_watch)
        finally:
            standby.close()
    assert watched.look("two") != {}
    (row,) = watched.cloud.rows(sa.select(watch))
    assert (row.controller, row.term, row.lock) == ("two", 2, None)


def test_an_owner_whose_session_ended_loses_its_lease_and_takes_the_lock_again(
    on_postgresql: Watched, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    watched, web = on_postgresql, on_postgresql.guest("web")
    lock = watch_lock.WatchLock(str(tmp_path), watched.cloud.url)
    lock.hold()
    monkeypatch.setenv(watch_lock.VARIABLE, str(lock.number))
    try:
        watched.look("one")
        watched.dead.add("hv1")
        off = watched.look("one")["off"][0]
        assert watched.look("two") == {}
        watched.cloud.write(sa.text("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"))
        until(lambda: watched.look("two") != {})
        assert not watched.fence(off, "one")
        assert watched.look("one") == {} and watched.server(web).host == "hv1"
        lock.hold()
        assert watched.look("two") and watched.look("one") == {}  # now with a lock again
    finally:
        lock.close()


def until(condition: t.Callable[[], bool]) -> None:
    deadline = time.monotonic() + GENEROUS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
