# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each filter by itself, and the words that a person reads when none is left."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.explain import NAMED_IN_DATA, explanation
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.filters import (
    availability_zone,
    compute,
    image_properties,
    requested_host,
    retry,
)
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.filters.capacity import disk, ram, vcpu
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import HostState, Request, request_of
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.select import select

OPTIONS = Options()


def host(**fields: t.Any) -> HostState:
    return HostState(**{"name": "hv1", "vcpus": 8, "memory_mb": 8192, "disk_gb": 100, **fields})


def request(**fields: t.Any) -> Request:
    return Request(**{"uuid": "u", "name": "web-1", "vcpus": 1, "memory_mb": 512, "disk_gb": 1, **fields})


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (host(), None),
        (host(up=False), "is down"),
        (host(up=False, down_reason="libvirtd does not answer", enabled=False), "libvirtd does not answer"),
        (host(enabled=False), "is disabled"),
        (host(enabled=False, disabled_reason="new disks"), "is disabled: new disks"),
    ],
)
def test_compute(state: HostState, reason: str | None) -> None:
    assert compute.passes(state, request(), OPTIONS) == reason


def test_availability_zone() -> None:
    assert availability_zone.passes(host(zone="west"), request(), OPTIONS) is None
    assert availability_zone.passes(host(zone="west"), request(availability_zone="west"), OPTIONS) is None
    assert availability_zone.passes(host(), request(availability_zone="west"), OPTIONS) == "is in zone nova, not west"


def test_requested_host_and_retry() -> None:
    assert requested_host.passes(host(), request(requested_host="hv1"), OPTIONS) is None
    assert requested_host.passes(host(), request(requested_host="hv2"), OPTIONS) == "is not the requested host hv2"
    assert retry.passes(host(), request(ignore_hosts=("hv2",)), OPTIONS) is None
    assert retry.passes(host(), request(ignore_hosts=("hv2", "hv1")), OPTIONS) == "failed to build it before"


@pytest.mark.parametrize(
    ("state", "asked", "reason"),
    [
        (host(memory_mb_used=7680), request(), None),  # to the last MiB
        (host(memory_mb_used=7681), request(), "511 of 512 MiB free"),
        (host(memory_mb_used=7680, reserved_memory_mb=1), request(), "511 of 512 MiB free"),
        (host(memory_mb_used=8192, ram_ratio=1.5), request(), None),
        (host(memory_mb_used=9000), request(), "0 of 512 MiB free"),
        (host(memory_mb=1024, ram_ratio=4.0), request(memory_mb=1024), None),
        (host(memory_mb=1024, ram_ratio=4.0), request(memory_mb=1025), "has 1024 MiB in all, 1025 are asked for"),
    ],
)
def test_ram(state: HostState, asked: Request, reason: str | None) -> None:
    assert ram.passes(state, asked, OPTIONS) == reason


def test_vcpu_and_disk_follow_the_same_rule_with_their_own_ratios() -> None:
    assert vcpu.passes(host(vcpus_used=31, cpu_ratio=4.0), request(), OPTIONS) is None
    assert vcpu.passes(host(vcpus_used=32, cpu_ratio=4.0), request(), OPTIONS) == "0 of 1 vCPUs free"
    assert vcpu.passes(host(cpu_ratio=4.0), request(vcpus=9), OPTIONS) == "has 8 vCPUs in all, 9 are asked for"
    assert disk.passes(host(disk_gb_used=95, reserved_disk_gb=2), request(disk_gb=3), OPTIONS) is None
    assert disk.passes(host(disk_gb_used=95, reserved_disk_gb=2), request(disk_gb=4), OPTIONS) == "3 of 4 GiB free"


@pytest.mark.parametrize(
    ("facts", "properties", "reason"),
    [
        ({"arch": "x86_64"}, {}, None),
        ({"arch": "x86_64"}, {"hw_architecture": "x86_64"}, None),
        ({"arch": "x86_64"}, {"architecture": "AMD64"}, None),
        ({"arch": "x86_64"}, {"architecture": "i686"}, None),
        ({"arch": "x86_64"}, {"hw_architecture": "aarch64"}, "is x86_64, the image is aarch64"),
        ({}, {"hw_architecture": "aarch64"}, "is of an unknown architecture, the image is aarch64"),
        ({"hypervisor_type": "KVM"}, {"img_hv_type": "qemu"}, None),
        ({"hypervisor_type": "QEMU"}, {"img_hv_type": "kvm"}, "runs QEMU, the image asks for kvm"),
    ],
)
def test_image_properties(facts: dict[str, str], properties: dict[str, str], reason: str | None) -> None:
    assert image_properties.passes(host(facts=facts), request(image_properties=properties), OPTIONS) == reason


def test_an_image_that_needs_more_memory_than_the_flavor_gives_fits_nowhere() -> None:
    assert image_properties.passes(host(), request(image_min_ram_mb=512), OPTIONS) is None
    reason = "would give 512 MiB, the image needs 1024"
    assert image_properties.passes(host(), request(image_min_ram_mb=1024), OPTIONS) == reason


def test_no_valid_host_names_each_filter_each_host_and_each_reason() -> None:
    hosts = [
        host(name="hv2", up=False, down_reason="libvirtd does not answer"),
        host(name="hv1", memory_mb=1024, memory_mb_used=212, reserved_memory_mb=512),
    ]
    (decision,) = select(hosts, [request()])
    assert decision.message == (
        "No valid host was found for 'web-1': compute removed 1 (hv2: libvirtd does not answer), "
        "ram removed 1 (hv1: 300 of 512 MiB free); 0 of 2 hosts remain"
    )
    (decision,) = select([], [request()])
    assert decision.message == (
        "No valid host was found for 'web-1': no compute host is known; add one to the inventory and run again"
    )


def test_messages_and_records_stay_small_with_many_hosts() -> None:
    hosts = [host(name=f"hv{number:04}", up=False) for number in range(1000)]
    (decision,) = select(hosts, [request()])
    assert "compute removed 1000 (hv0000: is down, hv0001: is down, hv0002: is down, ...)" in decision.message
    recorded = explanation(decision)
    step = next(record for record in recorded["filters"] if record["filter"] == "compute")
    assert (step["start"], step["end"], len(step["removed"])) == (1000, 0, NAMED_IN_DATA)
    assert json.loads(json.dumps(recorded)) == recorded


def test_a_request_is_read_from_an_instance() -> None:
    instance = {
        "uuid": "u",
        "name": "web-1",
        "flavor": {"vcpus": 2, "memory_mb": 96, "root_gb": 3, "ephemeral_gb": 2, "swap_mb": 1025, "extra_specs": {}},
        "image": {"virtual_size": 5 * 1024**3 + 1, "min_ram_mb": 64, "properties": {"hw_architecture": "x86_64"}},
        "availability_zone": "west:hv7",
        "attempts": ["hv1"],
        "request": {"different_host": ["x"]},
    }
    read = request_of(instance)
    assert (read.vcpus, read.memory_mb, read.disk_gb) == (2, 96, 3 + 2 + 2)
    assert (read.availability_zone, read.requested_host, read.ignore_hosts) == ("west", "hv7", ("hv1",))
    assert (read.image_min_ram_mb, read.hints) == (64, {"different_host": ["x"]})
    instance["flavor"] = {**t.cast(dict, instance["flavor"]), "root_gb": 0}
    assert request_of(instance).disk_gb == 6 + 2 + 2  # without a root size, as large as the image
