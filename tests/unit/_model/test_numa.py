# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets of CPUs as texts, and what flavor and image ask for together; tests/parity compares the rest with Nova."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model import cpu_sets, host_numa
from ansible_collections.novalite.cloud.plugins.module_utils._model.numa import (
    Cell,
    Claim,
    ClaimedCell,
    Topology,
    check_value,
    numa_of,
)

PINNED = {"hw:cpu_policy": "dedicated"}


def of(specs: dict[str, str], properties: dict[str, str], vcpus: int = 4, memory_mb: int = 512) -> Topology | None:
    flavor = {"name": "f", "vcpus": vcpus, "memory_mb": memory_mb, "extra_specs": specs}
    return numa_of(flavor, {"name": "i", "properties": properties})


@given(st.frozensets(st.integers(0, 400)))
def test_a_set_comes_back_from_its_text(numbers: frozenset[int]) -> None:
    assert cpu_sets.parse("set", cpu_sets.text_of(numbers)) == numbers


def test_a_set_is_written_as_nova_and_libvirt_write_it() -> None:
    assert cpu_sets.parse("set", "0-4, ^2,8") == {0, 1, 3, 4, 8}
    assert cpu_sets.text_of([8, 0, 1, 3]) == "0-1,3,8"
    with pytest.raises(NovaliteError, match="cpu_shared_set is '4-2': give numbers and ranges"):
        cpu_sets.parse("cpu_shared_set", "4-2")


def test_what_is_asked_for() -> None:
    assert of({"hw:cpu_policy": "shared"}, {}) is None
    whole = (Cell((0, 1, 2, 3), 512),)
    assert of({}, {"hw_cpu_policy": "dedicated"}) == Topology(whole, dedicated=True)
    assert of({"hw:mem_page_size": "2MB"}, {}) == Topology(whole, page_size=2048)
    assert of({"hw:numa_nodes": "2"}, {}) == Topology((Cell((0, 1), 256), Cell((2, 3), 256)))
    uneven = {"hw:numa_cpus.0": "0,3", "hw:numa_mem.0": "128", "hw:numa_cpus.1": "1-2", "hw:numa_mem.1": "384"}
    assert of({"hw:numa_nodes": "2", **uneven}, {}) == Topology((Cell((0, 3), 128), Cell((1, 2), 384)))


@pytest.mark.parametrize(
    ("specs", "properties", "message"),
    [
        (
            {"hw:cpu_policy": "shared"},
            {"hw_cpu_policy": "dedicated"},
            "flavor 'f' has hw:cpu_policy=shared, which image 'i' cannot override with hw_cpu_policy=dedicated",
        ),
        ({}, {"hw_mem_page_size": "large"}, "add hw:mem_page_size=any or large to the flavor"),
        ({"hw:cpu_thread_policy": "isolate"}, {}, "cpu_thread_policy needs hw:cpu_policy=dedicated"),
        ({"hw:emulator_threads_policy": "isolate"}, {}, "needs hw:cpu_policy=dedicated"),
        ({"hw:numa_nodes": "3"}, {}, "4 vCPUs and 512 MiB, which 3 NUMA nodes cannot share evenly"),
        ({"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-3"}, {}, "say both for each of numa_nodes"),
        (
            {"hw:numa_nodes": "1", "hw:numa_cpus.0": "0-4", "hw:numa_mem.0": "512"},
            {},
            "has vCPUs 0 to 3: give each of them to one",
        ),
        (
            {"hw:numa_nodes": "1", "hw:numa_cpus.0": "0-3", "hw:numa_mem.0": "1"},
            {},
            "has 512 MiB, and its NUMA nodes 1",
        ),
        ({**PINNED, "hw:mem_page_size": "huge"}, {}, "hw:mem_page_size is 'huge'; use small, large, any, or a size"),
    ],
)
def test_what_cannot_be_is_refused(specs: dict[str, str], properties: dict[str, str], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        of(specs, properties)


def test_a_value_is_judged_where_it_is_recorded() -> None:
    check_value("flavor 'f'", "hw:numa_cpus.0", "0-3")
    with pytest.raises(NovaliteError, match="extra spec hw:cpu_thread_policy is 'odd'; use prefer, isolate, require"):
        check_value("flavor 'f'", "hw:cpu_thread_policy", "odd")


def test_a_claim_comes_back_from_the_ledger() -> None:
    claim = Claim((ClaimedCell((0, 1), 64, 1, ((0, 6), (1, 7)), (4,), 2048), ClaimedCell((2,), 64, 0)), "isolate")
    assert Claim.of(claim.row) == claim
    assert claim.cells[0].held == {4, 6, 7}


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"cpu_shared_set": "0-2", "cpu_dedicated_set": "2-3"}, "CPUs 2 are in cpu_shared_set and cpu_dedicated_set"),
        ({"cpu_dedicated_set": "all"}, "'hv1': cpu_dedicated_set is 'all'"),
        ({"reserved_huge_pages": [{"node": 0}]}, "reserved_huge_pages has {'node': 0}: give node, size"),
    ],
)
def test_an_inventory_that_makes_no_sense_is_refused(facts: dict[str, object], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        host_numa.check("hv1", facts)


def test_only_what_is_shared_is_shared() -> None:
    node = {"id": 0, "cpus": "0-3", "siblings": ["0-1", "2-3"], "memory_mb": 1024, "pages": {"4": 262144}}
    facts = {"numa": [node], "cpu_dedicated_set": "2-3"}
    (cell,) = host_numa.cells_of(facts)
    assert (cell.shared, cell.dedicated, cell.siblings) == (frozenset(), frozenset({2, 3}), (frozenset({2, 3}),))
    assert (host_numa.not_shared(facts), host_numa.not_shared({"numa": [node]})) == (4, 0)
