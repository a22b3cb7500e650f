# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t
import xml.etree.ElementTree as ElementTree

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle, lifecycle_interfaces
from ansible_collections.novalite.cloud.plugins.module_utils._domain.outcome import DomainSpec
from ansible_collections.novalite.cloud.plugins.module_utils._host import libvirt_connection
from tests.unit._domain.fake_libvirt import Fake, FakeError, FakeLibvirt

LIVE, CONFIG = 1, 2
UUID = "6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11"


class Libvirt(FakeLibvirt):
    VIR_DOMAIN_AFFECT_LIVE = LIVE
    VIR_DOMAIN_AFFECT_CONFIG = CONFIG
    VIR_ERR_DEVICE_MISSING = 99


def interface(mac: str, reference: str = "") -> str:
    return f'<interface type="bridge"><mac address="{mac}"/><source bridge="br100"/>{reference}</interface>'


def domain_xml(macs: t.Iterable[str], filters: t.Mapping[str, str] | None = None) -> str:
    written = "".join(interface(mac, (filters or {}).get(mac, "")) for mac in macs)
    return f"<domain><devices>{written}</devices></domain>"


class Domain:
    """A guest with interfaces, live and in its definition, that lets go when it is asked for the `deaf`+1st time."""

    def __init__(self, live: list[str] | None, config: list[str], deaf: int = 0, broken: str = "") -> None:
        self.macs = {LIVE: list(live or []), CONFIG: list(config)}
        self.filters: dict[int, dict[str, str]] = {LIVE: {}, CONFIG: {}}
        self.active, self.deaf, self.broken, self.calls = live is not None, deaf, broken, 0

    def isActive(self) -> bool:
        return self.active

    def isPersistent(self) -> bool:
        return True

    def XMLDesc(self, flags: int) -> str:
        scope = CONFIG if flags & FakeLibvirt.VIR_DOMAIN_XML_INACTIVE else LIVE
        return domain_xml(self.macs[scope], self.filters[scope])

    def attachDeviceFlags(self, xml: str, scope: int) -> None:
        mac = self._mac(xml)
        if mac == self.broken and scope == CONFIG:
            raise FakeError(1, "no more PCI slots")
        self.macs[scope].append(mac)

    def detachDeviceFlags(self, xml: str, scope: int) -> None:
        self.calls += 1
        if scope == LIVE and self.calls <= self.deaf:
            return
        mac = self._mac(xml)
        if mac not in self.macs[scope]:
            raise FakeError(Libvirt.VIR_ERR_DEVICE_MISSING, "no such device")
        self.macs[scope].remove(mac)

    def updateDeviceFlags(self, xml: str, scope: int) -> None:
        self.calls += 1
        mac, reference = self._mac(xml), ElementTree.fromstring(xml).find("filterref")
        self.filters[scope][mac] = "" if reference is None else ElementTree.tostring(reference, encoding="unicode")

    def _mac(self, xml: str) -> str:
        mac_element = ElementTree.fromstring(xml).find("mac")
        assert mac_element is not None
        return str(mac_element.get("address"))


class Connection(Fake):
    def __init__(self, domain: Domain | None) -> None:
        self.domain = domain

    def lookupByUUIDString(self, uuid: str) -> Domain:
        if self.domain is None:
            raise FakeError(FakeLibvirt.VIR_ERR_NO_DOMAIN, "no domain")
        return self.domain


