# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host hands out no device twice, none that a guest of others has, and says what it has too few of."""

from __future__ import annotations

import collections
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model import pci
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import capacity_tools, pci_fit
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.filters import numa_topology, pci_passthrough
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import ENABLED_FILTERS, Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import HostState, Request, request_of
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.select import select
from tests.parity import pci_cases

OPTIONS = Options()
GPU: t.Any = {"vendor_id": "10de", "product_id": "1eb8"}
VF: t.Any = {"vendor_id": "8086", "product_id": "10ed"}
PF: t.Any = {"vendor_id": "8086", "product_id": "10fb"}
ALIASES = [
    {"name": "gpu", **GPU},
    {"name": "vf", **VF, "device_type": "type-VF"},
    {"name": "pf", **PF, "device_type": "type-PF"},
    {"name": "any-pf", **PF},
]
NODE = {"memory_mb": 1024, "pages": {"4": 262144}}
NODES = [{"id": 0, "cpus": "0-1", "siblings": ["0-1"], **NODE}, {"id": 1, "cpus": "2-3", "siblings": ["2-3"], **NODE}]
DEVICES = [
    pci.Device("0000:01:00.0", **GPU, numa_node=0),
    pci.Device("0000:02:00.0", **GPU, numa_node=1),
    pci.Device("0000:03:00.0", **PF, type=pci.PF),
    pci.Device("0000:03:00.1", **VF, type=pci.VF, parent="0000:03:00.0"),
    pci.Device("0000:03:00.2", **VF, type=pci.VF, parent="0000:03:00.0"),
]


def host(name: str = "hv1", **facts: t.Any) -> HostState:
    usual = {"numa": NODES, pci.DEVICES: [device.row for device in DEVICES], pci.ALIASES: ALIASES}
    return HostState(name, 4, 2048, 100, facts={**usual, **facts})


def request(asks: str, uuid: str = "u", **specs: str) -> Request:
    extra_specs = {pci.ALIAS: asks, **{key.replace("_", ":", 1): value for key, value in specs.items()}}
    flavor = {"name": "f", "vcpus": 1, "memory_mb": 64, "root_gb": 1, "extra_specs": extra_specs}
    return request_of({"uuid": uuid, "name": uuid, "flavor": flavor, "image": {}, "availability_zone": None})


@pytest.mark.parametrize(
    ("asks", "facts", "reason"),
    [
        ("gpu:2", {}, None),
        ("gpu:1,vf:2", {}, None),
        ("pf:1", {}, None),
        ("gpu:3", {}, "2 PCI devices 'gpu' are free, 3 are asked for"),
        ("gpu:1", {pci.ALIASES: []}, "knows no PCI alias 'gpu': name it in compute_node_pci_alias"),
        ("gpu:1", {pci.DEVICES: []}, "0 PCI devices 'gpu' are free, 1 are asked for"),
        ("gpu:2", {pci.TAKEN: ["0000:01:00.0"]}, "1 PCI devices 'gpu' are free, 2 are asked for"),
        ("any-pf:1", {}, "0 PCI devices 'any-pf' are free, 1 are asked for"),
        ("pf:1,vf:1", {}, "0 PCI devices 'vf' are free, 1 are asked for"),
        ("pf:1", {pci.TAKEN: ["0000:03:00.1"]}, "0 PCI devices 'pf' are free, 1 are asked for"),
        ("vf:1", {pci.TAKEN: ["0000:03:00.0"]}, "0 PCI devices 'vf' are free, 1 are asked for"),
    ],
)
def test_a_host_says_of_which_it_has_too_few(asks: str, facts: dict[str, t.Any], reason: str | None) -> None:
    assert pci_passthrough.concerns(request(asks), OPTIONS)
    assert pci_passthrough.passes(host(**facts), request(asks), OPTIONS) == reason


def test_devices_are_near_the_guest_s_nodes_as_its_policy_says() -> None:
    of_host: t.Any = {pci.TAKEN: ["0000:01:00.0"], "cpu_dedicated_set": "0-1"}
    taken = host(**of_host)  # the device that is left is away from its CPUs
    pinned = {"hw_cpu_policy": "dedicated"}
    for policy, reason in (
        ("required", "0 PCI devices 'gpu' are free near its NUMA nodes, 1 are asked for"),
        ("legacy", "0 PCI devices 'gpu' are free near its NUMA nodes, 1 are asked for"),
        ("preferred", None),
    ):
        asked = request("gpu:1", **pinned, **{"hw_" + pci.POLICY: policy})
        assert pci_passthrough.passes(taken, asked, OPTIONS) is None  # how near is not its business
        assert numa_topology.passes(taken, asked, OPTIONS) == reason
    assert pci_passthrough.passes(taken, request("gpu:1"), OPTIONS) is None
    asked = request("gpu:1", hw_numa_nodes="1")
    claim = host().own_fit(asked.numa, asked.devices)
    assert not isinstance(claim, str)
    assert [(cell.node, device.address) for cell, device in zip(claim.cells, claim.devices)] == [(0, "0000:01:00.0")]


def test_a_batch_shares_the_devices_of_its_hosts() -> None:
    requests = [request("gpu:1", uuid=f"u{number}") for number in range(5)]
    decisions = select([host("hv1"), host("hv2")], requests)
    assert [decision.host for decision in decisions].count(None) == 1
    given_out = collections.Counter(
        (decision.host, device.address) for decision in decisions if decision.numa for device in decision.numa.devices
    )
    assert len(given_out) == 4 and set(given_out.values()) == {1}
    assert "2 PCI devices" not in decisions[-1].message and "0 PCI devices 'gpu' are free" in decisions[-1].message


def test_without_the_filter_nothing_is_handed_out() -> None:
    others = [name for name in ENABLED_FILTERS if name != "pci_passthrough"]
    with pytest.raises(NovaliteError, match="add pci_passthrough to them"):
        select([host(pci_devices=[])], [request("gpu:1")], options=Options(enabled_filters=others))


def test_capacity_counts_devices() -> None:
    (room,) = capacity_tools.room([host()], request("gpu:1"), OPTIONS)
    assert (room.fits, room.bottleneck) == (2, "pci_passthrough")


@given(st.integers(0, 10**9))
def test_nothing_is_handed_out_twice(seed: int) -> None:
    case = pci_cases.case(seed)
    there = [pci.Device(**row) for row in case["found"]]
    facts = {**case["facts"], pci.DEVICES: [each.row for each in pci.handed_out(there, case["facts"][pci.SPEC])]}
    parents = {device.address: device.parent for device in there}
    held: list[pci.Held] = []
    for asked_for in case["requests"]:
        flavor = {"name": "f", "extra_specs": {key: asked_for["extra_specs"].get(key) for key in (pci.ALIAS,)}}
        asked = pci.recorded_asked_of(flavor, {})
        picked = pci_fit.Shelf(facts, held).pick(asked) if asked is not None else ""
        if not isinstance(picked, str):
            held += picked
    addresses = collections.Counter(device.address for device in held)
    assert not addresses or max(addresses.values()) == 1
    assert not addresses.keys() & {parents[address] for address in addresses}
