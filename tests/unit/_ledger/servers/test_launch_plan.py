# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A launch is scheduled, addressed and planned as one, or not at all; what a host could not build is planned anew."""

from __future__ import annotations

import sys
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._graph import launch_steps
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.compute_hosts import record
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import launch_calls
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.launch_plan import launch_plan
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.launch_record import launch_record
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import spec_of_step
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.explain import without_reasons
from tests.unit._ledger.servers.conftest import Cloud

FACTS = {
    **{"up": True, "vcpus": 8, "memory_mb": 4096, "disk_gb": 50, "traits": [], "arch": "x86_64"},
    **{"domain_type": "qemu", "machine": "pc", "emulator": "/usr/bin/qemu-system-x86_64", "disk_cache": "none"},
}
HOSTS = [{"name": "hv1", "address": "192.0.2.1", **FACTS}, {"name": "hv2", "address": "192.0.2.2", **FACTS}]


def called(cloud: Cloud, operation: t.Any, **params: t.Any) -> dict[str, t.Any]:
    defaults = {name: option.get("default") for name, option in spec_of_step(sys.modules[operation.__module__]).items()}
    with transaction(cloud.engine) as connection:
        return t.cast("dict[str, t.Any]", operation(connection, {**defaults, "compute_hosts": HOSTS, **params}))


def planned(cloud: Cloud, instances: list[dict[str, t.Any]], **params: t.Any) -> dict[str, t.Any]:
    return called(cloud, launch_plan, instances=instances, **params)


def asked(cloud: Cloud, count: int = 1, flavor: str = "m1.tiny") -> list[dict[str, t.Any]]:
    request = {"name": "web", "count": count, "flavor": flavor, "image": "ami-tiny", "key": "test"}
    return t.cast("list[dict[str, t.Any]]", cloud.server(request)["to_build"])


def held(cloud: Cloud) -> tuple[int, int]:
    """How many claims there are, and how many addresses of interfaces."""
    claims = sa.select(sa.func.count()).select_from(tables.allocation)
    addresses = sa.select(sa.func.count()).where(tables.fixed_ip.c.owner.like("vif:%"))
    return cloud.rows(claims)[0][0], cloud.rows(addresses)[0][0]


def test_a_launch_is_placed_addressed_and_planned(cloud: Cloud) -> None:
    launch = planned(cloud, asked(cloud, 2))
    assert {instance["vm_state"] for instance in launch["instances"]} == {"building"}
    assert sorted(launch["hosts"]) == sorted({instance["host"] for instance in launch["instances"]})
    names = [name for plans in launch["hosts"].values() for name in plans["build"]["names"]]
    assert sorted(names) == ["web-1", "web-2"]
    assert all(instance["nics"][0]["ip"] for instance in launch["instances"])
    assert (held(cloud), launch["changed"], launch["launch"]["failures"]) == ((2, 2), True, [])
    assert len(launch["diff"]) == 2  # hosts, and addresses


def test_nothing_is_planned_before_all_hosts_are_known(cloud: Cloud) -> None:
    expected: dict[str, t.Any] = {"hv1": {"address": "192.0.2.1"}, "hv2": {"address": "192.0.2.2"}}
    instances, now = asked(cloud, 2), int(time.time())
    cloud.write(sa.delete(tables.compute_host))
    with transaction(cloud.engine) as connection:
        record(connection, HOSTS[:1], now)
        record(connection, HOSTS[1:], now - 600)
    before = cloud.dump()
    look = planned(cloud, instances, expected=expected, max_age=60, compute_hosts=None)
    assert (look["ask"], look["fresh"], look["hosts"], look["changed"]) == (["hv2"], ["hv1"], {}, False)
    assert not any(look["targets"].values()) and cloud.dump() == before
    launch = planned(cloud, instances, expected=expected, max_age=900, compute_hosts=None)
    assert "ask" not in launch and launch["launch"]["seen_hosts"] == ["hv1", "hv2"]
    assert held(cloud) == (2, 2)
    assert all("room" in plans["build"] for plans in launch["hosts"].values())


