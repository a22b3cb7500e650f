# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""People's decisions about healing, and writers of one row that come at the same time."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._healing import actions, nouns
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import watch, watch_event
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.healing import watch_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import healing
from tests.support.cloud import Cloud
from tests.support.rows import DEMO
from tests.unit._ledger.healing.watching import Watched


@pytest.fixture
def watched(ledger_url: str) -> t.Iterator[Watched]:
    cloud = Cloud(ledger_url)
    cloud.project("demo", DEMO)
    yield Watched(cloud)
    cloud.close()


def status(watched: Watched) -> dict[str, t.Any]:
    with reading(watched.cloud.engine) as connection:
        return healing.status(connection)


def test_healing_is_disarmed_and_armed_by_name(watched: Watched) -> None:
    assert status(watched)["armed"]  # also before anybody watches
    assert watched.cloud.run("watch", state="disarmed", by="alice")["changed"]
    assert not watched.cloud.run("watch", state="disarmed", by="alice")["changed"]
    assert not status(watched)["armed"]
    watched.cloud.run("watch", state="armed", by="bob")
    assert (
        watched.cloud.run("watch", state="disarmed", host="hv1", by="bob")["in_words"] == "healing of hv1 is disarmed"
    )
    shown = {host["host"]: host["armed"] for host in status(watched)["hosts"]}
    assert shown == {"hv1": False, "hv2": True, "hv3": True, "hv4": True}
    lines = watched.cloud.rows(sa.select(watch_event.c.event, watch_event.c.actor, watch_event.c.loud))
    assert lines == [("disarmed", "alice", True), ("armed", "bob", True), ("disarmed", "bob", True)]
    with pytest.raises(NotFoundError):
        watched.cloud.run("watch", state="disarmed", host="hv9")


def test_a_word_about_a_host_is_void_once_it_answers(watched: Watched) -> None:
    watched.agent = "none"
    web = watched.guest("web")
    with pytest.raises(NotFoundError, match="never watched"):
        watched.cloud.run("watch", state="confirmed", host="hv1", by="alice")
    watched.look()
    with pytest.raises(ConflictError, match="answered the last look"):
        watched.cloud.run("watch", state="confirmed", host="hv1", by="alice")
    watched.dead.add("hv1")
    watched.look()
    assert watched.cloud.run("watch", state="confirmed", host="hv1", by="alice")["changed"]
    assert not watched.cloud.run("watch", state="confirmed", host="hv1", by="alice")["changed"]
    watched.dead.clear()
    watched.look()
    watched.dead.add("hv1")
    for _round in range(3):
        watched.look()
    assert watched.server(web).host == "hv1"
    watched.cloud.run("watch", state="confirmed", host="hv1", by="alice")
    watched.look()
    assert watched.server(web).host != "hv1"


def test_only_an_empty_host_that_is_disabled_is_switched_off_for_a_test(watched: Watched) -> None:
    watched.guest("web")
    for host in ("hv1", "hv2"):
        with pytest.raises(ConflictError, match="empty it first"):
            watched.cloud.run("watch", state="testable", host=host)
        watched.cloud.change_host(host, enabled=False)
    with pytest.raises(ConflictError, match=r"bears servers \(1\)"):
        watched.cloud.run("watch", state="testable", host="hv1")
    assert not watched.cloud.run("watch", state="testable", host="hv2")["changed"]


def at_once(watched: Watched, work: t.Callable[[sa.Connection, int], t.Any]) -> list[t.Any]:
    """Do `work` in several transactions at the same time; return the results in order."""

    def attempt(number: int) -> t.Any:
        with transaction(watched.cloud.engine) as connection:
            return work(connection, number)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(attempt, range(4)))


@pytest.mark.both_databases
def test_one_controller_gets_the_lease(watched: Watched) -> None:
    with transaction(watched.cloud.engine) as connection:
        watch_rows.ensure(connection)
    leases = [nouns.Lease(f"ctl{number}", 4e9, 1) for number in range(4)]
    taken = at_once(watched, lambda connection, number: watch_rows.hold(connection, actions.Hold(None, leases[number])))
    assert sorted(taken) == [False, False, False, True]
    (row,) = watched.cloud.rows(sa.select(watch))
    assert row.controller == f"ctl{taken.index(True)}"


@pytest.mark.both_databases
def test_one_of_several_writes_for_a_state_and_epoch_is_done(watched: Watched) -> None:
    watched.guest("web")
    watched.look()
    with reading(watched.cloud.engine) as connection:
        row = watch_rows.rows(connection, ["hv1"])["hv1"]
    after = dataclasses.replace(row, state="suspect", since=1.0)
    act = actions.Write("hv1", row.state, row.epoch, 1, 4e9, after, "silence", "a look got no answer")
    refusals = at_once(watched, lambda connection, _number: watch_rows.write(connection, act, "ctl"))
    assert sorted(bool(refusal) for refusal in refusals) == [False, True, True, True]
    assert len(watched.cloud.rows(sa.select(watch_event).where(watch_event.c.event == "silence"))) == 1


@pytest.mark.both_databases
def test_a_write_without_the_lease_is_refused(watched: Watched) -> None:
    watched.guest("web")
    watched.look()
    with reading(watched.cloud.engine) as connection:
        row = watch_rows.rows(connection, ["hv1"])["hv1"]
    act = actions.Write("hv1", row.state, row.epoch, 1, 4e9, dataclasses.replace(row, note="x"))
    for controller, term, expires in (("other", 1, 4e9), ("ctl", 2, 4e9), ("ctl", 1, 0)):
        watched.cloud.write(sa.update(watch).values(controller=controller, term=term, expires=expires))
        with transaction(watched.cloud.engine) as connection:
            assert "does not hold the lease" in watch_rows.write(connection, act, "ctl")
    assert watched.row().note == ""
