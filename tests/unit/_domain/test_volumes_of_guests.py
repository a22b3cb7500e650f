# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle, volumes
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, NovaliteError
from tests.unit._domain.fake_libvirt import Fake, FakeError, FakeLibvirt

SERIAL = "0b9c2f8a-6d1e-4e55-9b1e-0b8f0f6d3a01"
LIVE, CONFIG = FakeLibvirt.VIR_DOMAIN_AFFECT_LIVE, FakeLibvirt.VIR_DOMAIN_AFFECT_CONFIG
ONE: volumes.Attachment = {
    "id": "a",
    "volume_id": SERIAL,
    "instance_uuid": "i",
    "name": "instance-00000001",
    "device": "vdb",
    "xml": f"<disk><target dev='vdb'/><serial>{SERIAL}</serial></disk>",
}


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lifecycle, volumes):
        monkeypatch.setattr(module, "libvirt", FakeLibvirt, raising=False)


class Domain:
    """A guest with its disks by place; it lets go of one when it was asked `deaf` times in vain."""

    def __init__(self, active: bool = True, deaf: int = 0, refuses: bool = False, disks: str = "") -> None:
        self.active, self.deaf, self.refuses = active, deaf, refuses
        self.disks = {LIVE: disks, CONFIG: disks}
        self.asked = 0

    def isActive(self) -> bool:
        return self.active

    def isPersistent(self) -> bool:
        return True

    def hasManagedSaveImage(self, flags: int) -> bool:
        return False

    def XMLDesc(self, flags: int) -> str:
        place = CONFIG if flags & FakeLibvirt.VIR_DOMAIN_XML_INACTIVE else LIVE
        return f"<domain><devices>{self.disks[place]}</devices></domain>"

    def attachDeviceFlags(self, xml: str, flag: int) -> None:
        if flag == LIVE and self.refuses:
            raise FakeError(9, "no more PCI slots")
        self.disks[flag] += xml

    def detachDeviceFlags(self, xml: str, flag: int) -> None:
        if flag == LIVE:
            self.asked += 1
            if self.asked <= self.deaf:
                return
        self.disks[flag] = ""


class Connection(Fake):
    def __init__(self, domain: Domain) -> None:
        self.domain = domain

    def lookupByUUIDString(self, uuid: str) -> Domain:
        return self.domain


def test_a_volume_comes_now_and_for_good() -> None:
    domain = Domain()
    assert volumes.attach(Connection(domain), ONE, check_mode=True) == "attach"
    assert domain.disks == {LIVE: "", CONFIG: ""}
    assert volumes.attach(Connection(domain), ONE) == "attach"
    assert all(SERIAL in disks for disks in domain.disks.values())
    assert volumes.attach(Connection(domain), ONE) == "none"


def test_a_guest_that_is_off_has_it_at_its_next_start() -> None:
    domain = Domain(active=False)
    assert volumes.attach(Connection(domain), ONE) == "attach"
    assert domain.disks[LIVE] == "" and SERIAL in domain.disks[CONFIG]
    assert volumes.detach(Connection(domain), ONE) == "detach"
    assert domain.disks[CONFIG] == ""


def test_what_the_guest_does_not_take_is_not_in_its_definition() -> None:
    domain = Domain(refuses=True)
    with pytest.raises(NovaliteError, match="PCI"):
        volumes.attach(Connection(domain), ONE)
    assert domain.disks == {LIVE: "", CONFIG: ""}


def test_the_name_of_another_disk_is_not_taken() -> None:
    with pytest.raises(ConflictError, match="vdb"):
        volumes.attach(Connection(Domain(disks="<disk><target dev='vdb'/></disk>")), ONE)


@pytest.mark.parametrize("deaf", [0, 1, 2])
def test_a_guest_is_asked_until_it_lets_go(deaf: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volumes, "POLL", 0.001)
    domain = Domain(deaf=deaf, disks=str(ONE["xml"]))
    assert volumes.detach(Connection(domain), ONE, timeout=0.01, attempts=3) == "detach"
    assert domain.disks == {LIVE: "", CONFIG: ""} and domain.asked == deaf + 1


def test_a_guest_that_never_does_keeps_it_in_its_definition_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volumes, "POLL", 0.001)
    domain = Domain(deaf=99, disks=str(ONE["xml"]))
    with pytest.raises(NovaliteError, match="did not let go"):
        volumes.detach(Connection(domain), ONE, timeout=0.01, attempts=3)
    assert domain.asked == 3
    assert all(SERIAL in disks for disks in domain.disks.values())


def test_serial_numbers_tell_the_volumes(monkeypatch: pytest.MonkeyPatch) -> None:
    xml = f"<domain><devices><disk><target dev='vda'/></disk>{ONE['xml']}</devices></domain>"
    device_by_serial: dict[str, t.Any] = volumes.disks_of(xml)
    assert device_by_serial == {SERIAL: "vdb"}


def test_a_guest_that_ended_just_now_is_said_to_be_gone() -> None:
    class Gone(Fake):
        def lookupByUUIDString(self, uuid: str) -> None:
            raise FakeError(FakeLibvirt.VIR_ERR_NO_DOMAIN, "no domain with matching uuid")

    guests = volumes.LiveGuests(Gone)
    assert not guests.running("i")
    with pytest.raises(NotFoundError, match="has gone just now"):
        guests.resize("i", SERIAL, 1)
    with pytest.raises(NotFoundError, match="has gone just now"):
        guests.copy("i", SERIAL, "/copy", "raw", False)