def test_no_address_takes_the_claims_back(cloud: Cloud) -> None:
    cloud.write(sa.update(tables.fixed_ip).where(tables.fixed_ip.c.reserved.is_(None)).values(reserved="taken"))
    launch = planned(cloud, asked(cloud, 2))
    (failure,) = launch["launch"]["failures"]
    assert "private" in failure and launch["refused"] == failure
    assert (launch["hosts"], held(cloud)) == ({}, (0, 0))
    assert [(server["vm_state"], server["fault"]["message"]) for server in cloud.info()] == [("error", failure)] * 2


def test_no_plan_takes_claims_and_addresses_back(cloud: Cloud) -> None:
    cloud.write(sa.update(tables.network).values(vni=42))
    launch = planned(cloud, asked(cloud), compute_hosts=[{**host, "address": None} for host in HOSTS])
    (failure,) = launch["launch"]["failures"]
    assert "has no tunnel address" in failure
    assert (launch["targets"]["controller"], held(cloud)) == ([], (0, 0))


def test_what_is_of_several_requests_waits_for_a_run_of_its_own(cloud: Cloud) -> None:
    cloud.write(sa.update(tables.fixed_ip).where(tables.fixed_ip.c.reserved.is_(None)).values(reserved="taken"))
    planned(cloud, asked(cloud), alone=False)
    assert [server["vm_state"] for server in cloud.info()] == ["building"]


OFFICE = [{"kind": "gateway", "cidr": "10.20.0.1", "device": "eth0"}]  # in the range of the network


def test_a_host_that_came_to_live_in_the_networks_range_is_left_out(cloud: Cloud) -> None:
    hosts = [{**HOSTS[0], "places": OFFICE}, HOSTS[1]]
    launch = planned(cloud, asked(cloud, 2), compute_hosts=hosts)
    assert {instance["host"] for instance in launch["instances"]} == {"hv2"}


def test_where_all_hosts_live_in_it_the_launch_fails_with_the_reason(cloud: Cloud) -> None:
    launch = planned(cloud, asked(cloud), compute_hosts=[{**host, "places": OFFICE} for host in HOSTS])
    (failure,) = launch["launch"]["failures"]
    assert "hv1: lives in 10.20.0.0/28, by its gateway 10.20.0.1 (eth0)" in failure
    assert held(cloud) == (0, 0)


def test_an_isolated_network_is_in_a_namespace_wherever_the_host_lives(cloud: Cloud) -> None:
    cloud.write(sa.update(tables.network).values(isolated=True))
    launch = planned(cloud, asked(cloud), compute_hosts=[{**host, "places": OFFICE} for host in HOSTS])
    assert launch["launch"]["failures"] == []


def test_no_host_is_a_failure_with_its_reason(cloud: Cloud) -> None:
    launch = planned(cloud, asked(cloud, flavor="m1.large"))
    assert launch["launch"]["failures"][0].startswith("No valid host was found for 'web'")
    assert ("refused" in launch, held(cloud)) == (False, (0, 0))


@pytest.mark.parametrize("alone", [True, False])
def test_what_a_host_failed_to_build_is_planned_for_the_next(cloud: Cloud, alone: bool) -> None:
    launch = planned(cloud, asked(cloud))
    (first,) = launch["instances"]
    outcome = {"uuids": [first["uuid"]], "host": first["host"], "state": "retry", "reason": "the disk is full"}
    again = called(
        cloud, launch_record, launch=launch["launch"], plans=launch["hosts"], outcomes=[outcome], alone=alone
    )
    (second,) = again["instances"]
    if alone:
        assert second["host"] not in (None, first["host"])
        assert (list(again["hosts"]), held(cloud)) == ([second["host"]], (1, 1))
    else:
        assert (second["host"], again["hosts"], held(cloud)[0]) == (None, {}, 0)


