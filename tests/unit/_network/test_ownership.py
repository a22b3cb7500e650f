# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nothing of others is removed or changed: bridges that were there, those of other ledgers, what is unmarked."""

from __future__ import annotations

import dataclasses
import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._network import (
    additions,
    bridge,
    bridge_shared,
    ownership,
    sysctl,
)
from ansible_collections.novalite.cloud.plugins.module_utils._network.additions import Additions
from ansible_collections.novalite.cloud.plugins.module_utils._network.bridge import Bridge, Host, Link
from ansible_collections.novalite.cloud.plugins.module_utils._network.ownership import Mark, Owner

MINE, THEIRS = Mark("0f5c8a52-9d2e-4a53-8c53-9a1d3c2b7e11"), Mark("7b0f6a52-9d2e-4a53-8c53-9a1d3c2b7e22")
UPLINK = Link("up0", "52:54:00:00:00:01", 1500, up=True, master="br1")
# an operator's bridge: its MAC is not its port's, and not even a permanent one
BR1 = Link("br1", "52:54:00:00:00:99", 9000, up=True, kind="bridge", addresses=("192.0.2.1/24",))
SPEC = Bridge("br1", "up0", ("10.20.0.2/24",), mtu=9000, mark=MINE)


def host(*links: Link, **values: t.Any) -> Host:
    return Host({link.name: link for link in links}, **values)


def commands(steps: t.Iterable[bridge.Step]) -> list[str]:
    return [" ".join(step.argv[1:]) for step in steps]


def added(steps: t.Iterable[bridge.Step]) -> Additions:
    step_additions = Additions()
    for step in steps:
        step_additions |= step.adds or Additions()
    return step_additions


def test_a_mark_is_other_ledgers() -> None:
    assert ownership.read(MINE.text) == MINE == ownership.of_ledger(MINE.ledger)
    assert ownership.read(ownership.NO_LEDGER.text) == Mark()
    for text in (None, "", "novalite", "novalite:", "novalite:hv1", f"x{MINE.text}", f"{MINE.text}\n"):
        assert MINE.owner(text) is Owner.NOT_MARKED
    assert (MINE.owner(MINE.text), MINE.owner(THEIRS.text)) == (Owner.OURS, Owner.OTHER_LEDGER)
    assert MINE.uuid_of("a") != THEIRS.uuid_of("a") != THEIRS.uuid_of("b")
    assert ownership.of_file(["# Written by novalite", MINE.line, "bind-interfaces"]) == MINE.text
    assert ownership.of_file(["# owner: somebody else"]) is None
    with pytest.raises(NovaliteError, match="'hv1' is not an identity"):
        ownership.of_ledger("hv1")


def test_an_operators_bridge_gets_an_address_and_nothing_else() -> None:
    steps = bridge.plan_present(SPEC, host(UPLINK, BR1, ssh=frozenset({"br1"}), routed=frozenset({"br1"})))
    assert commands(steps) == ["addr add 10.20.0.2/24 brd + dev br1"]
    assert added(steps) == Additions(addresses=("10.20.0.2/24",))
    later = dataclasses.replace(BR1, addresses=(*BR1.addresses, "10.20.0.2/24"))
    guest = Link("vnet9", "fe::", 1500, True, master="br1")
    assert bridge.plan_present(SPEC, host(UPLINK, later, guest)) == []
    steps, kept = bridge.plan_absent(SPEC, host(UPLINK, later, guest, added=added(steps), ssh=frozenset({"br1"})))
    assert (commands(steps), kept) == (["addr del 10.20.0.2/24 dev br1"], [])


def test_an_operators_own_address_stays() -> None:
    there = dataclasses.replace(BR1, addresses=("10.20.0.2/16",), link_local=("fe80::1/64",))
    spec = dataclasses.replace(SPEC, addresses=("10.20.0.2/24",))
    assert bridge.plan_present(spec, host(UPLINK, there)) == []
    assert bridge.plan_absent(spec, host(UPLINK, there)) == ([], [])


def test_an_interface_that_is_free_becomes_a_port_and_is_free_again() -> None:
    loose = dataclasses.replace(UPLINK, master=None, up=False)
    steps = bridge.plan_present(SPEC, host(loose, BR1))
    assert commands(steps)[-3:] == ["link set up0 up", "link set up0 master br1", "addr add 10.20.0.2/24 brd + dev br1"]
    remembered = added(steps)
    assert (remembered.ports, remembered.downs, remembered.mtus) == (("up0",), ("up0",), (("up0", 1500),))
    taken = dataclasses.replace(UPLINK, mtu=9000)
    steps, kept = bridge.plan_absent(SPEC, host(taken, BR1, added=remembered))
    assert (commands(steps), kept) == (["link set up0 nomaster", "link set up0 mtu 1500", "link set up0 down"], [])


