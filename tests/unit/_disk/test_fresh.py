# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A disk that a guest has had is never mounted again, whoever asks for an injection."""

from __future__ import annotations

import os
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import export, partition, records
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk, create_disks, replace_disks
from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle
from ansible_collections.novalite.cloud.plugins.module_utils._domain.outcome import DomainSpec
from ansible_collections.novalite.cloud.plugins.module_utils._guest.inject import Request
from ansible_collections.novalite.cloud.plugins.module_utils._guest.session import inject_all
from ansible_collections.novalite.cloud.plugins.module_utils._host import libvirt_connection
from tests.unit._disk.state import needs_qemu_img
from tests.unit._domain.fake_libvirt import FakeLibvirt
from tests.unit._domain.test_lifecycle import Host

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
pytestmark = needs_qemu_img


def defined(directory: str, monkeypatch: pytest.MonkeyPatch, start: bool = True) -> None:
    """Give the instance's directory to a guest, on a libvirt made of dictionaries."""
    for module in (libvirt_connection, lifecycle):
        monkeypatch.setattr(module, "libvirt", FakeLibvirt, raising=False)
    xml = (
        f"<domain type='qemu'><name>instance-1</name><uuid>{UUID}</uuid><memory unit='MiB'>64</memory><devices>"
        f"<serial type='pty'><log file='{directory}/console.log'/></serial></devices></domain>"
    )
    specs = [DomainSpec(uuid=UUID, name="instance-1", xml=xml)]
    host: t.Any = Host()
    lifecycle.ensure_running(host, specs) if start else lifecycle.ensure_defined(host, specs)


@pytest.mark.parametrize("start", [True, False])
@pytest.mark.parametrize("root", [True, False])  # without: it starts from a volume
def test_a_disk_is_fresh_until_its_domain_is_defined(
    state: str, base: str, root: bool, start: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = os.path.dirname(create_disks([Disk(UUID, base, root=root)], state)["disks"][0]["path"])
    assert records.is_fresh(directory, "disk") and not records.is_fresh(directory, "disk.rescue")
    defined(directory, monkeypatch, start)
    assert not records.is_fresh(directory, "disk")
    create_disks([Disk(UUID, base, root=root)], state)  # it is there
    assert not records.is_fresh(directory, "disk")
    replace_disks([Disk(UUID, base, rescue=True)], state)
    assert records.is_fresh(directory, "disk.rescue") and not records.is_fresh(directory, "disk")
    defined(directory, monkeypatch, start)
    assert not records.is_fresh(directory, "disk.rescue")
    replace_disks([Disk(UUID, base)], state)
    assert records.is_fresh(directory, "disk")


def test_nothing_is_attached_or_read_once_a_guest_had_the_disk(
    state: str, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = os.path.dirname(create_disks([Disk(UUID, base)], state)["disks"][0]["path"])
    defined(directory, monkeypatch)

    def touched(*_args: t.Any, **_options: t.Any) -> t.Any:
        raise AssertionError("the guest's disk was touched")

    monkeypatch.setattr(export, "attached", touched)
    monkeypatch.setattr(partition, "find_partition", touched)
    done = inject_all([Request(UUID, ("ssh-ed25519 AAAA me",))], state, "fuse")
    assert done["instances"] == [{"uuid": UUID, "changed": False, "written": []}]