def test_the_reason_of_the_last_host_is_kept_where_no_other_fits(cloud: Cloud) -> None:
    launch = planned(cloud, asked(cloud))
    (server,) = launch["instances"]
    cloud.change_host("hv2" if server["host"] == "hv1" else "hv1", enabled=False)
    outcome = {"uuids": [server["uuid"]], "host": server["host"], "state": "retry", "reason": "this machine is hv7"}
    params = {"launch": launch["launch"], "plans": launch["hosts"], "outcomes": [outcome]}
    ended = called(cloud, launch_record, **params)
    (failure,) = ended["launch"]["failures"]
    assert failure.startswith("this machine is hv7. No valid host was found for 'web': ")
    (kept,) = cloud.info()
    assert kept["fault"]["message"] == failure


CAUSES = ("No space left on device", "Permission denied", "no free address in network private")


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("length", [0, 100, 250, 2000])
def test_the_cause_is_kept_however_long_the_story_is(cloud: Cloud, cause: str, length: int) -> None:
    """In the fault, in the action log, and for who may not see why other hosts do not fit."""
    launch = planned(cloud, asked(cloud))
    (server,) = launch["instances"]
    cloud.change_host("hv2" if server["host"] == "hv1" else "hv1", enabled=False)
    reason = f"Bring the images into the cache: Action failed: {'x' * length} {cause}"
    outcome = {"uuids": [server["uuid"]], "host": server["host"], "state": "retry", "reason": reason}
    params = {"launch": launch["launch"], "plans": launch["hosts"], "outcomes": [outcome]}
    ended = called(cloud, launch_record, **params)
    (failure,) = ended["launch"]["failures"]
    (kept,) = cloud.info()
    messages = [failure, kept["fault"]["message"], without_reasons(failure)]
    assert all(f"{cause}. No valid host was found" in message for message in messages), messages
    logged = cloud.rows(sa.select(tables.instance_action.c.message))
    assert any(message and f"{cause}. No valid host was found" in message for (message,) in logged)


def test_a_machine_with_two_names_ends_the_launch_before_anything_is_recorded(cloud: Cloud) -> None:
    before = cloud.rows(sa.select(tables.compute_host))
    hosts = [{**host, "identity": {"machine_id": "a" * 32}} for host in HOSTS]
    launch = planned(cloud, asked(cloud), compute_hosts=hosts)
    assert "this machine is hv2 of this ledger, and hv1 is expected here" in launch["launch"]["failures"][0]
    assert (held(cloud), cloud.rows(sa.select(tables.compute_host))) == ((0, 0), before)


def test_a_launch_on_other_hosts_warns_of_a_machine_that_was_refused(cloud: Cloud) -> None:
    refused = {"name": "hv1", "up": False, "refused_host": True, "down_reason": "hv1: this machine is hv7"}
    launch = planned(cloud, asked(cloud), compute_hosts=[refused, HOSTS[1]])
    assert (launch["instances"][0]["host"], launch["warnings"]) == ("hv2", ["hv1: this machine is hv7"])
    assert "warnings" not in planned(cloud, [])


def test_what_was_built_and_what_was_not_is_carried_to_the_end(cloud: Cloud) -> None:
    launch = planned(cloud, asked(cloud))
    (server,) = launch["instances"]
    so_far = {"built": [{"name": "before"}], "failures": ["no room"], "silent": [{"name": "before"}]}
    outcome = {"uuids": [server["uuid"]], "host": server["host"], "state": "active", "silent": [{"name": "web"}]}
    ended = called(cloud, launch_record, launch=so_far, plans=launch["hosts"], outcomes=[outcome])
    assert [instance["name"] for instance in ended["launch"]["built"]] == ["before", "web"]
    assert ended["launch"]["failures"] == ["no room"]
    assert [guest["name"] for guest in ended["launch"]["silent"]] == ["before", "web"]
    assert (ended["hosts"], ended["targets"]["controller"]) == ({}, [])


