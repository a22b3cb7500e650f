# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of servers' disks on a second host, in the ledger: where, what room they take, and who runs from them."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import compute_host, instance
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import replica as table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import (
    host_watch,
    migration,
    watch_event,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import replica_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_heal import wrong_sums
from ansible_collections.novalite.cloud.plugins.module_utils._steps import disk_move
from tests.unit._ledger.servers.actions.test_server_backups import no_domains, row, server

__all__ = ["no_domains"]

RECORD = {"kind": "full", "reason": "hv2 has no copy", "moved": 5, "consistency": "crash"}


def have(cloud: t.Any, **more: t.Any) -> dict[str, t.Any]:
    """Have web's disks copied."""
    params = {"state": "present", "servers": ["web"], "every": "5m", **more}
    return t.cast("dict[str, t.Any]", cloud.task("server_replica", **params))


def begin(cloud: t.Any, **more: t.Any) -> dict[str, t.Any]:
    """Begin what is due, or what is named."""
    return t.cast("dict[str, t.Any]", cloud.task("server_replica", state="begin", state_dir="/x", **more))


def end(cloud: t.Any, begun: dict[str, t.Any], error: str | None = None, **record: t.Any) -> dict[str, t.Any]:
    """Record what both hosts say of the copies that were begun."""
    outcomes = [
        {"host": host, "results": [{"uuid": move["uuid"], "error": error} for move in plan.get("leaving", ())]}
        for host, plan in begun["hosts"].items()
    ]
    for outcome in outcomes:
        outcome["results"] += [
            {"uuid": move["uuid"], "error": error, **({} if error else {"record": {**RECORD, **record}})}
            for move in begun["hosts"][outcome["host"]].get("arriving", ())
        ]
        outcome["results"] += [
            {"uuid": gone["uuid"], "removed": True} for gone in begun["hosts"][outcome["host"]].get("discarded", ())
        ]
    done = cloud.task("server_replica", state="end", moves=begun["moves"], outcomes=outcomes)
    return t.cast("dict[str, t.Any]", done)


def copy(cloud: t.Any) -> t.Any:
    (row_there,) = cloud.rows(sa.select(table))
    return row_there


def disk_used(cloud: t.Any) -> dict[str, int]:
    rows = cloud.rows(sa.select(compute_host.c.name, compute_host.c.disk_gb_used))
    with transaction(cloud.engine) as connection:
        assert wrong_sums(connection) == []  # what hosts say is what is claimed there
    return {host.name: host.disk_gb_used for host in rows}


def change_host(cloud: t.Any, name: str, **values: t.Any) -> None:
    cloud.write(sa.update(compute_host).where(compute_host.c.name == name).values(**values))


def evacuate(cloud: t.Any) -> dict[str, t.Any]:
    """Begin the evacuation of web, whose host is down."""
    cloud.write(sa.update(compute_host).where(compute_host.c.name == "hv1").values(up=False))
    params = {"action": "evacuate", "servers": [{"name": "web"}], "state_dir": "/x", "service_down_time": 1 << 31}
    return t.cast("dict[str, t.Any]", cloud.task("server_migration", **params))


def evacuated(cloud: t.Any, begun: dict[str, t.Any], error: str | None = None) -> None:
    """Record the end of an evacuation."""
    step = {"action": "evacuate", "state_dir": "/x"}
    committed = cloud.task("server_migration", state="commit", before=begun, parts=[], **step)
    said = [{"host": begun["moves"][0]["to_host"], "error": error}]
    cloud.task("server_migration", state="end", before=committed, parts=["to_host"], outcomes=said, **step)


def test_a_copy_claims_room_on_another_host_and_gives_it_back(cloud: t.Any) -> None:
    uuid = server(cloud)
    before = disk_used(cloud)
    made = have(cloud)
    host = copy(cloud).host
    assert made["changed"] and host != "hv1" and not have(cloud)["changed"]
    held = disk_used(cloud)
    assert held[host] - before[host] == copy(cloud).disk_gb > 0
    assert have(cloud, every="10m")["changed"] and copy(cloud).host == host and disk_used(cloud) == held
    assert cloud.task("server_replica", state="absent", servers=["web"])["changed"]
    assert disk_used(cloud) == before and (copy(cloud).every, copy(cloud).former) == (None, [host])
    assert not cloud.task("server_replica", state="absent", servers=["web"])["changed"]
    begun = begin(cloud)  # what it has goes with the next run
    assert (begun["moves"], begun["hosts"][host]["discarded"]) == ([], [{"uuid": uuid}])
    end(cloud, begun)
    assert cloud.rows(sa.select(table)) == []


def test_what_cannot_be_copied_is_refused(cloud: t.Any) -> None:
    server(cloud)
    with pytest.raises(NovaliteError, match="is on hv1 itself"):
        have(cloud, host="hv1")
    with pytest.raises(NovaliteError, match=r"every='0m' is not a time between a minute and a year: .* such as 12h"):
        have(cloud, every="0m")
    cloud.write(sa.update(compute_host).where(compute_host.c.name != "hv1").values(disk_gb=0))
    with pytest.raises(ConflictError, match="no second host for the disks of 'web'"):
        have(cloud)
    assert cloud.rows(sa.select(table)) == []
    with pytest.raises(ConflictError, match="has no second host"):
        begin(cloud, servers=["web"])


def test_a_copy_is_taken_when_it_is_due_and_a_failure_keeps_the_older_one(cloud: t.Any) -> None:
    uuid = server(cloud)
    have(cloud)
    begun = begin(cloud)
    (move,) = begun["moves"]
    assert (move["from_host"], move["to_host"], row(cloud, uuid).task_state) == ("hv1", copy(cloud).host, "replicating")
    spec: t.Any = disk_move.ARGUMENT_SPEC
    assert set(move) <= set(spec["moves"]["options"])  # or hosts refuse it
    assert begun["targets"]["replica_send"] == ["hv1"] and begun["targets"]["replica_receive"] == [move["to_host"]]
    assert begin(cloud)["moves"] == []
    end(cloud, begun)
    first = copy(cloud)
    assert (first.copy_id, first.kind, first.moved, first.fault) == (move["id"], "full", 5, None)
    assert first.taken_at == first.tried_at and row(cloud, uuid).task_state is None
    assert begin(cloud)["moves"] == []
    cloud.write(sa.update(table).values(tried_at=table.c.tried_at - 300))
    again = begin(cloud)
    assert end(cloud, again, error="no room")["errors"][0]["message"] == "'web': no room"
    assert (copy(cloud).copy_id, copy(cloud).taken_at, copy(cloud).fault) == (move["id"], first.taken_at, "no room")
    silent = begin(cloud, servers=["web"])
    done = cloud.task("server_replica", state="end", moves=silent["moves"], outcomes=[])
    assert "did not answer" in done["errors"][0]["message"]


def test_a_server_that_came_to_its_second_host_gets_another_one(cloud: t.Any) -> None:
    uuid = server(cloud)
    have(cloud)
    end(cloud, begin(cloud))
    second = copy(cloud).host
    cloud.write(sa.update(instance).where(instance.c.uuid == uuid).values(host=second))
    begun = begin(cloud, servers=["web"])
    assert begun["moves"][0]["to_host"] not in (second, None)
    assert begun["hosts"][second]["discarded"] == [{"uuid": uuid}] and copy(cloud).copy_id is None


def test_a_copy_is_given_up_once_another_host_has_one(cloud: t.Any) -> None:
    uuid = server(cloud)
    have(cloud, host="hv2")
    end(cloud, begin(cloud))
    first, before = copy(cloud), disk_used(cloud)
    assert have(cloud, host="hv3")["changed"] and not have(cloud, host="hv3")["changed"]
    assert (copy(cloud).host, copy(cloud).next_host, copy(cloud).copy_id) == ("hv2", "hv3", first.copy_id)
    assert disk_used(cloud) == {**before, "hv3": before["hv3"] + first.disk_gb}
    begun = begin(cloud, servers=["web"])
    assert begun["moves"][0]["to_host"] == "hv3" and "hv2" not in begun["hosts"]
    end(cloud, begun, error="no room")
    assert (copy(cloud).host, copy(cloud).copy_id, copy(cloud).former) == ("hv2", first.copy_id, [])
    begun = begin(cloud, servers=["web"])
    end(cloud, begun)
    assert (copy(cloud).host, copy(cloud).next_host, copy(cloud).former) == ("hv3", None, ["hv2"])
    assert copy(cloud).copy_id == begun["moves"][0]["id"]
    assert disk_used(cloud) == {**before, "hv2": 0, "hv3": first.disk_gb}
    assert begin(cloud)["hosts"]["hv2"]["discarded"] == [{"uuid": uuid}]


def test_what_another_host_was_to_get_is_given_up_first(cloud: t.Any) -> None:
    server(cloud)
    have(cloud, host="hv2")
    end(cloud, begin(cloud))
    before = disk_used(cloud)
    have(cloud, host="hv3")
    have(cloud, host="hv2")
    assert (copy(cloud).host, copy(cloud).next_host, copy(cloud).former) == ("hv2", None, ["hv3"])
    assert disk_used(cloud) == before
    have(cloud, host="hv3")
    begun = begin(cloud, servers=["web"])
    have(cloud, host="hv2")
    end(cloud, begun)  # of a host that is to get no copy any more
    assert (copy(cloud).host, copy(cloud).copy_id != begun["moves"][0]["id"]) == ("hv2", True)
    have(cloud, host="hv3")
    cloud.task("server_replica", state="absent", servers=["web"])
    assert set(disk_used(cloud).values()) == {0, before["hv1"]} and copy(cloud).former == ["hv2", "hv3"]


def test_a_server_runs_from_the_older_copy_until_the_next_is_complete(cloud: t.Any) -> None:
    server(cloud)
    have(cloud, host="hv2")
    end(cloud, begin(cloud))
    have(cloud, host="hv3")
    begun = evacuate(cloud)
    assert begun["moves"][0]["to_host"] == "hv2" and begun["hosts"]["hv2"]["build"]["copies"]
    evacuated(cloud, begun)
    assert (copy(cloud).host, copy(cloud).next_host, copy(cloud).copy_id) == ("hv3", None, None)
    cloud.write(sa.update(compute_host).values(up=True))
    assert disk_used(cloud)["hv3"] and begin(cloud)["moves"][0]["to_host"] == "hv3"


def test_a_dead_second_host_of_the_schedulers_choice_is_replaced(cloud: t.Any) -> None:
    uuid = server(cloud)
    have(cloud)
    end(cloud, begin(cloud))
    first = copy(cloud)
    dead, other = first.host, next(name for name in ("hv2", "hv3") if name != first.host)
    change_host(cloud, dead, up=False, down_reason="no power")
    begun = begin(cloud, servers=["web"])
    (move,) = begun["moves"]
    assert move["to_host"] == other and dead not in begun["hosts"]
    why = begun["hosts"]["hv1"]["why"][uuid]
    assert why == f"{dead} is down: no power: {other} gets copies of the disks of 'web'"
    assert (copy(cloud).host, copy(cloud).next_host, copy(cloud).copy_id) == (dead, other, first.copy_id)
    (line,) = cloud.rows(sa.select(watch_event))
    assert (line.host, line.event, line.why) == (other, "gets copies", why)
    end(cloud, begun)
    assert (copy(cloud).host, copy(cloud).next_host, copy(cloud).former) == (other, None, [dead])
    assert dead not in begin(cloud)["hosts"]  # it is not asked while it is down
    change_host(cloud, dead, up=True)
    assert begin(cloud)["hosts"][dead]["discarded"] == [{"uuid": uuid}]


@pytest.mark.parametrize(
    ("health", "reason"),
    [
        ({"state": "evacuating", "silent_since": 1}, "hv2 is dead"),
        ({"state": "suspect", "silent_since": 1}, None),  # the copy came through since
        ({"state": "suspect", "silent_since": 3}, "hv2 did not answer for "),
        ({"state": "suspect", "silent_since": 1 << 40}, None),
        ({"state": "up"}, None),
    ],
)
def test_what_the_watch_saw_of_a_second_host_decides(
    cloud: t.Any, health: dict[str, t.Any], reason: str | None
) -> None:
    server(cloud)
    have(cloud, host="hv2")
    end(cloud, begin(cloud))
    cloud.write(
        sa.update(table).values(requested_host=None, taken_at=2), sa.insert(host_watch).values(host="hv2", **health)
    )
    change_host(cloud, "hv2", enabled=False)  # which alone says nothing: it answers
    begun = begin(cloud, servers=["web"])
    (move,), (why,) = begun["moves"], begun["hosts"]["hv1"]["why"].values()
    assert move["to_host"] == ("hv2" if reason is None else "hv3")
    assert why is None if reason is None else why.startswith(reason)


def test_a_dead_second_host_that_was_named_stays(cloud: t.Any) -> None:
    server(cloud)
    have(cloud, host="hv2")
    end(cloud, begin(cloud))
    change_host(cloud, "hv2", up=False)
    cloud.write(sa.update(table).values(tried_at=1))
    begun = begin(cloud)
    (left,) = begun["left"]
    assert begun["moves"] == [] and "hv2 is down" in left["reason"] and "was asked for" in left["reason"]
    assert (copy(cloud).host, copy(cloud).next_host, copy(cloud).fault) == ("hv2", None, left["reason"])
    with transaction(cloud.engine) as connection:
        assert replica_records.uncopied(connection) == [{"uuid": left["uuid"], "name": "web", "fault": left["reason"]}]
    change_host(cloud, "hv2", up=True)
    end(cloud, begin(cloud, servers=["web"]))
    assert copy(cloud).fault is None


def silence(cloud: t.Any, *hosts: str) -> None:
    """Have a copy fail because these hosts do not answer, and begin it again later."""
    begun = begin(cloud, servers=["web"])
    outcomes = [{"host": host, "error": "nothing came", "silent": host in hosts} for host in begun["hosts"]]
    cloud.task("server_replica", state="end", moves=begun["moves"], outcomes=outcomes)
    cloud.write(sa.update(table).values(silent_since=table.c.silent_since - 600))


def test_a_second_host_that_copies_do_not_reach_is_replaced_where_another_has_room(cloud: t.Any) -> None:
    server(cloud)
    have(cloud, host="hv2")
    cloud.write(sa.update(table).values(requested_host=None))
    silence(cloud, "hv1", "hv2")  # rather the network's fault
    assert copy(cloud).silent_since is None
    silence(cloud, "hv2")
    change_host(cloud, "hv3", enabled=False)
    silence(cloud, "hv2")
    assert (copy(cloud).host, copy(cloud).next_host) == ("hv2", None)  # it may answer again
    change_host(cloud, "hv3", enabled=True)
    begun = begin(cloud, servers=["web"])
    assert begun["moves"][0]["to_host"] == "hv3"
    (why,) = begun["hosts"]["hv1"]["why"].values()
    assert why.startswith("hv2 did not answer for 2") and copy(cloud).former == ["hv2"]
    end(cloud, begun)
    assert (copy(cloud).host, copy(cloud).silent_since, copy(cloud).fault) == ("hv3", None, None)


def test_who_names_the_host_that_was_chosen_keeps_it(cloud: t.Any) -> None:
    server(cloud)
    have(cloud)
    assert have(cloud, host=copy(cloud).host)["changed"] and copy(cloud).requested_host == copy(cloud).host


@pytest.mark.parametrize(("gone", "kept"), [("hv2", ("hv3", None)), ("hv3", ("hv2", None))])
def test_a_host_that_leaves_the_cloud_takes_its_copy_along(cloud: t.Any, gone: str, kept: tuple[str, None]) -> None:
    server(cloud)
    have(cloud, host="hv2")
    end(cloud, begin(cloud))
    first = copy(cloud)
    have(cloud, host="hv3")
    cloud.operate("compute_host", state="absent", name=gone)
    after = copy(cloud)
    assert (after.host, after.next_host) == kept
    of_copy = [(row.copy_id, row.taken_at, row.kind, row.moved, row.consistency) for row in (first, after)]
    assert of_copy[1] == ((None,) * 5 if gone == "hv2" else of_copy[0])
    assert disk_used(cloud)[after.host] == first.disk_gb
    cloud.write(sa.update(table).values(tried_at=None))
    assert begin(cloud)["moves"][0]["to_host"] == after.host


def test_an_evacuated_server_runs_from_its_copy_which_is_no_second_one_then(cloud: t.Any) -> None:
    uuid = server(cloud)
    have(cloud)
    end(cloud, begin(cloud))
    second, before = copy(cloud).host, disk_used(cloud)
    cloud.write(sa.update(table).values(taken_at=table.c.taken_at - 240))
    begun = evacuate(cloud)
    (move,) = begun["moves"]
    assert (
        move["to_host"] == second
        and move["why"][0] == move["reason"] == f"it runs from the copy on {second}, 4 min old"
    )
    plan = begun["hosts"][second]["build"]
    of_copy = {"copy_id": copy(cloud).copy_id, "taken_at": copy(cloud).taken_at}
    assert plan["copies"] == [{"uuid": uuid, **of_copy}] and not plan["injections"]
    assert disk_used(cloud)[second] == before[second]  # the server has its room now
    evacuated(cloud, begun)
    assert row(cloud, uuid).host == second
    assert (copy(cloud).host, copy(cloud).copy_id, copy(cloud).former) == (None, None, [second])
    (moved,) = cloud.rows(sa.select(migration))
    assert moved.message == f"it runs from the copy on {second}, 4 min old"
    cloud.write(sa.update(compute_host).values(up=True))
    assert begin(cloud)["moves"][0]["to_host"] != second


def test_an_evacuation_that_failed_leaves_the_copy(cloud: t.Any) -> None:
    server(cloud)
    have(cloud)
    end(cloud, begin(cloud))
    before = copy(cloud), disk_used(cloud)
    evacuated(cloud, evacuate(cloud), error="it does not start")
    assert (copy(cloud).copy_id, copy(cloud).host) == (before[0].copy_id, before[0].host)
    assert disk_used(cloud) == before[1]


@pytest.mark.parametrize(
    ("change", "reason"), [({"copy_id": None}, "no copy of its disks was completed"), ({}, "cannot be used: ")]
)
def test_disks_are_made_anew_where_the_copy_cannot_be_used(cloud: t.Any, change: dict[str, t.Any], reason: str) -> None:
    server(cloud)
    have(cloud, host="hv2")
    end(cloud, begin(cloud))
    cloud.write(
        sa.update(table).values(tried_at=1, **change),
        sa.update(compute_host).where(compute_host.c.name == "hv2").values(enabled=False),
    )
    begun = evacuate(cloud)
    assert begun["moves"][0]["to_host"] not in ("hv1", "hv2")
    assert reason in begun["moves"][0]["why"][0] and "made anew from its image" in begun["moves"][0]["why"][0]
    assert "copies" not in begun["hosts"][begun["moves"][0]["to_host"]]["build"]
    evacuated(cloud, begun)
    assert copy(cloud).host == "hv2"


def test_a_server_with_a_second_host_may_be_promised_to_run_again(cloud: t.Any) -> None:
    server(cloud)
    with pytest.raises(NovaliteError, match="novalite replica set"):
        cloud.task("server_ha", servers=["web"], ha=True)
    have(cloud)
    assert cloud.task("server_ha", servers=["web"], ha=True)["changed"]
    with pytest.raises(NovaliteError, match="ha: true needs"):
        cloud.task("server_replica", state="absent", servers=["web"])
    assert copy(cloud).every == 300


def test_a_deleted_server_gives_back_the_room_of_its_copy(cloud: t.Any) -> None:
    uuid = server(cloud)
    have(cloud)
    end(cloud, begin(cloud))
    host = copy(cloud).host
    cloud.task("server", servers=[{"name": "web"}], state="absent")
    cloud.state({"uuids": [uuid], "state": "deleted"})
    assert disk_used(cloud)[host] == 0 and copy(cloud).former == [host]
    end(cloud, begin(cloud))
    assert cloud.rows(sa.select(table)) == []
