# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host gives no CPU and no page twice, keeps hardware threads together, and says what it has too little of."""

from __future__ import annotations

import collections
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model import host_numa
from ansible_collections.novalite.cloud.plugins.module_utils._model.numa import Claim, numa_of
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import capacity_tools
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.filters import numa_topology
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.numa_fit import Ratios, fit
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import HostState, Request, request_of
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.select import select
from tests.parity import numa_cases

OPTIONS = Options()
PINNED = {"hw:cpu_policy": "dedicated"}


def node(number: int, pages: int = 0) -> dict[str, t.Any]:
    first = 4 * number
    siblings = [f"{first}-{first + 1}", f"{first + 2}-{first + 3}"]
    of_pages = {"4": 262144 - 512 * pages, "2048": pages}
    return {"id": number, "cpus": f"{first}-{first + 3}", "siblings": siblings, "memory_mb": 1024, "pages": of_pages}


def host(name: str = "hv1", **facts: t.Any) -> HostState:
    of_host = {"numa": [node(0), node(1, pages=128)], "cpu_shared_set": "0,4", "cpu_dedicated_set": "2-3,6-7", **facts}
    return HostState(name, 2, 2048, 100, facts=of_host)


def request(uuid: str = "u", vcpus: int = 2, memory_mb: int = 128, **specs: str) -> Request:
    extra_specs = {key.replace("_", ":", 1): value for key, value in specs.items()} or PINNED
    flavor = {"name": "f", "vcpus": vcpus, "memory_mb": memory_mb, "root_gb": 1, "extra_specs": extra_specs}
    return request_of({"uuid": uuid, "name": uuid, "flavor": flavor, "image": {}, "availability_zone": None})


@given(st.integers(0, 10**9))
def test_nothing_is_given_twice(seed: int) -> None:
    case = numa_cases.case(seed)
    cells = {cell.id: cell for cell in host_numa.cells_of(case["facts"])}
    claims: list[Claim] = []
    for asked_for in case["requests"]:
        flavor = {"name": "f", **{key: asked_for[key] for key in ("vcpus", "memory_mb", "extra_specs")}}
        try:
            asked = numa_of(flavor, {"properties": asked_for["properties"]})
        except NovaliteError:
            continue
        result = None if asked is None else fit(tuple(cells.values()), claims, asked, Ratios())
        if asked is None or not isinstance(result, Claim):
            continue
        claims.append(result)
        assert [cell.cpus for cell in result.cells] == [cell.cpus for cell in asked.cells]
        assert len({cell.node for cell in result.cells}) == len(result.cells)
        for cell in result.cells:
            assert not asked.dedicated or sorted(vcpu for vcpu, _cpu in cell.pins) == list(cell.cpus)
            assert cell.held <= cells[cell.node].dedicated
            assert cell.page_kib is None or cell.memory_mb * 1024 % cell.page_kib == 0
            if asked.thread_policy == "require" and len(cell.cpus) > 1:
                cores = [core for core in cells[cell.node].siblings if core & {cpu for _vcpu, cpu in cell.pins}]
                assert len(cores) < len(cell.cpus)
    held = collections.Counter(cpu for claim in claims for cell in claim.cells for cpu in cell.held)
    assert not held or max(held.values()) == 1
    pages: collections.Counter[tuple[int, int]] = collections.Counter()
    for claim in claims:
        for cell in claim.cells:
            if cell.page_kib:
                pages[cell.node, cell.page_kib] += cell.memory_mb * 1024 // cell.page_kib
    for (number, size), count in pages.items():
        there = cells[number].pages[size]
        assert count <= there.total - there.reserved


@pytest.mark.parametrize(
    ("facts", "asked", "reason"),
    [
        ({"numa": []}, request(), "has not said which NUMA nodes it has"),
        ({"cpu_dedicated_set": ""}, request(), "has no dedicated CPUs: set compute_node_cpu_dedicated_set"),
        ({}, request(vcpus=6), "4 of 4 dedicated CPUs are free, 6 are asked for"),
        ({}, request(vcpus=3), "NUMA node 0: 2 of 2 dedicated CPUs are free, 3 are asked for"),
        (
            {},
            request(hw_numa_nodes="2", hw_mem_page_size="2048"),
            "NUMA node 0 has too few free pages of 2048 KiB for 64",
        ),
        ({}, request(hw_mem_page_size="large", memory_mb=512), "NUMA node 0 has too few free large pages for 512 MiB"),
        ({}, request(vcpus=3, memory_mb=96, hw_numa_nodes="3"), "has 2 NUMA nodes, 3 are asked for"),
        ({}, request(hw_numa_nodes="1"), "NUMA node 0 has 1 shared CPUs, 2 are asked for"),
    ],
)
def test_the_reason_is_said(facts: dict[str, t.Any], asked: Request, reason: str) -> None:
    assert (numa_topology.passes(host(**facts), asked, OPTIONS) or "").startswith(reason)


def test_a_hardware_thread_policy_is_kept() -> None:
    isolate = {**PINNED, "hw:cpu_thread_policy": "isolate"}
    assert "2 hardware threads" in (numa_topology.passes(host(), request(**_named(isolate)), OPTIONS) or "")
    require = request(**_named({**PINNED, "hw:cpu_thread_policy": "require"}))
    assert numa_topology.passes(host(), require, OPTIONS) is None
    (reason,) = [numa_topology.passes(host(cpu_dedicated_set="2,6"), require, OPTIONS)]
    assert reason is not None and "no hardware threads" not in reason


def _named(specs: dict[str, str]) -> dict[str, t.Any]:
    return {key.replace(":", "_", 1): value for key, value in specs.items()}


def test_each_of_a_call_gets_cpus_of_its_own() -> None:
    decisions = select([host("hv1"), host("hv2")], [request(f"u{number}") for number in range(5)])
    pins = [
        (decision.host, cpu)
        for decision in decisions
        if decision.numa is not None
        for cell in decision.numa.cells
        for cpu in cell.held
    ]
    assert len(pins) == len(set(pins)) == 8
    assert decisions[4].host is None and "0 of 4 dedicated CPUs are free" in decisions[4].message
    # those that share CPUs have others: as in Placement, PCPU is no VCPU
    assert all(decision.request.vcpus == 0 for decision in decisions)


def test_the_room_for_more_is_counted() -> None:
    (room,) = capacity_tools.room([host()], request(), OPTIONS)
    assert (room.fits, room.bottleneck) == (2, "numa_topology")


def test_what_asks_for_nothing_is_not_looked_at() -> None:
    assert not numa_topology.concerns(request(hw_cpu_policy="shared"), OPTIONS)


def test_without_the_filter_nothing_is_pinned_to_nowhere() -> None:
    options = Options(enabled_filters=["ram"])
    with pytest.raises(NovaliteError, match="add numa_topology to them"):
        select([host(cpu_dedicated_set="2")], [request()], options=options)
