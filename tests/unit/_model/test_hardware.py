# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hardware that images and flavors ask for, and what hosts lack of it."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model.hardware import (
    Hardware,
    Tpm,
    checked,
    hardware_of,
    lacking,
    traits_of,
)

ALL = {"machine": "pc", "machine_types": {"pc": ["efi"], "q35": ["efi", "secure"]}, "tpm": ["2.0", "tpm-tis"]}
UEFI = {"hw_firmware_type": "uefi"}


def asked(specs: dict[str, str], properties: dict[str, t.Any], of: t.Any = hardware_of) -> Hardware:
    hardware = of(
        {"name": "f", "vcpus": 1, "memory_mb": 512, "extra_specs": specs}, {"name": "i", "properties": properties}
    )
    assert isinstance(hardware, Hardware)
    return hardware


@pytest.mark.parametrize(
    ("specs", "properties", "expected"),
    [
        ({}, {}, Hardware()),
        ({}, {"hw_machine_type": "Q35", **UEFI}, Hardware(machine="q35", uefi=True)),
        ({}, {"hw_firmware_type": "bios", "hw_tpm_model": "tpm-crb"}, Hardware()),
        ({"os:secure_boot": "required"}, UEFI, Hardware(machine="q35", uefi=True, secure_boot="required")),
        ({"os:secure_boot": "optional"}, {}, Hardware()),
        ({"hw:tpm_version": "2.0"}, {"hw_tpm_model": "tpm-crb"}, Hardware(tpm=Tpm("2.0", "tpm-crb"))),
        ({"hw:tpm_version": "1.2"}, {"hw_tpm_version": "1.2"}, Hardware(tpm=Tpm("1.2", "tpm-tis"))),
        (
            {"hw:watchdog_action": "reset"},
            {"hw_watchdog_action": "disabled"},
            Hardware(),
        ),  # the image goes first, as in Nova
        ({"hw:watchdog_action": "poweroff", "hw:boot_menu": "True"}, {}, Hardware(watchdog="poweroff", boot_menu=True)),
        ({"hw:cpu_policy": "dedicated"}, {"os_type": "Windows"}, Hardware(windows=True)),  # recorded, too
        ({"hw:tpm_version": "9"}, {"hw_machine_type": "pc-q35-7.2"}, Hardware()),  # recorded before it was judged
    ],
)
def test_what_is_asked_for(specs: dict[str, str], properties: dict[str, str], expected: Hardware) -> None:
    assert asked(specs, properties) == expected


@pytest.mark.parametrize(
    ("specs", "properties", "message"),
    [
        ({"hw:tpm_version": "1.2"}, {"hw_tpm_version": "2.0"}, "flavor 'f' has hw:tpm_version=1.2, and image 'i' has"),
        ({"hw:tpm_version": "1.2", "hw:tpm_model": "tpm-crb"}, {}, "of version 2.0 only"),
        ({"os:secure_boot": "required"}, {}, "extra spec os:secure_boot is required: set hw_firmware_type=uefi"),
        ({}, {**UEFI, "os_secure_boot": "required", "hw_machine_type": "pc"}, "set hw_machine_type=q35"),
        ({}, {"hw_machine_type": "q35", "hw_cdrom_bus": "IDE"}, "use sata or virtio"),
    ],
)
def test_what_no_host_can_do(specs: dict[str, str], properties: dict[str, str], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        asked(specs, properties)


@pytest.mark.parametrize(
    ("specs", "properties", "message"),
    [
        ({"hw:cpu_realtime": "yes"}, {}, "flavor 'f' has hw:cpu_realtime=yes, which novalite does not do"),
        ({"hw:cpu_policy": "mixed"}, {}, "flavor 'f': extra spec hw:cpu_policy is 'mixed'; use shared, dedicated"),
        ({"hw:numa_nodes": "2"}, {}, "1 vCPUs and 512 MiB, which 2 NUMA nodes cannot share evenly"),
        ({"pci_passthrough:alias": "gpu:1"}, {}, "pci_passthrough:alias=gpu:1"),
        ({"hw:tpm_version": "9"}, {}, "flavor 'f': extra spec hw:tpm_version is '9'; use 1.2, 2.0"),
        ({}, {"hw_machine_type": "pc-q35-7.2"}, "its property hw_machine_type is 'pc-q35-7.2'; use pc, q35, virt"),
    ],
)
def test_a_request_is_judged_by_its_values(specs: dict[str, str], properties: dict[str, str], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        asked(specs, properties, checked)


@pytest.mark.parametrize(
    ("hardware", "facts", "reason"),
    [
        (Hardware(), {}, None),
        (Hardware(machine="q35", uefi=True, secure_boot="required", tpm=Tpm("2.0", "tpm-tis")), ALL, None),
        (Hardware(machine="virt"), ALL, "does not offer machine type virt"),
        (Hardware(uefi=True), {"machine": "pc"}, "has no UEFI firmware for machine type pc: install ovmf"),
        (
            Hardware(machine="q35", uefi=True, secure_boot="required"),
            {**ALL, "machine_types": {"q35": ["efi"]}},
            "has no firmware with Secure Boot",
        ),
        (Hardware(tpm=Tpm("2.0", "tpm-crb")), ALL, "emulates no TPM tpm-crb: install swtpm"),
        (Hardware(tpm=Tpm("1.2", "tpm-tis")), {}, "emulates no TPM 1.2, tpm-tis"),
    ],
)
def test_what_a_host_lacks(hardware: Hardware, facts: dict[str, t.Any], reason: str | None) -> None:
    lack = lacking(hardware, facts)
    assert lack is None if reason is None else (lack or "").startswith(reason)


def test_secure_boot_that_is_optional_follows_the_host() -> None:
    optional = Hardware(machine="q35", uefi=True, secure_boot="optional")
    assert optional.secure_on(ALL)
    assert not optional.secure_on({"machine": "q35", "machine_types": {"q35": ["efi"]}})
    assert not Hardware(uefi=True, secure_boot="optional").secure_on(ALL)  # on pc


def test_traits_of_a_host() -> None:
    assert traits_of(ALL) == [
        "COMPUTE_FIRMWARE_BIOS",
        "COMPUTE_FIRMWARE_UEFI",
        "COMPUTE_SECURITY_UEFI_SECURE_BOOT",
        "COMPUTE_SECURITY_TPM_2_0",
        "COMPUTE_SECURITY_TPM_TIS",
    ]
    assert traits_of({}) == []


@pytest.mark.parametrize("specs", [{"hw:cpu_policy": "shared"}, {"hw:cpu_realtime": "no"}, {"quota:cpu_shares": "9"}])
def test_extra_specs_that_ask_for_nothing_here_are_free(specs: dict[str, str]) -> None:
    assert asked(specs, {}, checked) == Hardware()