@pytest.mark.parametrize(
    ("port", "values", "said"),
    [
        (dataclasses.replace(UPLINK, master="br7"), {}, "belongs to br7"),
        (dataclasses.replace(UPLINK, master=None, addresses=("192.0.2.9/24",)), {}, "carries the address 192.0.2.9"),
        (dataclasses.replace(UPLINK, master=None), {"ssh": frozenset({"up0"})}, "ssh session"),
        (dataclasses.replace(UPLINK, master=None), {"routed": frozenset({"up0"})}, "has routes"),
    ],
)
def test_an_interface_that_is_not_free_is_refused_by_name(port: Link, values: dict[str, t.Any], said: str) -> None:
    with pytest.raises(ConflictError, match=rf"br1 was not made by novalite and up0 is not a port of it: up0 .*{said}"):
        bridge.plan_present(SPEC, host(port, BR1, **values), move_address=True)


def test_what_an_operators_bridge_cannot_be_is_said() -> None:
    with pytest.raises(NotFoundError, match="no interface up0"):
        bridge.plan_present(SPEC, host(BR1))
    with pytest.raises(ConflictError, match="br1 is down"):
        bridge.plan_present(SPEC, host(UPLINK, dataclasses.replace(BR1, up=False)))
    tenant = Bridge("br1", vxlan=bridge.Vxlan(7, "192.0.2.1"), namespace="nova-br1", mark=MINE)
    with pytest.raises(ConflictError, match=f"ip link set br1 alias {MINE.text}"):
        bridge.plan_present(tenant, host(BR1))
    assert bridge.plan_absent(tenant, host(BR1)) == ([], [])
    (warning,) = bridge_shared.warnings(SPEC, host(UPLINK, dataclasses.replace(BR1, mtu=1500)))
    assert "MTU of 1500 bytes" in warning


def test_a_vlan_interface_that_was_there_is_used_and_stays() -> None:
    eth1 = Link("eth1", "52:54:00:00:00:01", 1500, up=True)
    vlan = Link("vlan100", eth1.mac, 1500, True, "vlan", None, "eth1", 100)
    spec = Bridge("br100", "eth1", vlan=100, mark=MINE)
    lines = commands(bridge.plan_present(spec, host(eth1, vlan)))
    assert "link set vlan100 master br100" in lines and not any("vlan100 alias" in line for line in lines)
    ours = Link("br100", eth1.mac, 1500, True, "bridge", permanent_mac=True, alias=MINE.text)
    steps, _kept = bridge.plan_absent(spec, host(eth1, ours, dataclasses.replace(vlan, master="br100")))
    assert commands(steps) == ["link set vlan100 nomaster", "link del br100"]
    with pytest.raises(ConflictError, match=f"another ledger.*{THEIRS.text}.*vlan100"):
        bridge.plan_present(spec, host(eth1, dataclasses.replace(vlan, alias=THEIRS.text)))


def test_another_ledgers_bridge_is_neither_used_nor_removed() -> None:
    other = dataclasses.replace(BR1, alias=THEIRS.text)
    with pytest.raises(ConflictError, match=f"another ledger .{THEIRS.text}.; give the network another bridge"):
        bridge.plan_present(SPEC, host(UPLINK, other))
    assert bridge.plan_absent(SPEC, host(UPLINK, other)) == ([], [f"another ledger ({THEIRS.text}), which made it"])
    tenant = Bridge("br1", namespace="nova-br1", mark=MINE)
    lo = Link("lo", "", 65536, True, alias=THEIRS.text)
    inside = {"nova-br1": {"lo": lo, "br1": Link("br1", "02::", 1500, True)}}
    assert bridge.plan_absent(tenant, host(inside=inside)) == ([], [])
    with pytest.raises(ConflictError, match=f"another ledger .{THEIRS.text}. made the namespace nova-br1"):
        bridge.plan_present(tenant, host(inside=inside))


def test_what_an_earlier_novalite_made_is_marked_where_it_is_beyond_doubt() -> None:
    tunnel = Link("vxlan7", "02::", 1450, True, "vxlan", "br7", number=7, local="192.0.2.1", dstport=4789)
    plain = Link("br7", "02::", 1450, True, "bridge", permanent_mac=True)
    spec = Bridge("br7", vxlan=bridge.Vxlan(7, "192.0.2.1"), mark=MINE)
    assert commands(bridge.plan_present(spec, host(plain, tunnel))) == [
        f"link set dev br7 alias {MINE.text}",
        f"link set dev vxlan7 alias {MINE.text}",
    ]
    steps, _kept = bridge.plan_absent(spec, host(plain, tunnel))
    assert commands(steps) == ["link set vxlan7 nomaster", "link del vxlan7", "link del br7"]
    # a bridge for a VLAN may be anybody's, and is told of
    eth1 = Link("eth1", "02::", 1500, True)
    vlan = Link("vlan100", "02::", 1500, True, "vlan", "br100", "eth1", 100)
    spec = Bridge("br100", "eth1", vlan=100, mark=MINE)
    there = host(eth1, vlan, Link("br100", "02::", 1500, True, "bridge", permanent_mac=True))
    assert bridge.plan_present(spec, there) == []
    assert bridge.plan_absent(spec, there) == ([], [])
    (warning,) = bridge_shared.warnings(spec, there)
    assert f"ip link set br100 alias {MINE.text}" in warning


