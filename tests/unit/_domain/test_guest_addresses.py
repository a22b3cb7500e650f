# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses that guests have by their own account: what is taken of it, and of which guests."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import guest_addresses, lifecycle
from tests.unit._domain.fake_libvirt import Fake, FakeError, FakeLibvirt

GOOD, HOSTILE, DEAF, OFF, GONE = (f"6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c1{number}" for number in range(5))
MAC = "fa:16:3e:01:02:03"


def interface(mac: t.Any, *addresses: str) -> dict[str, t.Any]:
    return {"hwaddr": mac, "addrs": [{"addr": address, "type": 0, "prefix": 24} for address in addresses] or None}


SAID: dict[str, dict[str, t.Any]] = {
    GOOD: {
        "lo": interface("00:00:00:00:00:00", "127.0.0.1", "::1"),
        "eth0": interface(MAC.upper(), "fd20::5", "10.20.0.5"),
        "eth1": interface("fa:16:3e:01:02:04"),
    },
    HOSTILE: {
        "a": interface("<script>", "10.0.0.1"),
        "b": interface(
            MAC, "<script>", "fe80::7%<script>", "10.0.0.1\n", *(f"10.0.{n // 250}.{n % 250 + 1}" for n in range(9999))
        ),
        "c": interface(None, "10.0.0.2"),
        **{
            str(number): interface(f"fa:16:3e:00:{number // 100:02d}:{number % 100:02d}", "::2")
            for number in range(999)
        },
    },
}


class Libvirt(FakeLibvirt):
    VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT = 1


class Domain:
    def __init__(self, uuid: str) -> None:
        self.uuid = uuid

    def isActive(self) -> bool:
        return self.uuid != OFF

    def agentSetResponseTimeout(self, seconds: int, _flags: int) -> None:
        assert 0 < seconds < 10

    def interfaceAddresses(self, source: int, _flags: int) -> dict[str, t.Any]:
        assert source == Libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT and self.uuid != OFF
        if self.uuid == DEAF:
            raise FakeError(86, "Guest agent is not responding")
        return SAID[self.uuid]


class Connection(Fake):
    def lookupByUUIDString(self, uuid: str) -> Domain:
        if uuid == GONE:
            raise FakeError(Libvirt.VIR_ERR_NO_DOMAIN, "no domain")
        return Domain(uuid)


@pytest.fixture
def addresses(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, list[str]]]:
    monkeypatch.setattr(lifecycle, "libvirt", Libvirt, raising=False)
    monkeypatch.setattr(guest_addresses, "libvirt", Libvirt, raising=False)
    return guest_addresses.look(Connection(), [GOOD, HOSTILE, DEAF, OFF, GONE])


def test_each_interface_with_an_address_is_there(addresses: dict[str, dict[str, list[str]]]) -> None:
    assert addresses[GOOD] == {MAC: ["10.20.0.5", "fd20::5"]}


def test_guests_that_say_nothing_have_none(addresses: dict[str, dict[str, list[str]]]) -> None:
    assert (addresses[DEAF], addresses[OFF], addresses[GONE]) == ({}, {}, {})


def test_a_guest_cannot_say_what_it_likes(addresses: dict[str, dict[str, list[str]]]) -> None:
    said = addresses[HOSTILE]
    assert 0 < len(said) <= guest_addresses.MOST_INTERFACES
    assert 0 < len(said[MAC]) <= guest_addresses.MOST_ADDRESSES
    assert "script" not in repr(addresses) and "\\n" not in repr(addresses)
