# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims: guarded, repeatable, all or nothing, given back exactly, and safe with several processes at once."""

from __future__ import annotations

import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import (
    allocation,
    instance,
    instance_action,
    project,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import compute_host as host_table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.claims import release_claims
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.compute_host import compute_host
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.scheduler import scheduler
from tests.support.rows import a_flavor, add_instance, add_project

pytestmark = pytest.mark.both_databases

FLAVOR = a_flavor()
IMAGE = {"virtual_size": 1024, "min_ram_mb": 0, "properties": {}}
PROJECT = "0" * 32


def facts(name: str, **fields: t.Any) -> dict[str, t.Any]:
    usual = {"up": True, "vcpus": 8, "memory_mb": 4608, "disk_gb": 50, "traits": [], "arch": "x86_64"}
    return {"name": name, **usual, **fields}


def some(count: int, **fields: t.Any) -> list[dict[str, t.Any]]:
    return [
        {
            "uuid": str(uuid.uuid4()),
            "name": f"web-{number}",
            "flavor": FLAVOR,
            "image": IMAGE,
            "host": None,
            "attempts": [],
            "request": {},
            "vm_state": "building",
            "task_state": "scheduling",
            **fields,
        }
        for number in range(1, count + 1)
    ]


def write(connection: sa.Connection, instances: list[dict[str, t.Any]], **fields: t.Any) -> None:
    """The rows that `server` would have made."""
    if not connection.execute(sa.select(project.c.id)).first():
        add_project(connection, "demo", PROJECT)
    for server in instances:
        usual = {"flavor": FLAVOR, "image": IMAGE, "vm_state": "building", "task_state": "scheduling"}
        own = {"uuid": server["uuid"], "project_id": PROJECT}
        add_instance(connection, server["name"], **own, **{**usual, **fields})
        connection.execute(
            sa.insert(instance_action).values(
                instance_uuid=server["uuid"], action="create", request_id="req-1", started_at=1, details={"hints": {}}
            )
        )


def rows(connection: sa.Connection) -> dict[str, t.Any]:
    return {row.name: row for row in connection.execute(sa.select(instance))}


def usage(connection: sa.Connection) -> dict[str, tuple[int, int, int]]:
    """Return what hosts say is used, held against the sum of the claims."""
    c = host_table.c
    used = {
        row.id: (row.name, (row.vcpus_used, row.memory_mb_used, row.disk_gb_used))
        for row in connection.execute(sa.select(c.id, c.name, c.vcpus_used, c.memory_mb_used, c.disk_gb_used))
    }
    claims = sa.select(sa.func.count()).where(allocation.c.compute_host_id == c.id).scalar_subquery()
    assert connection.execute(sa.select(c.name).where(c.num_instances != claims)).all() == []
    for host_id, (_name, sums) in used.items():
        of_claims = connection.execute(
            sa.select(
                *(
                    sa.func.coalesce(sa.func.sum(allocation.c[column]), 0)
                    for column in ("vcpus", "memory_mb", "disk_gb")
                )
            ).where(allocation.c.compute_host_id == host_id)
        ).one()
        assert tuple(of_claims) == sums
    return dict(used.values())


def test_instances_are_spread_claimed_and_recorded(engine: sa.Engine) -> None:
    instances = some(4)
    with transaction(engine) as connection:
        write(connection, instances)
        result = scheduler(connection, {"instances": instances, "compute_hosts": [facts("hv1"), facts("hv2")]})
        assert [server["host"] for server in result["instances"]] == ["hv1", "hv2", "hv1", "hv2"]
        assert [server["alternates"] for server in result["instances"]] == [["hv2"], ["hv1"], ["hv2"], ["hv1"]]
        assert result["changed"] and result["unplaced"] == []
        assert result["msg"] == "placed 4 of 4 instances: 2 on hv1, 2 on hv2"
        after = result["diff"]["after"]
        assert {name: server["host"] for name, server in after.items()} == {
            i["name"]: i["host"] for i in result["instances"]
        }
        assert "hv2: weight" in after["web-2"]["why"][0] and "chosen" in after["web-2"]["why"][0]
        assert usage(connection) == {"hv1": (2, 1024, 2), "hv2": (2, 1024, 2)}
        row = rows(connection)["web-1"]
        assert (row.host, row.vm_state, row.task_state) == ("hv1", "building", "networking")
        query = sa.select(instance_action.c.details).order_by(instance_action.c.id)
        details = connection.execute(query).scalars().first()
        assert details == {"hints": {}, "scheduler": result["explanations"][0]}


def test_an_instance_with_a_claim_keeps_it(engine: sa.Engine) -> None:
    instances = some(2)
    with transaction(engine) as connection:
        write(connection, instances)
        first = scheduler(connection, {"instances": instances, "compute_hosts": [facts("hv1"), facts("hv2")]})
        before = usage(connection)
        # even when its host could not take it now
        compute_host(connection, {"compute_hosts": [facts("hv1", enabled=False), facts("hv2", memory_mb=1)]})
        again = scheduler(connection, {"instances": instances})
        assert not again["changed"] and "diff" not in again
        assert [server["host"] for server in again["instances"]] == [server["host"] for server in first["instances"]]
        assert usage(connection) == before


def test_a_claim_on_a_host_that_failed_is_moved(engine: sa.Engine) -> None:
    instances = some(1)
    with transaction(engine) as connection:
        hosts = [facts("hv1"), facts("hv2")]
        assert scheduler(connection, {"instances": instances, "compute_hosts": hosts})["instances"][0]["host"] == "hv1"
        retried = [{**instances[0], "attempts": ["hv1"]}]
        result = scheduler(connection, {"instances": retried})
        assert result["changed"] and result["instances"][0]["host"] == "hv2"
        assert usage(connection) == {"hv1": (0, 0, 0), "hv2": (1, 512, 1)}


def test_one_without_a_host_gives_up_all_and_nothing_stays_claimed(engine: sa.Engine) -> None:
    instances = some(9)  # eight fit
    with transaction(engine) as connection:
        write(connection, instances)
        result = scheduler(connection, {"instances": instances, "compute_hosts": [facts("hv1")]})
        assert result["instances"] == [] and len(result["unplaced"]) == 9 and result["changed"]
        messages = {refusal["instance"]["name"]: refusal["message"] for refusal in result["unplaced"]}
        assert messages["web-9"] == (
            "No valid host was found for 'web-9': ram removed 1 (hv1: 0 of 512 MiB free); 0 of 1 hosts remain"
        )
        assert "another of its request found no host" in messages["web-1"]
        assert result["msg"] == f"placed 0 of 9 instances. {messages['web-9']} (and 8 more)"
        assert {explanation["host"] for explanation in result["explanations"]} == {None}
        assert usage(connection) == {"hv1": (0, 0, 0)}
        for name, row in rows(connection).items():
            assert (row.vm_state, row.task_state, row.host) == ("error", None, None)
            fault = row.fault
            assert (fault["code"], fault["message"], fault["reason"]) == (500, messages[name], "no-valid-host")
        ended = connection.execute(sa.select(instance_action.c.message, instance_action.c.finished_at)).all()
        assert {row.message for row in ended} == set(messages.values())
        assert None not in {row.finished_at for row in ended}


def test_as_many_as_fit_when_asked(engine: sa.Engine) -> None:
    instances = some(9)
    with transaction(engine) as connection:
        write(connection, instances)
        result = scheduler(
            connection, {"instances": instances, "compute_hosts": [facts("hv1")], "all_or_nothing": False}
        )
        assert len(result["instances"]) == 8
        assert [refusal["instance"]["name"] for refusal in result["unplaced"]] == ["web-9"]
        assert usage(connection) == {"hv1": (8, 4096, 8)}
        states = {name: row.vm_state for name, row in rows(connection).items()}
        assert states.pop("web-9") == "error" and set(states.values()) == {"building"}


def test_all_or_nothing_holds_for_each_request_by_itself(engine: sa.Engine) -> None:
    # hv1 takes 8: the first request asks for 7, the second for 2 and gets none, the third takes the room that is left
    instances = some(10)
    names = ["first"] * 7 + ["second"] * 2 + ["third"]
    reservations = {server["uuid"]: name for server, name in zip(instances, names)}
    with transaction(engine) as connection:
        write(connection, instances)
        result = scheduler(
            connection, {"instances": instances, "compute_hosts": [facts("hv1")], "reservations": reservations}
        )
        assert {reservations[server["uuid"]] for server in result["instances"]} == {"first", "third"}
        messages = {refusal["instance"]["name"]: refusal["message"] for refusal in result["unplaced"]}
        assert sorted(messages) == ["web-8", "web-9"]
        assert "another of its request found no host" in messages["web-8"]
        assert messages["web-9"].startswith("No valid host was found for 'web-9'")
        assert usage(connection) == {"hv1": (8, 4096, 8)}
        states = {name: row.vm_state for name, row in rows(connection).items()}
        assert {name for name in states if states[name] == "error"} == {"web-8", "web-9"}


def test_a_request_that_lost_one_before_the_choice_is_given_up(engine: sa.Engine) -> None:
    tried, fresh, other = some(3)
    tried["attempts"] = ["hv7", "hv8", "hv9"]
    reservations = {tried["uuid"]: "mine", fresh["uuid"]: "mine", other["uuid"]: "other"}
    with transaction(engine) as connection:
        write(connection, [tried, fresh, other])
        result = scheduler(
            connection,
            {"instances": [tried, fresh, other], "compute_hosts": [facts("hv1")], "reservations": reservations},
        )
        assert [server["uuid"] for server in result["instances"]] == [other["uuid"]]


def test_no_more_attempts_than_allowed(engine: sa.Engine) -> None:
    instances = some(1, attempts=["hv1", "hv2", "hv3"])
    with transaction(engine) as connection:
        write(connection, instances)
        result = scheduler(connection, {"instances": instances, "compute_hosts": [facts("hv4")]})
        assert result["unplaced"][0]["message"] == "'web-1' could not be built in 3 attempts (on hv1, hv2, hv3)"
        assert rows(connection)["web-1"].vm_state == "error"


@pytest.mark.parametrize(
    ("fields", "state"),
    [({"task_state": "deleting"}, "being deleted"), ({"deleted": 5}, "deleted"), ({"vm_state": "active"}, "active")],
)
def test_what_another_run_deletes_or_has_built_is_left_alone(
    engine: sa.Engine, fields: dict[str, t.Any], state: str
) -> None:
    gone = some(1)
    fine = some(1, name="db")
    with transaction(engine) as connection:
        write(connection, gone, **fields)
        write(connection, fine)
        before = rows(connection)["web-1"]
        result = scheduler(connection, {"instances": gone + fine, "compute_hosts": [facts("hv1")]})
        assert [server["name"] for server in result["instances"]] == ["db"]
        assert result["unplaced"][0]["message"] == f"'web-1' is {state}: another run changed it meanwhile"
        assert rows(connection)["web-1"] == before


def test_check_mode_plans_without_rows_and_leaves_nothing(engine: sa.Engine) -> None:
    instances = some(2)
    with transaction(engine, check_mode=True) as connection:
        result = scheduler(connection, {"instances": instances, "compute_hosts": [facts("hv1"), facts("hv2")]})
        assert [server["host"] for server in result["instances"]] == ["hv1", "hv2"]
    with transaction(engine) as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(host_table)).scalar() == 0
        assert connection.execute(sa.select(sa.func.count()).select_from(allocation)).scalar() == 0


def test_release_gives_back_exactly_once(engine: sa.Engine) -> None:
    instances = some(4)
    uuids = [server["uuid"] for server in instances]
    with transaction(engine) as connection:
        scheduler(connection, {"instances": instances, "compute_hosts": [facts("hv1"), facts("hv2")]})
        assert release_claims(connection, [uuids[0], uuids[1], uuids[0], "unknown"]) == 2
        assert usage(connection) == {"hv1": (1, 512, 1), "hv2": (1, 512, 1)}
        assert release_claims(connection, uuids) == 2
        assert release_claims(connection, uuids) == 0
        assert usage(connection) == {"hv1": (0, 0, 0), "hv2": (0, 0, 0)}
