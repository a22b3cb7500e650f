# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The undo of an instance takes away what is its own, of each kind of thing that goes by a number, a name or a bridge:
not what another instance of the same number has (a ledger that was restored), nor another ledger, nor nobody known."""

from __future__ import annotations

import pathlib
import subprocess
import typing as t
import uuid

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import removal
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk
from ansible_collections.novalite.cloud.plugins.module_utils._domain import lifecycle
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._firewall import apply, arguments, owner
from ansible_collections.novalite.cloud.plugins.module_utils._host import libvirt_connection, locks
from ansible_collections.novalite.cloud.plugins.module_utils._network import (
    additions,
    dhcp,
    dhcp_hosts,
    dnsmasq,
    haproxy,
    metadata_proxy,
    nwfilter,
    ownership,
    router,
    routing,
    users,
)
from ansible_collections.novalite.cloud.plugins.module_utils._network.ownership import NO_LEDGER, Mark
from tests.unit._domain import test_lifecycle as domains
from tests.unit._network import test_nwfilter as filters

OWN, SAME_NUMBER, OTHER_LEDGER, UNMARKED = "own", "another of its number", "another ledger's", "unmarked"
OWNERS = (OWN, SAME_NUMBER, OTHER_LEDGER, UNMARKED)
LEDGER, OTHER = (Mark(f"{number}f5c8a52-9d2e-4a53-8c53-9a1d3c2b7e11") for number in "01")
UUID, ANOTHER = domains.spec(6)["uuid"], domains.spec(9)["uuid"]
TAP, ANOTHER_TAP = "tap0a1b2c3d-01", "tap0a1b2c3d-02"


class Owner(t.NamedTuple):
    """The owner of a thing that is on the host: its ledger, and the UUID and device of its instance."""

    mark: Mark = LEDGER
    uuid: str | None = UUID
    device: str = TAP


WHO = {
    OWN: Owner(),
    SAME_NUMBER: Owner(uuid=ANOTHER, device=ANOTHER_TAP),
    OTHER_LEDGER: Owner(OTHER, ANOTHER, ANOTHER_TAP),
    UNMARKED: Owner(NO_LEDGER, None, ANOTHER_TAP),
}


def unmarked(who: Owner, text: str) -> str:
    """A file as an earlier novalite wrote it, if it is that one's."""
    lines = text.splitlines(True)
    return "".join(line for line in lines if who != WHO[UNMARKED] or not line.startswith(ownership.COMMENT))


class Place(t.NamedTuple):
    directory: pathlib.Path
    namespace: t.Any
    monkeypatch: pytest.MonkeyPatch


class Thing(t.NamedTuple):
    """Something of the owner's is put on the host by `put`; `undo` is of our own instance."""

    put: t.Callable[[Owner], object]
    undo: t.Callable[[], object]
    is_there: t.Callable[[], bool]
    replace: t.Callable[[], object] | None = None  # by what our instance is to have


def chains(place: Place) -> Thing:
    def request(who: Owner, state: str) -> arguments.Request:
        value = {"id": 6, "uuid": who.uuid, "addresses": ["10.7.0.16"], "devices": [who.device], "security_groups": []}
        return arguments.Request(tuple(arguments.parse_instances([value])), state=state)

    def ensure(who: Owner, state: str = "present") -> object:
        with place.namespace():
            return apply.apply(request(who, state), mark=who.mark)

    def saved() -> str:
        with place.namespace():
            return subprocess.run(["iptables-save"], check=True, capture_output=True, text=True).stdout

    return Thing(
        ensure, lambda: ensure(WHO[OWN], "absent"), lambda: ":nova-inst-6 " in saved(), lambda: ensure(WHO[OWN])
    )


def network_filter(place: Place) -> Thing:
    host = filters.FakeLibvirt()
    for module in (libvirt_connection, nwfilter):
        place.monkeypatch.setattr(module, "libvirt", host, raising=False)
    place.monkeypatch.setattr(nwfilter, "connect", host.open)

    def ensure(who: Owner, state: str = "present") -> object:
        parsed = nwfilter.parse([{"name": "nova-instance-instance-00000006", "uuid": who.uuid}])
        return nwfilter.ensure(parsed, state, "test:///", mark=who.mark)

    def put(who: Owner) -> None:
        ensure(who)
        if who.uuid is None:
            host.uuids["nova-instance-instance-00000006"] = str(uuid.uuid4())

    return Thing(
        put, lambda: ensure(WHO[OWN], "absent"), lambda: bool(host.filters), lambda: ensure(WHO[OWN], "present")
    )


def dhcp_entry(place: Place) -> Thing:
    directory = place.directory / "networks" / "br7"

    def network(who: Owner) -> dnsmasq.Network:
        mac = "fa:16:3e:00:00:06" if who == WHO[OWN] else "fa:16:3e:00:00:09"
        host = {"mac": mac, "ip": "10.7.0.16", "hostname": "g1", "uuid": who.uuid}
        value = {"name": "n", "bridge": "br7", "listen": "10.7.0.2", "cidr": "10.7.0.0/24", "hosts": [host]}
        return dnsmasq.parse([value])[0]

    def put(who: Owner) -> None:
        directory.mkdir(parents=True)
        (directory / "conf").write_text(unmarked(who, dnsmasq.config(network(who), str(directory), who.mark)))
        (directory / "hosts").write_text(dhcp_hosts.hosts_text(network(who).hosts, "novalocal"))

    def ensure(state: str) -> object:
        return dhcp.ensure([network(WHO[OWN])], state, state_dir=str(place.directory), mark=LEDGER)

    return Thing(put, lambda: ensure("absent"), directory.exists, lambda: ensure("present"))


