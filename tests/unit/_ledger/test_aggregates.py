# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Aggregates and zones, and hosts that are taken out of scheduling."""

from __future__ import annotations

import concurrent.futures
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import aggregates
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.aggregates import write_aggregates
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement.host_states import host_states
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.compute_host import compute_host
from tests.support.calls import a_call
from tests.support.patience import GENEROUS
from tests.unit._ledger.conftest import on_postgresql

Run = t.Callable[..., dict[str, t.Any]]


@pytest.fixture
def hosts(ledger: sa.Engine) -> t.Callable[..., t.Any]:
    """Record facts of hosts; return how the scheduler sees all of them, by name."""

    def report(*entries: dict[str, t.Any]) -> dict[str, t.Any]:
        usual = {"up": True, "vcpus": 8, "memory_mb": 4608, "disk_gb": 50, "traits": []}
        with transaction(ledger) as connection:
            if entries:
                compute_host(connection, {"compute_hosts": [{**usual, **entry} for entry in entries]})
            states, _versions = host_states(connection, int(time.time()))
        return {state.name: state for state in states}

    report({"name": "hv1", "address": "192.0.2.1"}, {"name": "hv2"})
    return report


def test_aggregates_are_made_changed_and_removed(run: Run, hosts: t.Any) -> None:
    made = run("aggregate", aggregates=[{"name": "fast", "metadata": {"ssd": True}, "hosts": ["hv2", "hv1"]}])
    assert made["changed"]
    assert made["aggregates"] == [
        {"id": 1, "name": "fast", "zone": None, "metadata": {"ssd": "true"}, "hosts": ["hv1", "hv2"]}
    ]
    assert not run("aggregate", aggregates=[{"name": "fast", "hosts": ["hv1", "hv2"]}])["changed"]
    changed = run("aggregate", aggregates=[{"name": "fast", "zone": "az", "hosts": ["hv1"]}])
    assert changed["diff"]["before"]["aggregates"]["fast"]["hosts"] == ["hv1", "hv2"]
    seen = hosts()
    assert (seen["hv1"].zone, seen["hv2"].zone) == ("az", "nova")
    assert [(aggregate.name, aggregate.metadata) for aggregate in seen["hv1"].aggregates] == [("fast", {"ssd": "true"})]
    assert run("aggregate", aggregates=[{"name": "fast"}], state="absent")["changed"]
    assert not run("aggregate", aggregates=[{"name": "fast"}], state="absent")["changed"]
    assert hosts()["hv1"].zone == "nova"


def test_check_mode_changes_no_aggregate(run: Run, hosts: t.Any) -> None:
    assert run("aggregate", check_mode=True, aggregates=[{"name": "fast", "zone": "az", "hosts": ["hv1"]}])["changed"]
    assert hosts()["hv1"].zone == "nova"


def test_an_aggregate_that_the_inventory_names_has_its_metadata(run: Run, hosts: t.Any) -> None:
    run("aggregate", aggregates=[{"name": "fast", "zone": "az", "metadata": {"ssd": "1"}}])
    seen = hosts({"name": "hv1", "aggregates": ["fast", "loud"]})["hv1"]
    assert [(aggregate.name, aggregate.zone, aggregate.metadata) for aggregate in seen.aggregates] == [
        ("fast", "az", {"ssd": "1"}),
        ("loud", None, {}),
    ]
    assert (seen.zone, seen.address) == ("az", None)


def test_no_host_is_in_two_zones(run: Run, hosts: t.Any) -> None:
    run("aggregate", aggregates=[{"name": "a", "zone": "az-a", "hosts": ["hv1"]}])
    message = r"'hv1' would be in two availability zones, 'az-a' .aggregate 'a'. and 'az-b' .aggregate 'b'."
    with pytest.raises(ConflictError, match=message):
        run("aggregate", aggregates=[{"name": "b", "zone": "az-b", "hosts": ["hv1"]}])
    with pytest.raises(ConflictError, match=r"'az-a' .aggregate 'a'. and 'az-c' .its own zone in the inventory."):
        hosts({"name": "hv1", "zone": "az-c"})
    # the same zone twice is one zone, and "nova" is what a host says that says nothing
    run("aggregate", aggregates=[{"name": "b", "zone": "az-a", "hosts": ["hv1"]}])
    assert hosts({"name": "hv1", "zone": "nova"})["hv1"].zone == "az-a"


