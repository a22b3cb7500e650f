# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts without the firmware or the TPM that a guest asks for are filtered, with the reason."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.filters import hardware
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import HostState, Request
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.select import select

OPTIONS = Options()
MODERN = {"machine": "pc", "machine_types": {"pc": ["efi"], "q35": ["efi", "secure"]}, "tpm": ["2.0", "tpm-tis"]}


def request(**fields: t.Any) -> Request:
    return Request(**{"uuid": "u", "name": "web-1", "vcpus": 1, "memory_mb": 512, "disk_gb": 1, **fields})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"image_properties": {"hw_firmware_type": "uefi"}}, "has no UEFI firmware"),
        ({"extra_specs": {"hw:tpm_version": "2.0"}}, "emulates no TPM 2.0, tpm-tis"),
        ({"image_properties": {"hw_machine_type": "q35"}}, "does not offer machine type q35"),
        ({"image_properties": {"hw_disk_bus": "scsi"}}, "has no disks on bus scsi: it has virtio"),
        ({"image_properties": {"hw_video_model": "qxl"}}, "has no video of model qxl"),
    ],
)
def test_the_host_that_has_it_is_chosen(fields: dict[str, t.Any], reason: str) -> None:
    asked = request(**fields)
    assert hardware.concerns(asked, OPTIONS)
    old = HostState("hv1", 8, 8192, 100, facts={"machine": "pc", "disk_buses": ["virtio"], "video_models": ["vga"]})
    new = HostState("hv2", 8, 8192, 100, facts=MODERN)
    assert (hardware.passes(old, asked, OPTIONS) or "").startswith(reason)
    (choice,) = select([old, new], [asked])
    assert choice.host == "hv2"


def test_a_guest_that_asks_for_nothing_is_not_looked_at() -> None:
    assert not hardware.concerns(request(extra_specs={"hw:cpu_sockets": "2"}), OPTIONS)
