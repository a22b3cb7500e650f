# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turns of balancing in the ledger: one controller has each, a plan is in the journal once, and people see it."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import (
    migration,
    rolling_host,
    watch,
    watch_event,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import healing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.balance_turn import balance_turn
from tests.support.cloud import Cloud, Result, checked
from tests.support.rows import DEMO
from tests.unit._ledger.healing.test_ha_decisions import at_once
from tests.unit._ledger.healing.watching import HOSTS, Watched

PLAN: dict[str, t.Any] = {
    "moves": [{"uuid": "u1", "name": "web", "from": "hv1", "to": "hv2"}],
    "text": "1 moves would help",
}
OTHER = {**PLAN, "moves": [{**PLAN["moves"][0], "to": "hv3"}]}


@pytest.fixture
def watched(ledger_url: str) -> t.Iterator[Watched]:
    cloud = Cloud(ledger_url)
    cloud.project("demo", DEMO)
    watched = Watched(cloud)
    watched.guest("web")
    watched.look()
    yield watched
    cloud.close()


def turn(watched: Watched, state: str, mode: str = "suggest", **args: t.Any) -> Result:
    return watched.cloud.run("balance_turn", state=state, mode=mode, **{"controller": "ctl", **args})


def journal(watched: Watched) -> list[str]:
    lines = sa.select(watch_event.c.why).where(watch_event.c.event == "balance").order_by(watch_event.c.id)
    return [line.why for line in watched.cloud.rows(lines)]


def suggested(watched: Watched) -> t.Any:
    with reading(watched.cloud.engine) as connection:
        return healing.status(connection)["balance"]


def test_a_turn_is_one_controllers_and_has_an_interval(watched: Watched) -> None:
    assert "ctl watches the hosts" in turn(watched, "begin", controller="other")["in_words"]
    begun = turn(watched, "begin")
    assert (begun["begun"], begun["hosts"]) == (True, sorted(HOSTS))
    assert not turn(watched, "begin")["begun"] and not turn(watched, "begin", every=3600)["begun"]
    watched.cloud.write(sa.update(watch).values(balance_at=watch.c.balance_at - 601))
    assert not turn(watched, "begin", every=3600)["begun"] and turn(watched, "begin", check_mode=True)["begun"]
    assert turn(watched, "begin")["begun"]


@pytest.mark.both_databases
def test_of_several_runs_one_gets_the_turn(watched: Watched) -> None:
    params = checked("balance_turn", state="begin", mode="suggest", controller="ctl")
    begun = at_once(watched, lambda connection, _number: balance_turn(connection, params)["begun"])
    assert sorted(begun) == [False, False, False, True]


def test_a_plan_is_told_once_and_is_a_matter_until_it_is_over(watched: Watched) -> None:
    assert suggested(watched) is None
    assert turn(watched, "record", **PLAN)["changed"]
    assert not turn(watched, "record", **PLAN)["changed"]
    assert journal(watched) == ["suggested: 1 moves would help: web from hv1 to hv2"]
    first = suggested(watched)
    assert (first["moves"], first["text"]) == (1, "1 moves would help")
    assert turn(watched, "record", **OTHER)["changed"] and suggested(watched)["plan"] != first["plan"]
    assert len(journal(watched)) == 2
    assert turn(watched, "record")["changed"] and suggested(watched) is None
    assert turn(watched, "record", **OTHER)["changed"] and len(journal(watched)) == 3
    assert turn(watched, "begin", mode="off")["changed"] and suggested(watched) is None
    assert not turn(watched, "begin", mode="off")["changed"]


def test_what_is_carried_out_is_told_each_time_and_suggested_no_more(watched: Watched) -> None:
    turn(watched, "record", **PLAN)
    for _run in range(2):
        assert turn(watched, "record", mode="act", **PLAN)["act"]
    assert suggested(watched) is None
    assert [line.partition(":")[0] for line in journal(watched)] == ["suggested", "carried out", "carried out"]


def a_rolling(watched: Watched) -> None:
    watched.cloud.write(sa.insert(rolling_host).values(host="hv4", task="upgrade.yml", state="waiting"))


def a_move(watched: Watched) -> None:
    guest = watched.guest("db")
    flavor = dict(watched.server(guest).flavor)
    times = {"created_at": 1, "updated_at": 1, "old_vm_state": "active", "uuid": "m" * 36}
    way = {"type": "live-migration", "status": "running", "reason": "balance", "source_host": "hv1"}
    watched.cloud.write(
        sa.insert(migration).values(instance_uuid=guest, old_flavor=flavor, new_flavor=flavor, **times, **way)
    )


def a_disarmed_host(watched: Watched) -> None:
    watched.cloud.run("watch", state="disarmed", host="hv3", by="alice")


def a_silent_host(watched: Watched) -> None:
    watched.dead.add("hv1")
    watched.look()


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (a_rolling, "a rolling maintenance is under way"),
        (a_move, "1 servers still move for the balance"),
        (a_disarmed_host, "healing is disarmed"),
        (a_silent_host, "hv1 is "),
    ],
)
def test_nothing_moves_when_something_else_came_up_since_the_turn_began(
    watched: Watched, happens: t.Callable[[Watched], None], words: str
) -> None:
    assert turn(watched, "begin", mode="act")["begun"]
    happens(watched)
    recorded = turn(watched, "record", mode="act", **PLAN)
    assert not recorded["act"] and words in recorded["in_words"] and journal(watched) == []
    watched.cloud.write(sa.update(watch).values(balance_at=0))
    begun = turn(watched, "begin", mode="act")
    assert not begun["begun"] and words in begun["in_words"]


def test_a_round_of_the_watch_says_when_a_turn_is_its_own(watched: Watched) -> None:
    def ends(mode: str) -> bool:
        return bool(watched.step("end", "round", balance=mode)["balances"])

    assert ends("suggest") and not ends("act") and not ends("off")
    turn(watched, "begin")
    turn(watched, "record", **PLAN)
    assert not ends("suggest") and ends("off")