def test_a_guest_that_a_host_names_twice_is_reported_once(cloud: Cloud) -> None:
    launch = planned(cloud, asked(cloud))
    (server,) = launch["instances"]
    silent = [{"name": "web", "message": "no answer"}]
    outcome = {"uuids": [server["uuid"]], "host": server["host"], "state": "active", "silent": silent}
    for _attempt in range(2):
        launch = called(cloud, launch_record, launch=launch["launch"], outcomes=[outcome])
    assert launch["launch"]["silent"] == silent


def test_what_hosts_said_of_themselves_while_they_built_is_recorded(cloud: Cloud) -> None:
    launch = planned(cloud, asked(cloud))
    (server,) = launch["instances"]
    facts = {**next(host for host in HOSTS if host["name"] == server["host"]), "memory_mb": 8192}
    outcome = {"uuids": [server["uuid"]], "host": server["host"], "state": "active", "facts": facts}
    called(cloud, launch_record, launch=launch["launch"], plans=launch["hosts"], outcomes=[outcome])
    host = tables.compute_host
    assert cloud.rows(sa.select(host.c.memory_mb).where(host.c.name == server["host"])) == [(8192,)]


def test_a_launch_keeps_its_calls_with_their_times(cloud: Cloud) -> None:
    launch = planned(cloud, asked(cloud))
    (server,) = launch["instances"]
    steps = [
        {"module": "disk", "seconds": 0.25},
        {"module": "rm -rf", "seconds": 1},
        {"module": "domain", "seconds": 1.5},
    ]
    trip = {"at": 1000.0, "seconds": 2.0, "steps": [*steps, {"module": "bridge", "seconds": "long"}]}
    outcome = {"uuids": [server["uuid"]], "host": server["host"], "state": "active", "trip": trip}
    called(cloud, launch_record, launch=launch["launch"], plans=launch["hosts"], outcomes=[outcome])
    with transaction(cloud.engine) as connection:
        document = launch_calls.of_instance(connection, server["uuid"])
    assert document is not None
    calls = {call["operation"]: call for call in document["calls"]}
    assert list(calls)[:3] == ["host_steps", "disk", "domain"]  # of the year 1970
    assert set(list(calls)[3:]) == {"request", *launch_steps.CONTROLLER}
    assert list(calls)[5:] == ["scheduler", "fixed_ip", "server_plan", "launch_record"]
    assert calls["disk"] == {"operation": "disk", "at": 1000.25, "seconds": 0.25, "host": server["host"]}
    assert (calls["domain"]["at"], calls["domain"]["seconds"]) == (1000.5, 1.5)
    assert calls["request"]["at"] == pytest.approx(time.time(), abs=60)


def test_both_attempts_are_kept_and_what_is_kept_is_bounded(cloud: Cloud) -> None:
    launch = planned(cloud, asked(cloud))
    (server,) = launch["instances"]
    steps = [{"module": "disk", "seconds": 0.1, "failed": True}] * 1000
    trip = {"at": time.time(), "seconds": 1.0, "steps": steps[:2]}
    outcome = {"uuids": [server["uuid"]], "host": server["host"], "state": "retry", "reason": "full", "trip": trip}
    again = called(cloud, launch_record, launch=launch["launch"], plans=launch["hosts"], outcomes=[outcome])
    (second,) = again["instances"]
    outcome = {**outcome, "host": second["host"], "state": "active", "trip": {**trip, "steps": steps}}
    called(cloud, launch_record, launch=again["launch"], plans=again["hosts"], outcomes=[outcome])
    with transaction(cloud.engine) as connection:
        document = launch_calls.of_instance(connection, server["uuid"])
    assert document is not None
    operations = [call["operation"] for call in document["calls"]]
    assert operations.count("scheduler") == 2 and len(operations) <= launch_calls.KEPT + 1
    trips = [call for call in document["calls"] if call["operation"] == "host_steps"]
    assert {call["host"] for call in trips} == {server["host"], second["host"]}
    assert all(call["failed"] for call in trips)


def test_what_no_launch_made_has_no_calls(cloud: Cloud) -> None:
    with transaction(cloud.engine) as connection:
        assert launch_calls.of_instance(connection, "nobody") is None