def test_an_aggregate_becomes_no_second_zone_of_a_host_whose_inventory_names_it(run: Run, hosts: t.Any) -> None:
    run("aggregate", aggregates=[{"name": "racks"}])
    hosts({"name": "hv1", "aggregates": ["racks"], "zone": "az-a"})
    with pytest.raises(ConflictError, match=r"'hv1' would be in two availability zones, 'az-a' .* and 'az-b'"):
        run("aggregate", aggregates=[{"name": "racks", "zone": "az-b"}])
    assert hosts()["hv1"].zone == "az-a"
    run("aggregate", aggregates=[{"name": "racks", "zone": "az-a"}])


@pytest.mark.both_databases
@on_postgresql
def test_two_runs_at_once_put_a_host_into_one_zone(ledger: sa.Engine, hosts: t.Any) -> None:
    def put(name: str) -> None:
        item = {"name": name, "zone": f"az-{name}", "metadata": None, "hosts": ["hv1"]}
        with transaction(ledger) as connection:
            write_aggregates(connection, [item])

    with concurrent.futures.ThreadPoolExecutor(1) as worker:
        with transaction(ledger) as connection:
            write_aggregates(connection, [{"name": "a", "zone": "az-a", "metadata": None, "hosts": ["hv1"]}])
            second = worker.submit(put, "b")
            with pytest.raises(concurrent.futures.TimeoutError):  # it waits for the first one
                second.result(timeout=1)
        with pytest.raises(ConflictError, match="two availability zones"):
            second.result(timeout=GENEROUS)
    assert hosts()["hv1"].zone == "az-a"


def test_a_name_that_an_inventory_says_brings_no_second_zone(ledger: sa.Engine, hosts: t.Any) -> None:
    hosts({"name": "hv1", "zone": "z1", "aggregates": ["ssd"]})
    with pytest.raises(ConflictError, match="two availability zones"), transaction(ledger) as connection:
        call = a_call(connection)
        aggregates.update(call, aggregates.create(call, "other", "z2"), name="ssd")
    assert hosts()["hv1"].zone == "z1"


def test_what_cannot_be_is_refused(run: Run, hosts: t.Any) -> None:
    with pytest.raises(NotFoundError, match="unknown compute host 'hv9'"):
        run("aggregate", aggregates=[{"name": "a", "hosts": ["hv9"]}])
    with pytest.raises(NovaliteError, match="colon"):
        run("aggregate", aggregates=[{"name": "a", "zone": "az:hv1"}])
    with pytest.raises(NotFoundError, match="unknown compute host 'hv9'"):
        run("compute_service", hosts=["hv1", "hv9"], enabled=False)
    with pytest.raises(NovaliteError, match="for hosts that are enabled"):
        run("compute_service", hosts=["hv1"], enabled=True, disabled_reason="fan")


def test_a_disabled_host_stays_so_until_somebody_says_otherwise(run: Run, hosts: t.Any) -> None:
    first = run("compute_service", hosts=["hv1"], enabled=False, disabled_reason="fan")
    assert first["changed"] and first["compute_hosts"] == [{"name": "hv1", "enabled": False, "disabled_reason": "fan"}]
    assert not run("compute_service", hosts=["hv1"], enabled=False)["changed"]
    # a gathering that says nothing of it changes nothing; an inventory that does, wins
    seen = hosts({"name": "hv1"})
    assert (seen["hv1"].enabled, seen["hv1"].disabled_reason, seen["hv2"].enabled) == (False, "fan", True)
    seen = hosts({"name": "hv1", "enabled": True})
    assert (seen["hv1"].enabled, seen["hv1"].disabled_reason) == (True, None)
    assert not run("compute_service", hosts=["hv1"], enabled=True)["changed"]
