# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI devices of a host: as libvirt tells of them, as a guest gets them, and compared one by one."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import compare, host_devices, lifecycle
from ansible_collections.novalite.cloud.plugins.module_utils._domain.guest import guest_of, render
from ansible_collections.novalite.cloud.plugins.module_utils._domain.outcome import DomainSpec
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import libvirt_connection
from ansible_collections.novalite.cloud.plugins.module_utils._model import pci
from ansible_collections.novalite.cloud.plugins.module_utils._model.numa import Claim
from tests.unit._domain.fake_libvirt import FakeLibvirt
from tests.unit._domain.test_lifecycle import Host

# as libvirt's tests have it (tests/nodedevschemadata), a network card of two ports with virtual functions
NODE = """<device>
  <name>pci_0000_{bus:02x}_00_{function}</name>
  <capability type='pci'>
    <class>0x020000</class>
    <domain>0</domain><bus>{bus}</bus><slot>0</slot><function>{function}</function>
    <product id='{product}'>82599 Ethernet Controller</product>
    <vendor id='0x8086'>Intel Corporation</vendor>{more}
    <iommuGroup number='15'><address domain='0x0000' bus='0x0a' slot='0x00' function='0x0'/></iommuGroup>
    <pci-express><link validity='cap' port='0' speed='5' width='4'/></pci-express>
  </capability>
</device>"""
VIRTUALS = "<capability type='virt_functions' maxCount='7'/><numa node='1'/>"
PARENT = """<capability type='phys_function'>
  <address domain='0x0000' bus='0x0a' slot='0x00' function='0x0'/></capability><numa node='1'/>"""
FACTS = {"domain_type": "kvm", "arch": "x86_64", "machine": "pc", "emulator": "/usr/bin/qemu", "disk_cache": "none"}
UUID = "6f1b6a2c-3f0e-4b1d-9a57-000000000007"
INSTANCE: t.Any = {
    **{"uuid": UUID, "name": "web", "domain_name": "instance-00000007", "project": {"id": "a" * 32, "name": "demo"}},
    **{"flavor": {"name": "f", "vcpus": 2, "memory_mb": 128}, "image": {"id": "8b", "name": "tiny"}, "nics": []},
}
HELD = pci.Held("gpu", "0000:0a:00.1")


@pytest.mark.parametrize(
    ("xml", "device"),
    [
        (
            NODE.format(bus=10, function=0, product="0x10fb", more=VIRTUALS),
            pci.Device("0000:0a:00.0", "8086", "10fb", type=pci.PF, numa_node=1),
        ),
        (
            NODE.format(bus=10, function=1, product="0x10ed", more=PARENT),
            pci.Device("0000:0a:00.1", "8086", "10ed", type=pci.VF, numa_node=1, parent="0000:0a:00.0"),
        ),
        (NODE.format(bus=175, function=7, product="0x0001", more=""), pci.Device("0000:af:00.7", "8086", "0001")),
    ],
)
def test_devices_are_understood(xml: str, device: pci.Device) -> None:
    assert host_devices.device_of(xml) == device


def xml(*devices: pci.Held) -> str:
    return render(guest_of(INSTANCE, FACTS, claim=Claim((), devices=devices) if devices else None))


def differences(desired: str, actual: str) -> list[tuple[str, t.Any, t.Any]]:
    differing = compare.differences(compare.parse(desired), compare.parse(actual), None)
    return [(difference["field"], difference["desired"], difference["actual"]) for difference in differing]


def test_a_device_that_differs_is_named() -> None:
    assert differences(xml(HELD), xml(HELD)) == []
    assert differences(xml(HELD), xml()) == [("host_devices.0000:0a:00.1", "yes", None)]
    left = pci.Held("gpu", HELD.address, managed=False)
    other = pci.Held("gpu", "0000:0b:00.0")
    assert differences(xml(left), xml(HELD, other)) == [
        ("host_devices.0000:0a:00.1", "no", "yes"),
        ("host_devices.0000:0b:00.0", None, "yes"),
    ]
    # as libvirt shows it while the guest runs
    live = xml(HELD).replace("<source>", "<driver name='vfio'/><source>")
    live = live.replace("</source>", "</source><alias name='hostdev0'/>")
    assert differences(xml(HELD), live) == []


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    for module in (libvirt_connection, lifecycle, host_devices):
        monkeypatch.setattr(module, "libvirt", FakeLibvirt, raising=False)
    return Host()


def test_the_device_of_another_guest_stays_its_own(host: Host) -> None:
    another = xml(HELD).replace(UUID, UUID[:-1] + "8").replace("instance-00000007", "somebodys")
    host.defineXML(another)
    spec = DomainSpec(uuid=UUID, name="instance-00000007", xml=xml(HELD))
    for ensure in (lifecycle.ensure_running, lifecycle.ensure_defined):
        with pytest.raises(NovaliteError, match=f"PCI device {HELD.address}, .* is domain {UUID[:-1]}8's on this host"):
            ensure(host, [spec])
    assert list(host.states()) == ["somebodys"]
    virtual = pci.Device(HELD.address, "8086", "10ed", parent="0000:0a:00.0")
    assert host_devices.users(host, [virtual]) == {HELD.address: UUID[:-1] + "8", "0000:0a:00.0": UUID[:-1] + "8"}
    free = DomainSpec(uuid=UUID, name="instance-00000007", xml=xml(pci.Held("gpu", "0000:0b:00.0")))
    lifecycle.ensure_running(host, [free])
    lifecycle.ensure_running(host, [free])  # its own is no other's