@pytest.fixture(autouse=True)
def libvirt(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (libvirt_connection, lifecycle, lifecycle_interfaces):
        monkeypatch.setattr(module, "libvirt", Libvirt, raising=False)
    monkeypatch.setattr(lifecycle_interfaces, "ASK_AGAIN", 0.0)
    monkeypatch.setattr(lifecycle_interfaces, "POLL", 0.0)


def ensure(domain: Domain | None, macs: list[str], **options: t.Any) -> lifecycle_interfaces.Plugged:
    spec = DomainSpec(uuid=UUID, name="instance-00000001", xml=domain_xml(macs))
    (done,) = lifecycle_interfaces.ensure(Connection(domain), [spec], **options)
    return done


A, B, C = "fa:16:3e:00:00:0a", "fa:16:3e:00:00:0b", "fa:16:3e:00:00:0c"


def test_what_is_missing_is_plugged_in_and_what_is_too_much_pulled_out() -> None:
    domain = Domain([A, C], [A, C])
    done = ensure(domain, [A, B])
    assert (done.attached, done.detached, done.error) == ([B], [C], None)
    assert domain.macs == {LIVE: [A, B], CONFIG: [A, B]}
    assert not ensure(domain, [A, B]).changed


def test_a_guest_that_is_off_has_its_definition_changed() -> None:
    domain = Domain(None, [A])
    assert ensure(domain, [A, B]).attached == [B]
    assert domain.macs == {LIVE: [], CONFIG: [A, B]}


def test_what_was_half_done_is_finished() -> None:
    domain = Domain([A, B], [A])
    assert ensure(domain, [A, B]).attached == [B]
    assert domain.macs == {LIVE: [A, B], CONFIG: [A, B]}
    domain = Domain([A, B], [A])
    assert ensure(domain, [A]).detached == [B]
    assert domain.macs == {LIVE: [A], CONFIG: [A]}


def test_the_filter_of_an_interface_that_is_there_follows() -> None:
    """Port security goes while the guest runs, and comes back."""
    own = '<filterref filter="nova-instance-a"><parameter name="IP" value="10.0.0.5" /></filterref>'
    opened = '<filterref filter="nova-open" />'
    domain = Domain([A, B], [A, B])
    for filters, changing in (({A: own, B: own}, [A, B]), ({A: own, B: opened}, [B]), ({A: own}, [B]), ({A: own}, [])):
        calls = domain.calls
        spec = DomainSpec(uuid=UUID, name="instance-00000001", xml=domain_xml([A, B], filters))
        (seen,) = lifecycle_interfaces.ensure(Connection(domain), [spec], check_mode=True)
        assert (seen.filtered, domain.calls) == (changing, calls)
        (done,) = lifecycle_interfaces.ensure(Connection(domain), [spec])
        assert (done.filtered, done.changed, done.error) == (changing, bool(changing), None)
        for scope in (LIVE, CONFIG):
            assert {mac: text for mac, text in domain.filters[scope].items() if text} == filters


def test_check_mode_changes_nothing() -> None:
    domain = Domain([A], [A])
    done = ensure(domain, [B], check_mode=True)
    assert (done.attached, done.detached) == ([B], [A])
    assert domain.macs == {LIVE: [A], CONFIG: [A]}
    assert lifecycle_interfaces.diff_of([done]) == {
        "before": {"instance-00000001": [A]},
        "after": {"instance-00000001": [B]},
    }


def test_a_failure_takes_back_what_was_plugged_in() -> None:
    domain = Domain([A], [A], broken=B)
    done = ensure(domain, [A, B])
    assert done.error is not None and "no more PCI slots" in done.error and not done.changed
    assert domain.macs == {LIVE: [A], CONFIG: [A]}


def test_a_guest_is_asked_until_it_lets_go_or_its_time_is_over() -> None:
    domain = Domain([A, B], [A, B], deaf=3)
    assert ensure(domain, [A]).error is None and domain.macs[LIVE] == [A]
    deaf = Domain([A, B], [A, B], deaf=10**6)
    done = ensure(deaf, [A], timeout=0.01)
    assert done.error is not None and "did not let go of the interface" in done.error and B in deaf.macs[LIVE]


def test_a_domain_that_is_not_here_and_xml_that_is_none() -> None:
    assert "is not on this host" in str(ensure(None, [A]).error)
    spec = DomainSpec(uuid=UUID, name="x", xml="<domain")
    (done,) = lifecycle_interfaces.ensure(Connection(Domain([A], [A])), [spec])
    assert "cannot be read" in str(done.error)
