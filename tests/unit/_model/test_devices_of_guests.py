# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices and limits that images and flavors ask for, and what hosts lack of them."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model.devices import (
    Devices,
    check_rescue,
    devices_of,
    lacking,
)
from ansible_collections.novalite.cloud.plugins.module_utils._model.hardware import checked, traits_of

Texts = dict[str, str]


def asked(specs: Texts, properties: Texts, vcpus: int = 2) -> Devices:
    flavor, image = {"name": "f", "vcpus": vcpus, "extra_specs": specs}, {"name": "i", "properties": properties}
    return devices_of(flavor, image)


@pytest.mark.parametrize(
    ("specs", "properties", "expected"),
    [
        ({}, {}, Devices()),
        ({"hw:vif_multiqueue_enabled": "true"}, {}, Devices(multiqueue=True)),
        ({}, {"hw_vif_multiqueue_enabled": "yes", "hw_vif_model": "e1000"}, Devices(vif_model="e1000")),
        ({"hw_rng:allowed": "False"}, {}, Devices(rng=False)),
        ({"hw_rng:rate_bytes": "64"}, {"hw_rng_model": "virtio"}, Devices(rng_rate=(64, 0))),
        ({"hw_rng:rate_bytes": "64", "hw_rng:rate_period": "9"}, {}, Devices(rng_rate=(64, 9))),
        ({}, {"hw_input_bus": "virtio"}, Devices(input_bus="virtio", pointer_bus="virtio")),
        ({}, {"hw_pointer_model": "usbtablet"}, Devices(pointer_bus="usb")),
        ({"hw_video:ram_max_mb": "64"}, {"hw_video_ram": "32"}, Devices(video_ram_mb=32)),
        ({}, {"hw_disk_bus": "SCSI", "hw_scsi_model": "paravirtual"}, Devices(disk_bus="scsi", scsi_model="vmpvscsi")),
        ({"hw:serial_port_count": "3"}, {"hw_serial_port_count": "2"}, Devices(serial_ports=2)),
        ({"hw:serial_port_count": "3"}, {}, Devices(serial_ports=3)),
        ({"hw:pmu": "off"}, {"hw_pmu": "no"}, Devices(pmu=False)),
        ({}, {"hw_time_hpet": "false"}, Devices(hpet=False)),
        ({"hide_hypervisor_id": "true"}, {}, Devices(hidden=True)),
        ({"hw:hide_hypervisor_id": "false"}, {"img_hide_hypervisor_id": "true"}, Devices(hidden=True)),
        # the flavor's goes first, as in Nova
        ({"hw:viommu_model": "intel"}, {"hw_viommu_model": "virtio"}, Devices(viommu="intel")),
        (
            {"quota:cpu_quota": "5000", "quota:cpu_period": "0", "quota:disk_read_iops_sec": "9"},
            {},
            Devices(cputune=(("quota", 5000),), iotune=(("read_iops_sec", 9),)),
        ),
        (
            {"quota:vif_outbound_average": "9", "quota:vif_outbound_burst": "8"},
            {},
            Devices(bandwidth=(("outbound", (("average", 9), ("burst", 8))),)),
        ),
        # recorded before anybody judged it
        ({"hw:pmu": "perhaps", "quota:cpu_shares": "many"}, {"hw_video_ram": "9", "hw_disk_bus": "fdc"}, Devices()),
    ],
)
def test_devices_that_are_asked_for(specs: Texts, properties: Texts, expected: Devices) -> None:
    assert asked(specs, properties) == expected


def test_one_cpu_has_one_queue() -> None:
    assert not asked({"hw:vif_multiqueue_enabled": "true"}, {}, vcpus=1).multiqueue


