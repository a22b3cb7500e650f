# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims: guarded, repeatable, all or nothing, given back exactly, and safe with several processes at once."""

from __future__ import annotations

import multiprocessing
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import (
    allocation,
    instance,
    instance_action,
    project,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import compute_host as host_table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import scheduler as scheduling
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.compute_host import compute_host
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.scheduler import _claim, scheduler
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.claims import release_claims
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.compute_hosts import host_states

FLAVOR = {"vcpus": 1, "memory_mb": 512, "root_gb": 1, "ephemeral_gb": 0, "swap_mb": 0, "extra_specs": {}}
IMAGE = {"virtual_size": 1024, "min_ram_mb": 0, "properties": {}}
PROJECT = "0" * 32


@pytest.fixture
def engine(ledger_url: str) -> t.Iterator[sa.Engine]:
    opened = open_ledger(url=ledger_url)
    yield opened
    opened.dispose()


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
        connection.execute(sa.insert(project).values(id=PROJECT, name="demo", created_at=0))
    for server in instances:
        row = {
            "uuid": server["uuid"],
            "project_id": PROJECT,
            "name": server["name"],
            "hostname": server["name"],
            "flavor": FLAVOR,
            "image": IMAGE,
            "metadata": {},
            "vm_state": "building",
            "task_state": "scheduling",
            "attempts": [],
            "created_at": 1,
            "updated_at": 1,
        }
        connection.execute(sa.insert(instance).values(**{**row, **fields}))
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
            assert (row.fault["code"], row.fault["message"]) == (500, messages[name])
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


def test_hosts_outside_the_limit_are_no_candidates(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        result = scheduler(
            connection, {"instances": some(2), "compute_hosts": [facts("hv1"), facts("hv2")], "limit_to": ["hv2"]}
        )
        assert {server["host"] for server in result["instances"]} == {"hv2"}
        assert result["explanations"][0]["hosts"] == 1


def test_a_host_that_has_not_reported_for_long_is_down(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        compute_host(connection, {"compute_hosts": [facts("hv1")]})
        connection.execute(sa.update(host_table).values(last_seen_at=host_table.c.last_seen_at - 100))
        result = scheduler(connection, {"instances": some(1)})
        assert "compute removed 1 (hv1: was last seen 10" in result["unplaced"][0]["message"]
        assert scheduler(connection, {"instances": some(1), "service_down_time": 200})["unplaced"] == []


def test_a_host_that_the_run_has_seen_is_up_however_long_ago_that_was(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        compute_host(connection, {"compute_hosts": [facts("hv1"), facts("hv2")]})
        connection.execute(sa.update(host_table).values(last_seen_at=host_table.c.last_seen_at - 3600))
        (lost,) = scheduler(connection, {"instances": some(1)})["unplaced"]
        assert "was last seen 36" in lost["message"]
        (placed,) = scheduler(connection, {"instances": some(1), "seen_hosts": ["hv2"]})["instances"]
        assert placed["host"] == "hv2"


def test_a_host_that_was_found_to_be_down_is_not_up_for_having_been_seen(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        compute_host(connection, {"compute_hosts": [facts("hv1")]})
        connection.execute(sa.update(host_table).values(up=False, down_reason="libvirtd does not answer"))
        (lost,) = scheduler(connection, {"instances": some(1), "seen_hosts": ["hv1"]})["unplaced"]
        assert "libvirtd does not answer" in lost["message"]
        assert scheduler(connection, {"instances": some(1), "compute_hosts": [facts("hv1")]})["unplaced"] == []


def test_a_host_that_changed_after_the_choice_is_not_claimed_on_old_terms(
    engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another controller claims between our read and our write, as PostgreSQL allows: the choice is made again."""
    interruptions: list[int] = []

    def interrupted(connection: sa.Connection, *args: t.Any, **more: t.Any) -> t.Any:
        found = host_states(connection, *args, **more)
        if len(interruptions) < limit:
            interruptions.append(1)
            connection.execute(sa.update(host_table).values(generation=host_table.c.generation + 1))
        return found

    monkeypatch.setattr(scheduling, "host_states", interrupted)
    with transaction(engine) as connection:
        compute_host(connection, {"compute_hosts": [facts("hv1")]})
        limit = 9
        assert scheduler(connection, {"instances": some(1)})["instances"][0]["host"] == "hv1"
        assert usage(connection) == {"hv1": (1, 512, 1)}
        assert len(interruptions) == 9
        limit = 100
        with pytest.raises(ConflictError, match="10 choices in a row"):
            scheduler(connection, {"instances": some(1)})
        assert usage(connection) == {"hv1": (1, 512, 1)}


def test_the_write_itself_refuses_to_overcommit(engine: sa.Engine) -> None:
    """Even with the right generation: the sum of a batch is checked where it is written."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.placements import StaleChoiceError
    from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import request_of
    from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.select import select

    with transaction(engine) as connection:
        compute_host(connection, {"compute_hosts": [facts("hv1")]})
        states, versions = host_states(connection, 0)
        one_by_one = [select(states, [request_of(server)])[0] for server in some(9)]
        with pytest.raises(StaleChoiceError):
            _claim(connection, one_by_one, versions, 0)
        _claim(connection, one_by_one[:8], versions, 0)
        assert usage(connection) == {"hv1": (8, 4096, 8)}


def test_recording_hosts(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        guest = {"uuid": "x", "name": "db", "state": "shutoff", "vcpus": 1, "memory_mb": 64, "disk_gb": 0}
        new = compute_host(connection, {"compute_hosts": [facts("hv1", domain_type="qemu", domains=[guest])]})
        (row,) = new["compute_hosts"]
        assert new["changed"] and row["facts"] == {"arch": "x86_64", "domain_type": "qemu"}
        assert (row["cpu_ratio"], row["ram_ratio"], row["disk_ratio"]) == (4.0, 1.0, 1.0)
        assert (row["reserved_vcpus"], row["reserved_memory_mb"], row["reserved_disk_gb"]) == (0, 512, 0)
        assert (row["zone"], row["aggregates"], row["enabled"]) == ("nova", [], True)
        same = compute_host(connection, {"compute_hosts": [facts("hv1", domain_type="qemu")]})
        assert not same["changed"]

        down = compute_host(connection, {"compute_hosts": [{"name": "hv1", "up": False, "down_reason": "no ssh"}]})
        assert down["diff"]["after"] == {"hv1": {"up": False, "down_reason": "no ssh"}}
        assert (down["compute_hosts"][0]["vcpus"], down["compute_hosts"][0]["facts"]) == (8, row["facts"])

        policy = {"enabled": False, "disabled_reason": "new disks", "zone": "west", "ram_ratio": 1.5}
        changed = compute_host(connection, {"compute_hosts": [facts("hv1", domain_type="qemu", **policy)]})
        assert changed["diff"]["after"]["hv1"] == {**policy, "up": True, "down_reason": None}
        kept = compute_host(connection, {"compute_hosts": [facts("hv1", domain_type="qemu")]})
        assert not kept["changed"] and kept["compute_hosts"][0]["zone"] == "west"
        enabled = compute_host(connection, {"compute_hosts": [facts("hv1", domain_type="qemu", enabled=True)]})
        assert enabled["diff"]["after"]["hv1"] == {"enabled": True, "disabled_reason": None}


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"up": True}, "without its name"),
        ({"name": "hv1"}, "'hv1' reports vcpus=None"),
        (facts("hv1", memory_mb=-1), "memory_mb=-1"),
        (facts("hv1", cpu_ratio=0.0), "cpu_ratio=0.0"),
        (facts("hv1", reserved_disk_gb=-2), "reserved_disk_gb=-2"),
    ],
)
def test_facts_that_make_no_sense_are_refused(engine: sa.Engine, entry: dict[str, t.Any], reason: str) -> None:
    with transaction(engine) as connection, pytest.raises(NovaliteError, match=reason):
        compute_host(connection, {"compute_hosts": [entry]})


def _launch(url: str, rounds: int, sizes: t.Sequence[int]) -> None:
    engine = open_ledger(url=url)
    for _round in range(rounds):
        for size in sizes:
            instances = some(size)
            with transaction(engine) as connection:
                placed = scheduler(connection, {"instances": instances, "all_or_nothing": False})["instances"]
            with transaction(engine) as connection:
                release_claims(connection, [server["uuid"] for server in placed[: size // 2]])
    engine.dispose()


def test_processes_at_once_never_overcommit(engine: sa.Engine, ledger_url: str) -> None:
    with transaction(engine) as connection:
        compute_host(connection, {"compute_hosts": [facts("hv1"), facts("hv2", memory_mb=2560)]})
    engine.dispose()
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_launch, args=(ledger_url, 4, (1, 3))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    with transaction(engine) as connection:
        # 4 processes x 4 rounds x (1 + 3 - 1) stay: far more than fit, so that both are full to the last MiB
        assert usage(connection) == {"hv1": (8, 4096, 8), "hv2": (4, 2048, 4)}


def test_who_asks_for_all_hears_of_every_host_and_the_record_stays_short(engine: sa.Engine) -> None:
    hosts = [facts(f"hv{number:03}", up=number % 2 == 0, down_reason="off") for number in range(300)]
    asked = some(1)
    with transaction(engine) as connection:
        write(connection, asked)
        told = scheduler(connection, {"instances": asked, "compute_hosts": hosts, "explain_all": True})
        (recorded,) = connection.execute(sa.select(instance_action.c.details)).scalars()
    (explained,) = told["explanations"]
    assert {line.split(":")[0] for line in explained["lines"]} == {host["name"] for host in hosts}
    assert len(recorded["scheduler"]["weights"]) == 10
    assert len(recorded["scheduler"]["lines"]) < 25
