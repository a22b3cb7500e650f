# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests of others on a host count when the scheduler counts, and when the ledger does."""

from __future__ import annotations

import typing as t
import uuid

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import compute_host as host_table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks import scheduler as scheduling
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.compute_host import compute_host
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.scheduler import scheduler
from tests.support.examples import part_of
from tests.unit._ledger.test_claims import facts, some, write

ROOM = {"vcpus": 8, "memory_mb": 4608, "disk_gb": 50}  # 512 MiB of the memory are reserved


def guest(state: str = "running", **amounts: t.Any) -> dict[str, t.Any]:
    usual = {"vcpus": 2, "memory_mb": 1024, "disk_gb": 10}
    return {"uuid": str(uuid.uuid4()), "name": "db", "state": state, **usual, **amounts}


def others(connection: sa.Connection) -> dict[str, tuple[int, int, int]]:
    c = host_table.c
    query = sa.select(c.name, c.vcpus_others, c.memory_mb_others, c.disk_gb_others)
    return {row[0]: tuple(row[1:]) for row in connection.execute(query)}


def place(connection: sa.Connection, count: int, *hosts: dict[str, t.Any]) -> dict[str, t.Any]:
    instances = some(count)
    write(connection, instances)
    return scheduler(connection, {"instances": instances, "compute_hosts": list(hosts), "all_or_nothing": False})


@pytest.mark.parametrize(
    ("count", "sums"), [("running", (2, 1024, 15)), ("all", (6, 3072, 15)), ("none", (0, 0, 0)), (None, (2, 1024, 15))]
)
def test_who_counts_is_the_operators_choice(count: str | None, sums: tuple[int, int, int], engine: sa.Engine) -> None:
    domains = [guest(), guest("shutoff", vcpus=4, memory_mb=2048, disk_gb=5)]
    chosen = {} if count is None else {"count_foreign": count}
    with transaction(engine) as connection:
        compute_host(connection, {"compute_hosts": [facts("hv1", domains=domains, **chosen)]})
        assert others(connection) == {"hv1": sums}
        # the choice stays, and so do the sums of a host that does not say what it runs
        compute_host(connection, {"compute_hosts": [facts("hv1", domains=domains)]})
        compute_host(connection, {"compute_hosts": [facts("hv1")]})
        compute_host(connection, {"compute_hosts": [{"name": "hv1", "up": False, "down_reason": "gone"}]})
        assert others(connection) == {"hv1": sums}


def test_new_hosts_are_recorded_together_whatever_each_says(engine: sa.Engine) -> None:
    """A first launch, where one host of the inventory is down, and one cannot say which guests it has."""
    down = {"name": "hv2", "up": False, "down_reason": "gone"}
    with transaction(engine) as connection:
        compute_host(connection, {"compute_hosts": [facts("hv1", domains=[guest()]), down, facts("hv3")]})
        assert others(connection) == {"hv1": (2, 1024, 10), "hv2": (0, 0, 0), "hv3": (0, 0, 0)}


def test_an_unknown_choice_is_refused(engine: sa.Engine) -> None:
    with transaction(engine) as connection, pytest.raises(NovaliteError, match="'some' is none of running, all, none"):
        compute_host(connection, {"compute_hosts": [facts("hv1", domains=[], count_foreign="some")]})


def test_a_guest_of_this_ledger_counts_once(engine: sa.Engine) -> None:
    instances = some(1)
    with transaction(engine) as connection:
        write(connection, instances)
        scheduler(connection, {"instances": instances, "compute_hosts": [facts("hv1")]})
        mine = guest(uuid=instances[0]["uuid"])
        result = compute_host(connection, {"compute_hosts": [facts("hv1", domains=[mine])]})
        assert others(connection) == {"hv1": (0, 0, 0)} and not result["changed"]


def test_instances_go_where_others_leave_room(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        busy = facts("hv1", domains=[guest(memory_mb=3584)])
        result = place(connection, 2, busy, facts("hv2", domains=[]))
        assert [instance["host"] for instance in result["instances"]] == ["hv2", "hv2"]
        assert "used by others: 2 vCPUs, 3584 MiB, 10 GiB" in " ".join(result["explanations"][0]["lines"])


def test_the_reason_names_what_others_use(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        result = place(connection, 1, facts("hv1", domains=[guest(memory_mb=3900)]))
        assert "hv1: 196 of 512 MiB free, 3900 used by others" in result["unplaced"][0]["message"]


@pytest.mark.parametrize("amount", sorted(ROOM))
def test_the_write_itself_counts_what_others_use(
    amount: str,
    engine: sa.Engine,  # the fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A choice that did not know of them (a host reported them just then) is refused by the claim."""
    with transaction(engine) as connection:
        compute_host(connection, {"compute_hosts": [facts("hv1", domains=[{**guest(), amount: 10_000}])]})
        seen = scheduling.host_states

        def blind(*args: t.Any, **kwargs: t.Any) -> t.Any:
            states, versions = seen(*args, **kwargs)
            unused: dict[str, t.Any] = {f"{amount}_used": 0}
            return [state._replace(**unused) for state in states], versions

        monkeypatch.setattr(scheduling, "host_states", blind)
        with pytest.raises(ConflictError, match="changed by other runs"):
            place(connection, 1)


@pytest.mark.both_databases
@settings(max_examples=part_of(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    guests=st.lists(
        st.builds(
            guest,
            st.sampled_from(["running", "shutoff"]),
            vcpus=st.integers(0, 40),
            memory_mb=st.integers(0, 5000),
            disk_gb=st.integers(0, 60),
        ),
        max_size=4,
    ),
    count=st.integers(1, 12),
    choice=st.sampled_from(["running", "all", "none"]),
)
def test_no_claim_ever_goes_beyond_what_others_leave(
    guests: list[dict[str, t.Any]], count: int, choice: str, engine: sa.Engine
) -> None:
    with transaction(engine, check_mode=True) as connection:  # rolled back: each example has an empty ledger
        result = place(connection, count, facts("hv1", domains=guests, count_foreign=choice))
        row = connection.execute(sa.select(host_table)).one()
        limits = (row.vcpus * row.cpu_ratio, row.memory_mb - 512, row.disk_gb)
        used = (row.vcpus_used, row.memory_mb_used, row.disk_gb_used)
        counted = [
            domain for domain in guests if choice == "all" or (choice == "running" and domain["state"] == "running")
        ]
        filed = guests if choice != "none" else []
        sums = [sum(domain[key] for domain in counted) for key in ("vcpus", "memory_mb")]
        sums.append(sum(domain["disk_gb"] for domain in filed))
        placed = len(result["instances"])
        assert used == (placed, 512 * placed, placed)
        for taken, other, limit in zip(used, sums, limits):
            assert placed == 0 or taken + other <= limit
        # and no less than what they leave: the next one would not have fitted
        fits = min((limit - other) // each for other, limit, each in zip(sums, limits, (1, 512, 1)))
        assert placed == min(count, max(0, fits))
