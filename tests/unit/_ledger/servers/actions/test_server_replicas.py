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
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import migration
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_heal import wrong_sums
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
    assert plan["copies"] == [{"uuid": uuid, "copy_id": copy(cloud).copy_id}] and not plan["injections"]
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