@pytest.mark.parametrize(
    ("specs", "properties", "message"),
    [
        ({}, {"hw_disk_bus": "fdc"}, "image 'i': its property hw_disk_bus is 'fdc'; use ide, sata, scsi, virtio"),
        ({}, {"hw_serial_port_count": "5"}, "use a number from 0 to 4"),
        ({"hw_rng:rate_bytes": "-1"}, {}, "flavor 'f': extra spec hw_rng:rate_bytes is '-1'; use a number from 0"),
        ({"hw:pmu": "true"}, {"hw_pmu": "false"}, "hw:pmu=true, hw_pmu=false: take the one from"),
        ({"hw:vif_multiqueue_enabled": "no"}, {"hw_vif_multiqueue_enabled": "yes"}, "take the one from"),
        ({"hw:serial_port_count": "1"}, {"hw_serial_port_count": "2"}, "hw:serial_port_count=1: lower it"),
        ({}, {"hw_video_ram": "16"}, "hw_video_ram=16 is above the flavor's hw_video:ram_max_mb=0: lower it"),
        ({"hw:viommu_model": "auto"}, {"hw_machine_type": "pc"}, "which pc has not: set hw_machine_type=q35"),
        ({}, {"hw_disk_bus": "ide", "hw_machine_type": "q35"}, "use sata or virtio"),
        (
            {"quota:disk_total_iops_sec": "9", "quota:disk_read_iops_sec": "9"},
            {},
            "quota:disk_total_iops_sec beside .*: leave one of them out",
        ),
        ({"quota:vif_inbound_peak": "9"}, {}, "without quota:vif_inbound_average: set that, too"),
        ({"quota:cpu_period": "999"}, {}, "quota:cpu_period=999: use microseconds from 1000"),
        ({"hw:mem_encryption": "true"}, {}, "flavor 'f' has hw:mem_encryption=true, which novalite does not do: no"),
        ({}, {"hw_locked_memory": "yes"}, "image 'i' has hw_locked_memory=yes"),
        ({}, {"os_require_quiesce": "yes"}, "stop the server before a snapshot"),
    ],
)
def test_a_request_that_is_refused(specs: Texts, properties: Texts, message: str) -> None:
    flavor = {"name": "f", "vcpus": 2, "extra_specs": specs}
    with pytest.raises(NovaliteError, match=message):
        checked(flavor, {"name": "i", "properties": properties})


X86 = {"arch": "x86_64", "libvirt_version": 9000000, "disk_buses": ["sata", "virtio"], "video_models": ["vga"]}


@pytest.mark.parametrize(
    ("devices", "machine", "facts", "reason"),
    [
        (Devices(), "pc", {}, None),
        (Devices(viommu="auto"), "q35", X86, None),
        (Devices(viommu="auto"), "pc", X86, "gives the guest machine type pc, which has no IOMMU: set"),
        (Devices(viommu="smmuv3"), "q35", X86, "is x86_64, where no IOMMU of model smmuv3 is"),
        (Devices(viommu="virtio"), "q35", {**X86, "libvirt_version": 8000000}, "has a libvirt before 8.3"),
        (Devices(disk_bus="ide"), "q35", X86, "gives the guest machine type q35, which has no IDE"),
        (Devices(disk_bus="scsi"), "pc", X86, "has no disks on bus scsi: it has sata, virtio"),
        (Devices(disk_bus="scsi"), "pc", {}, None),  # not asked yet
        (Devices(video_model="qxl"), "pc", X86, "has no video of model qxl: it has vga"),
        (Devices(video_model="none"), "pc", X86, None),
    ],
)
def test_devices_that_a_host_lacks(devices: Devices, machine: str, facts: dict[str, t.Any], reason: str | None) -> None:
    lack = lacking(devices, machine, facts)
    assert lack is None if reason is None else (lack or "").startswith(reason)


@pytest.mark.parametrize(
    ("asked_model", "version", "arch", "machine", "model"),
    [
        ("auto", 9000000, "x86_64", "q35", "virtio"),
        ("auto", 8002000, "x86_64", "q35", "intel"),
        ("auto", 8002000, "aarch64", "virt", "smmuv3"),
        ("intel", 9000000, "x86_64", "q35", "intel"),
        ("intel", 9000000, "x86_64", "pc", None),  # it would not start
    ],
)
def test_the_iommu_follows_the_host(asked_model: str, version: int, arch: str, machine: str, model: str | None) -> None:
    facts = {"libvirt_version": version, "arch": arch}
    assert Devices(viommu=asked_model).viommu_on(facts, machine) == model


def test_traits_of_devices() -> None:
    assert traits_of(X86) == ["COMPUTE_GRAPHICS_MODEL_VGA", "COMPUTE_STORAGE_BUS_SATA", "COMPUTE_STORAGE_BUS_VIRTIO"]


def test_an_image_with_a_place_of_its_own_rescues_nobody() -> None:
    check_rescue({"name": "i", "properties": {"hw_disk_bus": "scsi"}})
    with pytest.raises(NovaliteError, match="has hw_rescue_bus=usb, which novalite does not do"):
        check_rescue({"name": "i", "properties": {"hw_rescue_bus": "usb"}})