def same_mac(place: Place) -> Thing:
    """An entry for a port that another instance has by now."""
    directory = place.directory / "networks" / "br7"
    thing = dhcp_entry(place)

    def put(who: Owner) -> None:
        thing.put(who)
        text = (directory / "hosts").read_text()
        (directory / "hosts").write_text(text.replace("00:00:09", "00:00:06"))

    return thing._replace(put=put)


def proxy(place: Place) -> Thing:
    directory = place.directory / "metadata" / "br7"

    def put(who: Owner) -> None:
        (value,) = haproxy.parse([{"bridge": "br7", "network": UUID}])
        upstream = haproxy.parse_upstream("http://192.0.2.10:8775")
        directory.mkdir(parents=True)
        text = haproxy.config(value, upstream, "hv1", b"k" * 32, 7, who.mark)
        (directory / "haproxy.cfg").write_text(unmarked(who, text))

    def undo() -> object:
        with place.namespace():
            return metadata_proxy.remove(["br7"], state_dir=str(place.directory), mark=LEDGER)

    return Thing(put, undo, directory.exists)


def way_out(place: Place) -> Thing:
    routers = router.parse([{"network": "n", "bridge": "br7", "cidr": "10.7.0.0/24", "snat": True}])

    def ip(*words: str) -> str:
        with place.namespace():
            return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def put(who: Owner) -> None:
        ip("ip", "link", "add", "br7", "type", "bridge")
        if who != WHO[UNMARKED]:
            ip("ip", "link", "set", "br7", "alias", who.mark.text)
        with place.namespace():
            routing.ensure(routers, "present", mark=who.mark)

    def undo() -> object:
        with place.namespace():
            return routing.ensure(routers, "absent", mark=LEDGER)

    return Thing(put, undo, lambda: "MASQUERADE" in ip("iptables-save", "-t", "nat"))


def domain(place: Place) -> Thing:
    for module in (libvirt_connection, lifecycle):
        place.monkeypatch.setattr(module, "libvirt", domains.FakeLibvirt, raising=False)
    host, spec = domains.Host(), domains.spec(6)

    def put(who: Owner) -> None:
        host.defineXML(str(spec["xml"]).replace(UUID, who.uuid or ANOTHER))

    return Thing(
        put,
        lambda: lifecycle.ensure_absent(host, [spec]),
        lambda: bool(host.domains),
        lambda: lifecycle.ensure_running(host, [spec]),
    )


def disks(place: Place) -> Thing:
    instances = place.directory / "instances"

    def put(who: Owner) -> None:
        (instances / (who.uuid or "notes")).mkdir(parents=True)

    return Thing(
        put, lambda: removal.remove_disks([Disk(uuid=UUID)], str(place.directory)), lambda: any(instances.iterdir())
    )


# Kind -> the owners of what goes. What has no mark is an earlier novalite's beyond doubt, if its name or place can be
# nobody else's. A proxy and a way out are of all instances on a bridge.
GOES: dict[t.Callable[[Place], Thing], set[str]] = {
    chains: {OWN},
    network_filter: {OWN, UNMARKED},
    dhcp_entry: {OWN},
    same_mac: {OWN, UNMARKED},
    domain: {OWN},
    disks: {OWN},
    proxy: {OWN, SAME_NUMBER, UNMARKED},
    way_out: {OWN, SAME_NUMBER, UNMARKED},
}


@pytest.fixture
def place(lan: t.Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(t.cast(t.Any, locks.locked).__wrapped__, "__defaults__", (10.0, str(tmp_path / "locks")))
    monkeypatch.setitem(t.cast(dict[str, t.Any], apply.apply.__kwdefaults__), "directory", str(tmp_path / "kept"))
    monkeypatch.setattr(owner, "FILE", str(tmp_path / "owner"))
    monkeypatch.setattr(additions, "DIRECTORY", str(tmp_path / "run"))
    monkeypatch.setattr(users, "domains", lambda uri: {})
    return Place(tmp_path / "state", lambda: lan.enter(lan.hypervisor), monkeypatch)


@pytest.mark.root
@pytest.mark.parametrize("lan", [0], indirect=True)
@pytest.mark.parametrize("whose", OWNERS)
@pytest.mark.parametrize("kind", GOES, ids=lambda kind: kind.__name__)
def test_an_undo_takes_its_own(place: Place, kind: t.Callable[[Place], Thing], whose: str) -> None:
    thing = kind(place)
    thing.put(WHO[whose])
    assert thing.is_there()
    thing.undo()
    assert thing.is_there() == (whose not in GOES[kind])
    if thing.is_there() and thing.replace is not None:
        with pytest.raises(ConflictError):
            thing.replace()
        assert thing.is_there()
