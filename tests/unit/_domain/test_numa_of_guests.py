# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A claim of CPUs, NUMA nodes and pages as Nova's elements, compared one by one, and carried by a move."""

from __future__ import annotations

import dataclasses
import re
import typing as t
import xml.etree.ElementTree as ElementTree

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import compare
from ansible_collections.novalite.cloud.plugins.module_utils._domain.guest import guest_of, render
from ansible_collections.novalite.cloud.plugins.module_utils._domain.lifecycle_migrate import merged
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model.numa import Claim, ClaimedCell

UUID = "6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11"
NODES = [
    {"id": 0, "cpus": "0-3", "siblings": ["0-1", "2-3"], "memory_mb": 1024, "pages": {"4": 262144, "2048": 0}},
    {"id": 1, "cpus": "4-7", "siblings": ["4-5", "6-7"], "memory_mb": 1024, "pages": {"4": 196608, "2048": 128}},
]
FACTS = {
    **{"domain_type": "qemu", "arch": "x86_64", "machine": "pc", "emulator": "/usr/bin/qemu", "disk_cache": "none"},
    **{"numa": NODES, "cpu_shared_set": "0-1,4-5", "cpu_dedicated_set": "2-3,6-7"},
}
INSTANCE: t.Any = {
    **{"uuid": UUID, "name": "web", "domain_name": "instance-00000007", "project": {"id": "a" * 32, "name": "demo"}},
    **{"flavor": {"name": "pinned", "vcpus": 2, "memory_mb": 128}, "image": {"id": "8b", "name": "tiny"}, "nics": []},
}
PINNED = ClaimedCell((0, 1), 128, 1, ((0, 6), (1, 7)), page_kib=2048)
CLAIM = Claim((PINNED,))


def xml(claim: Claim | None, **facts: t.Any) -> str:
    return render(guest_of(INSTANCE, {**FACTS, **facts}, claim=claim))


def differing(desired: str, actual: str) -> list[str]:
    differences = compare.differences(compare.parse(desired), compare.parse(actual), None)
    return [difference["field"] for difference in differences]


def element(text: str, path: str) -> str:
    child = ElementTree.fromstring(text).find(path)
    return "" if child is None else re.sub(r"\s*\n\s*", "", ElementTree.tostring(child, encoding="unicode")).strip()


def test_pins_and_huge_pages_are_novas() -> None:
    of_guest = xml(CLAIM)
    assert element(of_guest, "cputune") == (
        '<cputune><vcpupin vcpu="0" cpuset="6" /><vcpupin vcpu="1" cpuset="7" /><emulatorpin cpuset="6-7" /></cputune>'
    )
    assert element(of_guest, "numatune") == (
        '<numatune><memory mode="strict" nodeset="1" /><memnode cellid="0" mode="strict" nodeset="1" /></numatune>'
    )
    page = '<page size="2048" unit="KiB" nodeset="0" />'
    assert element(of_guest, "memoryBacking") == f"<memoryBacking><hugepages>{page}</hugepages></memoryBacking>"
    cell = '<cell id="0" cpus="0-1" memory="131072" memAccess="shared" />'
    assert element(of_guest, "cpu") == f"<cpu><numa>{cell}</numa></cpu>"
    assert element(of_guest, "vcpu") == "<vcpu>2</vcpu>"


def test_two_nodes_that_share_their_cpus_float_over_those_of_the_host() -> None:
    of_guest = xml(Claim((ClaimedCell((0,), 64, 1), ClaimedCell((1,), 64, 0, page_kib=4))))
    assert element(of_guest, "cputune") == (
        '<cputune><vcpupin vcpu="0" cpuset="4-5" /><vcpupin vcpu="1" cpuset="0-1" />'
        '<emulatorpin cpuset="0-1,4-5" /></cputune>'
    )
    assert element(of_guest, "numatune/memory") == '<memory mode="strict" nodeset="0-1" />'
    assert element(of_guest, "memoryBacking") == ""  # libvirt takes no pages of the usual size
    assert element(of_guest, "cpu/numa/cell[2]") == '<cell id="1" cpus="1" memory="65536" />'


@pytest.mark.parametrize(
    ("policy", "reserved", "shared_set", "expected"),
    [("isolate", (3,), "0-1,4-5", "3"), ("share", (), "0-1,4-5", "0-1,4-5"), ("share", (), "", "6-7")],
)
def test_qemus_own_threads_have_their_place(
    policy: str, reserved: tuple[int, ...], shared_set: str, expected: str
) -> None:
    claim = Claim((dataclasses.replace(PINNED, reserved=reserved),), policy)
    assert (
        element(xml(claim, cpu_shared_set=shared_set), "cputune/emulatorpin") == f'<emulatorpin cpuset="{expected}" />'
    )


def test_a_guest_without_cpus_of_its_own_keeps_off_those_of_others() -> None:
    assert element(xml(None), "vcpu") == '<vcpu cpuset="0-1,4-5">2</vcpu>'
    assert element(xml(None, cpu_shared_set="", cpu_dedicated_set=""), "vcpu") == "<vcpu>2</vcpu>"


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        (ClaimedCell((0, 1), 128, 1, ((0, 7), (1, 6)), page_kib=2048), ["vcpupin[0]", "vcpupin[1]"]),
        (ClaimedCell((0, 1), 128, 0, ((0, 6), (1, 7)), page_kib=2048), ["memnode[0]", "memory"]),
        (ClaimedCell((0, 1), 128, 1, ((0, 6), (1, 7))), ["cell[0]", "page[0]"]),
    ],
)
def test_a_drift_is_named(changed: ClaimedCell, fields: list[str]) -> None:
    assert differing(xml(CLAIM), xml(CLAIM)) == []
    assert differing(xml(CLAIM), xml(Claim((changed,)))) == [f"placement.{field}" for field in fields]


def test_sets_are_compared_as_sets() -> None:
    text = xml(Claim((ClaimedCell((0, 1), 128, 0),)))
    assert differing(text, text.replace('cpuset="0-1"', 'cpuset="0,1"')) == []
    assert differing(text, text.replace('emulatorpin cpuset="0-1"', 'emulatorpin cpuset="?"')) == [
        "placement.emulatorpin"
    ]


def test_a_guest_that_moves_while_it_runs_takes_its_place_there() -> None:
    there = xml(Claim((dataclasses.replace(PINNED, node=0, pins=((0, 2), (1, 3))),)))
    moved = merged(xml(CLAIM), there)
    assert differing(there, moved) == []
    floating = merged(xml(None), xml(None, cpu_shared_set="0"))
    assert element(floating, "vcpu") == '<vcpu cpuset="0">2</vcpu>'


def test_a_node_that_is_gone_is_said() -> None:
    with pytest.raises(NovaliteError, match="instance-00000007 is on NUMA node 1, which its host no longer has"):
        xml(CLAIM, numa=NODES[:1])
