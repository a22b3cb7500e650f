# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts report, and which of them are candidates."""

from __future__ import annotations

import multiprocessing
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import compute_host as host_table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import instance_action
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.claims import release_claims
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement.host_states import host_states
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks import scheduler as scheduling
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.compute_host import compute_host
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.scheduler import _claim, scheduler
from tests.support.patience import GENEROUS
from tests.unit._ledger.test_claims import facts, some, usage, write

pytestmark = pytest.mark.both_databases


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
        states = host_states(connection, *args, **more)
        if len(interruptions) < limit:
            interruptions.append(1)
            connection.execute(sa.update(host_table).values(generation=host_table.c.generation + 1))
        return states

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
        worker.join(GENEROUS)
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    with transaction(engine) as connection:
        # 4 processes x 4 rounds x (1 + 3 - 1) stay: far more than fit, so that both are full to the last MiB
        assert usage(connection) == {"hv1": (8, 4096, 8), "hv2": (4, 2048, 4)}


def test_who_asks_for_all_hears_of_every_host_and_the_record_stays_short(engine: sa.Engine) -> None:
    hosts = [facts(f"hv{number:03}", up=number % 2 == 0, down_reason="off") for number in range(300)]
    asked = some(1)
    with transaction(engine) as connection:
        write(connection, asked)
        placement = scheduler(connection, {"instances": asked, "compute_hosts": hosts, "explain_all": True})
        (recorded,) = connection.execute(sa.select(instance_action.c.details)).scalars()
    (explained,) = placement["explanations"]
    assert {line.split(":")[0] for line in explained["lines"]} == {host["name"] for host in hosts}
    assert len(recorded["scheduler"]["weights"]) == 10
    assert len(recorded["scheduler"]["lines"]) < 25