def test_a_device_that_others_use_meanwhile_stays_as_it_is() -> None:
    remembered = Additions(mtus=(("eth1", 1500),), downs=("eth1",))
    eth1 = Link("eth1", "02::", 9000, True)
    ours = Link("br100", "02::", 9000, True, "bridge", permanent_mac=True, alias=MINE.text)
    vlan = Link("vlan100", "02::", 9000, True, "vlan", "br100", "eth1", 100, alias=MINE.text)
    spec = Bridge("br100", "eth1", vlan=100, mtu=9000, mark=MINE)
    steps, _kept = bridge.plan_absent(spec, host(eth1, ours, vlan, added=remembered))
    assert commands(steps)[2:4] == ["link set eth1 mtu 1500", "link set eth1 down"]
    jumbo = Link("vlan200", "02::", 9000, True, "vlan", None, "eth1", 200)
    steps, _kept = bridge.plan_absent(spec, host(eth1, ours, vlan, jumbo, added=remembered))
    assert commands(steps) == ["link set vlan100 nomaster", "link del vlan100", "link del br100"]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory in the place of /proc/sys/net; what a kernel couples is not coupled."""
    for device in ("default", "eth0"):
        (tmp_path / "ipv4/conf" / device).mkdir(parents=True)
        (tmp_path / "ipv4/conf" / device / "forwarding").write_text("0\n")
    (tmp_path / "ipv4/ip_forward").write_text("0\n")
    monkeypatch.setattr(sysctl, "ROOT", str(tmp_path))
    monkeypatch.setattr(additions, "DIRECTORY", str(tmp_path / "run"))
    return tmp_path


def forwarding(kernel: pathlib.Path) -> str:
    return (kernel / "ipv4/ip_forward").read_text().strip()


def test_a_setting_is_given_back_when_its_last_user_goes(kernel: pathlib.Path) -> None:
    sysctls = {"ipv4/ip_forward": "1"}
    first, second = additions.user_of("br1", MINE), additions.user_of("br1", THEIRS)
    assert additions.claim(first, sysctls) and additions.claim(second, sysctls)
    assert not additions.claim(first, sysctls)
    assert forwarding(kernel) == "1"
    assert additions.release(first) == {} and forwarding(kernel) == "1"
    assert additions.release(second) == {"ipv4/ip_forward": ("1", "0")} and forwarding(kernel) == "0"
    assert additions.release(second) == {}


def test_a_setting_that_was_so_already_stays(kernel: pathlib.Path) -> None:
    (kernel / "ipv4/ip_forward").write_text("1\n")
    assert not additions.claim("a", {"ipv4/ip_forward": "1"})
    assert additions.release("a") == {} and forwarding(kernel) == "1"


def test_a_setting_that_somebody_changed_since_stays(kernel: pathlib.Path) -> None:
    additions.claim("a", {"ipv4/ip_forward": "1"})
    (kernel / "ipv4/ip_forward").write_text("2\n")
    assert additions.release("a") == {} and forwarding(kernel) == "2"


def test_devices_that_forwarded_before_forward_after(kernel: pathlib.Path) -> None:
    own = kernel / "ipv4/conf/eth0/forwarding"
    own.write_text("1\n")
    additions.claim("a", {"ipv4/ip_forward": "1"})
    own.write_text("0\n")  # as the kernel does it, when all go back to 0
    additions.release("a")
    assert own.read_text().strip() == "1"


def test_what_was_added_is_remembered_by_ledger(kernel: pathlib.Path) -> None:
    changes = Additions(("10.0.0.2/24",), ("up0",), (("up0", 1500),), ("up0",))
    additions.write("br1", MINE, changes)
    assert additions.read("br1", MINE) == changes
    assert additions.read("br1", THEIRS) == additions.read("br2", MINE) == Additions()
    assert additions.owners("br1") == [MINE.text]
    assert (changes | Additions(mtus=(("up0", 9000),))).mtus == (("up0", 1500),)
    additions.write("br1", MINE, Additions())
    assert additions.owners("br1") == []
    (kernel / "run" / "by-hand").mkdir(parents=True)
    (kernel / "run" / "by-hand" / "br1.json").write_text("[torn")
    assert additions.read("br1", Mark()) == Additions() and additions.owners("br1") == []
