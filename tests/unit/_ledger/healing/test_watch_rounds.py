# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rounds of the watch over a ledger: from a silent host to guests that run elsewhere, and whatever keeps from it."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import replica
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import (
    departure,
    host_watch,
    migration,
    watch,
    watch_event,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.healing import watch_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import healing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import host_marks
from tests.support.cloud import Cloud
from tests.support.rows import DEMO
from tests.unit._ledger.healing.watching import HOSTS, Watched


@pytest.fixture
def watched(ledger_url: str) -> t.Iterator[Watched]:
    cloud = Cloud(ledger_url)
    cloud.project("demo", DEMO)
    yield Watched(cloud)
    cloud.close()


def events(watched: Watched) -> list[str]:
    return [row.event for row in watched.cloud.rows(sa.select(watch_event).order_by(watch_event.c.id))]


@pytest.mark.both_databases
def test_a_dead_host_is_fenced_and_its_guests_are_started_elsewhere(watched: Watched) -> None:
    web = watched.guest("web")
    watched.look()
    assert watched.row().state == "up"
    watched.dead.add("hv1")
    decided = watched.look()
    assert [off["host"] for off in decided["off"]] == ["hv1"]
    assert (watched.row().state, watched.row().epoch) == ("fencing", 1)
    assert watched.fence(decided["off"][0])
    decided = watched.look()
    (move,) = decided["move"]["moves"]
    dest = move["to_host"]
    assert (move["from_host"], dest != "hv1", decided["starting"]) == ("hv1", True, {dest: [web]})
    assert list(decided["move"]["hosts"]) == [dest]  # nothing is done on the dead one
    assert decided["move"]["targets"]["rebuild"] == [dest]
    assert decided["tokens"][dest] == {"epoch": 0, "term": 1}
    assert watched.row().moved == [web]
    assert (watched.server(web).host, watched.server(web).task_state) == (dest, "rebuild_spawning")
    watched.step("started", "any", starting=decided["starting"], outcomes=[{"host": dest, "error": None}])
    watched.running[dest].add(web)
    watched.look()
    assert (watched.server(web).task_state, watched.server(web).vm_state) == (None, "active")
    (move_row,) = watched.cloud.rows(sa.select(migration))
    assert (move_row.status, move_row.reason) == ("done", "healing")
    assert watched.cloud.rows(sa.select(departure.c.host, departure.c.reason)) == [("hv1", "evacuated")]
    assert watched.row().state == "empty"
    assert [event for event in events(watched) if event != "said"] == [
        *("silence", "evidence of two kinds", "fence agent", "proof of death", "start of the evacuation"),
        *("guest placed", "end of the evacuation"),
    ]


def test_a_returning_host_gives_up_what_was_moved_before_it_is_up(watched: Watched) -> None:
    web = watched.guest("web")
    watched.dead.add("hv1")
    decided = watched.heal()
    (dest,) = decided["starting"]
    watched.running[dest].add(web)
    watched.dead.clear()
    watched.boots["hv1"] = "boot-2"
    decided = watched.look()
    assert watched.row().state == "back"
    decided = decided if decided["give_up"] else watched.look()
    assert decided["give_up"]["hv1"]["uuids"] == [web]
    assert decided["tokens"]["hv1"] == {"epoch": 1, "term": 1}
    watched.running["hv1"].discard(web)
    watched.look()
    assert (watched.row().state, watched.row().moved) == ("up", [])


def test_a_look_counts_once_however_often_a_round_decides(watched: Watched) -> None:
    watched.guest("web")
    watched.look(settings={"missed": 3})
    watched.dead.add("hv1")
    for missed in (1, 2):
        decided = watched.look(settings={"missed": 3})
        assert (watched.row().missed, watched.row().state, decided["off"]) == (missed, "suspect", [])
    assert watched.look(settings={"missed": 3})["off"]


@pytest.mark.parametrize("answer", [(True, "on"), (True, "unknown"), (False, "off"), (False, "unknown")])
def test_without_a_proof_nothing_is_moved(watched: Watched, answer: tuple[bool, str]) -> None:
    web = watched.guest("web")
    watched.fenced = answer
    watched.dead.add("hv1")
    watched.heal()
    assert (watched.row().state, watched.server(web).host) == ("fencing", "hv1")
    assert "not proven" in watched.server(web).ha_reason


def test_with_everything_silent_nobody_is_fenced(watched: Watched) -> None:
    for host in HOSTS:
        watched.guest(f"web-{host}", host)
    watched.look()
    watched.dead.update(HOSTS)
    for _round in range(4):
        assert watched.look()["off"] == []
    assert {watched.row(host).state for host in HOSTS} == {"suspect"}


def test_a_host_that_peers_reach_is_not_fenced(watched: Watched) -> None:
    watched.guest("web")
    watched.dead.add("hv1")
    watched.reached.add("hv1")
    assert not any(watched.look()["off"] for _round in range(3))
    watched.reached.clear()
    assert watched.look()["off"]


def test_what_is_disarmed_or_in_maintenance_is_not_fenced(watched: Watched) -> None:
    watched.guest("web")
    watched.look()
    watched.dead.add("hv1")
    watched.wish("hv1", armed=False)
    assert watched.look()["off"] == []
    watched.wish("hv1", armed=True)
    watched.cloud.change_host("hv1", enabled=False)
    assert watched.look()["off"] == []
    watched.cloud.change_host("hv1", enabled=True)
    watched.cloud.write(sa.update(watch).values(armed=False))
    assert watched.look()["off"] == []
    watched.cloud.write(sa.update(watch).values(armed=True))
    assert watched.look()["off"]


def test_a_host_without_guests_that_are_to_run_again_is_left_alone(watched: Watched) -> None:
    watched.guest("web", ha=False)
    watched.dead.add("hv1")
    assert not any(watched.look()["off"] for _round in range(3))


def test_a_guest_on_a_local_disk_stays_with_the_reason(watched: Watched) -> None:
    kept = watched.guest("kept", ha_rebuild=False)
    watched.guest("web")
    watched.dead.add("hv1")
    watched.heal()
    assert watched.server(kept).host == "hv1"
    assert "its disk is on hv1 alone" in watched.server(kept).ha_reason


def copied(watched: Watched, name: str, host: str, copy_id: str | None = "5a4fd4c0-91c2-4b65-8ba5-3c2e0c1d7a10") -> str:
    """A guest that is not to be built anew, whose disks are copied to `host`."""
    guest = watched.guest(name, ha_rebuild=False)
    of_server = {"instance_uuid": guest, "host": host, "every": 300, "former": [], "created_at": 1, "updated_at": 1}
    newest = {"copy_id": copy_id, "taken_at": copy_id and 2 * 10**9 - 240}
    watched.cloud.write(sa.insert(replica).values(**of_server, **newest))
    return guest


def test_a_guest_on_a_local_disk_runs_from_its_copy_and_nowhere_else(watched: Watched) -> None:
    kept, lost, late = (
        copied(watched, "kept", "hv3"),
        copied(watched, "lost", "hv4"),
        copied(watched, "late", "hv3", None),
    )
    watched.cloud.change_host("hv4", enabled=False)
    watched.dead.add("hv1")
    decided = watched.heal()
    assert decided["starting"] == {"hv3": [kept]}
    assert [copy["uuid"] for copy in decided["move"]["hosts"]["hv3"]["build"]["copies"]] == [kept]
    (note,) = watched.cloud.rows(sa.select(watch_event).where(watch_event.c.event == "guest placed"))
    assert f"{kept} goes to hv3; it runs from the copy on hv3, " in note.why
    assert (watched.server(lost).host, watched.server(late).host) == ("hv1", "hv1")
    assert "the copy on hv4, " in watched.server(lost).ha_reason and "cannot be used" in watched.server(lost).ha_reason
    assert watched.server(late).ha_reason == "no copy of its disks was completed"


def test_those_of_the_highest_priority_get_the_room(watched: Watched) -> None:
    watched.cloud.change_host("hv2", memory_mb=512)
    for host in ("hv3", "hv4"):
        watched.cloud.change_host(host, memory_mb=0)
    low, high = watched.guest("low"), watched.guest("high", ha_priority=5)
    watched.dead.add("hv1")
    watched.heal()
    assert (watched.server(high).host, watched.server(low).host) == ("hv2", "hv1")
    assert watched.server(low).ha_reason


def test_a_guest_whose_start_failed_stays_there_and_is_started_again(watched: Watched) -> None:
    web = watched.guest("web")
    watched.dead.add("hv1")
    decided = watched.heal()
    (dest,) = decided["starting"]
    watched.step("started", "any", starting=decided["starting"], outcomes=[])
    assert watched.server(web).ha_reason == f"host {dest} did not answer"
    assert (watched.server(web).host, watched.server(web).task_state) == (dest, None)
    assert watched.look()["starting"] == {dest: [web]}


def test_reconcile_does_not_give_a_guest_back_to_a_dead_host(watched: Watched) -> None:
    """The run that started it was killed: it may run where it was brought."""
    web = watched.guest("web")
    watched.dead.add("hv1")
    (dest,) = watched.heal()["starting"]
    with transaction(watched.cloud.engine) as connection:
        server_actions.interrupt(connection, "evacuate", [web], "its run is dead")
    assert watched.server(web).host == dest
    assert watched.look()["starting"] == {dest: [web]}


def test_a_guest_follows_when_its_new_host_dies_as_well(watched: Watched) -> None:
    web = watched.guest("web")
    watched.dead.add("hv1")
    (first,) = watched.heal()["starting"]
    watched.dead.add(first)
    watched.wish("hv1", silent_since=0, missed=50)  # long ago: they did not fall silent together
    decided = watched.heal()
    (second,) = decided["starting"]
    assert second not in ("hv1", first)
    assert watched.server(web).host == second
    opened = watched.cloud.rows(sa.select(migration.c.status).order_by(migration.c.id))
    assert [row.status for row in opened] == ["done", "post-migrating"]


def test_a_guest_of_a_host_that_booted_is_started_there(watched: Watched) -> None:
    web = watched.guest("web")
    watched.look()
    watched.boots["hv1"] = "boot-2"
    watched.running["hv1"].clear()
    decided = watched.look()
    assert decided["restarted"] == [web]
    assert watched.server(web).task_state == "rebooting_hard"


def test_a_person_confirms_a_death_that_no_agent_can_prove(watched: Watched) -> None:
    watched.agent = "none"
    web = watched.guest("web")
    watched.look()
    watched.dead.add("hv1")
    assert watched.look()["off"] == []
    watched.wish("hv1", confirmed_by="alice", confirmed_heard=watched.row().heard)
    watched.look()
    assert watched.server(web).host != "hv1"
    assert watched.row().proof["words"] == "alice confirmed its death"


@pytest.mark.both_databases
def test_of_two_controllers_one_watches_and_the_other_takes_over(watched: Watched) -> None:
    watched.guest("web")
    assert watched.look("one")
    assert watched.look("two") == {}
    watched.dead.add("hv1")
    off = watched.look("one")["off"][0]
    watched.cloud.write(sa.update(watch).values(expires=0))
    assert watched.look("two") != {}
    assert not watched.fence(off, "one")  # it stalled, and lost
    (row,) = watched.cloud.rows(sa.select(watch))
    assert (row.controller, row.term) == ("two", 2)


@pytest.mark.both_databases
def test_a_look_brings_each_host_the_reading_of_its_last_answer(watched: Watched) -> None:
    assert watched.step("begin", "first")["readings"] == {}
    watched.step("end", "first")
    watched.look()
    watched.dead.add("hv1")
    watched.look()
    assert watched.step("begin", "last")["readings"] == {
        host: {"boot_id": "boot-1", "seconds": 1001.0 if host == "hv1" else 1002.0} for host in HOSTS
    }


@pytest.mark.parametrize(("seconds", "later", "left"), [(60, 60, 55), (120, 60, 110), (60, 90, 0)])
def test_the_longest_switch_that_a_host_may_have_heard_of_counts(
    watched: Watched, seconds: int, later: int, left: int
) -> None:
    """Told by its last answer, or brought by looks since then, whatever became of those."""
    watched.agent = "none"
    watched.switch_s = left
    watched.look(switches={"hv1": seconds})
    watched.dead.add("hv1")
    for sent in (later, later):
        watched.look(switches={"hv1": sent})
    assert (watched.row().switch_s, watched.row().switch_armed) == (max(left, later), left > 0)
    watched.look(switches={"hv1": 0})  # which may have disarmed it
    assert not watched.row().switch_armed


@pytest.mark.parametrize(("hosts", "settings", "heard"), [(3, {}, 0), (100, {}, 1), (100, {"fresh_s": 15}, 0)])
def test_what_a_round_finds_lasts_until_all_hosts_were_looked_at(
    watched: Watched, hosts: int, settings: dict[str, float], heard: int
) -> None:
    names = [f"host{number}" for number in range(hosts)]
    looks = {name: {"boot_id": "boot-1", "uptime": 5.0} for name in names}
    args: dict[str, t.Any] = {"round": "one", "controller": "ctl", "hosts": names, "settings": settings}
    begun = watched.cloud.run("watch", state="begin", **args)
    watched.cloud.run("watch", state="decide", at=begun["at"] - 30, looks=looks, **args)
    assert watched.row("host1").heard == heard


def test_one_round_at_a_time_on_a_controller(watched: Watched) -> None:
    assert watched.step("begin", "first")["watching"]
    refused = watched.step("begin", "second")
    assert (refused["watching"], refused["in_words"]) == (False, "another round is under way here")
    watched.step("end", "first")
    assert watched.step("begin", "second")["watching"]


def test_check_mode_writes_nothing(watched: Watched) -> None:
    watched.guest("web")
    before = watched.cloud.dump()
    watched.cloud.run("watch", check_mode=True, state="begin", hosts=list(HOSTS))
    assert watched.cloud.dump() == before


def test_how_long_hosts_are_silent_takes_as_many_statements_for_one_as_for_all(watched: Watched) -> None:
    watched.guest("web")
    watched.look()
    statements: list[str] = []

    def count(*words: t.Any) -> None:
        statements.append(words[2])

    engine = watched.cloud.engine
    sa.event.listen(engine, "before_cursor_execute", count)
    counts = []
    with transaction(engine) as connection:
        for hosts in (HOSTS[:1], HOSTS):
            statements.clear()
            watch_rows.silent_ticks(connection, dict.fromkeys(hosts, True), 100.0, "this boot")
            counts.append(len(statements))
        assert counts[0] == counts[1]
        silent = dict.fromkeys(HOSTS, False) | {"hv4": True}
        assert watch_rows.silent_ticks(connection, silent, 130.0, "this boot") == {
            **dict.fromkeys(HOSTS[:3], 30.0),
            "hv4": 0.0,
        }
        assert set(watch_rows.silent_ticks(connection, silent, 9.0, "another boot").values()) == {0.0}


def test_the_watch_of_one_host_reads_no_other(watched: Watched) -> None:
    watched.look()
    rows: list[int] = []
    with transaction(watched.cloud.engine) as connection:
        connection.execute(sa.delete(host_watch).where(host_watch.c.host == "hv2"))
        shown = healing.of_host(connection, "hv1")
        assert shown is not None and (shown["host"], shown["state"], shown["armed"]) == ("hv1", "up", True)
        assert healing.of_host(connection, "hv2") is None and healing.of_host(connection, "hv9") is None
        sa.event.listen(
            watched.cloud.engine, "before_cursor_execute", lambda *words: rows.append(str(words[3]).count("hv1"))
        )
        healing.of_host(connection, "hv1")
    assert rows and all(rows)  # each statement names the host


@pytest.mark.both_databases
def test_orders_of_people_carry_the_epoch_that_the_ledger_has(watched: Watched, ledger_url: str) -> None:
    """Refusal, where healing is armed, of a controller whose trip was held up, or whose ledger is old."""
    marks = host_marks.open_marks("/nonexistent", ledger_url)
    assert marks is not None
    assert marks.age_of_orders("hv1") is None  # nobody watched yet
    watched.guest("web")
    watched.look()
    assert marks.age_of_orders("hv1") == {"epoch": 0, "term": 1, "booted": False}
    watched.dead.add("hv1")
    watched.heal()
    assert marks.age_of_orders("hv1") == {"epoch": 1, "term": 1, "booted": False}
    watched.cloud.write(sa.update(watch).values(expires=0))
    assert marks.age_of_orders("hv1") == {"epoch": 1, "term": 1, "booted": True}
    watched.wish("hv1", armed=False)
    assert marks.age_of_orders("hv1") is None
    assert marks.age_of_orders("hv2") is not None
    watched.cloud.write(sa.update(watch).values(armed=False))
    assert marks.age_of_orders("hv2") is None
    marks.close()
