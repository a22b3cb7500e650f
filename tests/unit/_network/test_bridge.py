# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Needs of a bridge, from `ip -j` data, and that a host is never cut off."""

from __future__ import annotations

import dataclasses
import json
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._network import bridge, links
from ansible_collections.novalite.cloud.plugins.module_utils._network.bridge import Bridge, Host, Link
from ansible_collections.novalite.cloud.plugins.module_utils._network.ownership import NO_LEDGER

ETH1 = Link("eth1", "52:54:00:00:00:01", 1500, up=True)
OURS = NO_LEDGER.text
BR100 = Link(
    "br100", ETH1.mac, 1500, up=True, kind="bridge", addresses=("10.20.0.2/24",), permanent_mac=True, alias=OURS
)
SPEC = Bridge("br100", "eth1", ("10.20.0.2/24",))


def host(*links: Link, **values: t.Any) -> Host:
    return Host({link.name: link for link in links}, **values)


def commands(steps: t.Iterable[bridge.Step]) -> list[str]:
    return [" ".join(step.argv[1:]) for step in steps]


def test_a_new_bridge() -> None:
    assert commands(bridge.plan_present(SPEC, host(ETH1))) == [
        "link add name br100 address 52:54:00:00:00:01 type bridge stp_state 0 forward_delay 0",
        "link set dev br100 alias novalite:-",
        "link set eth1 master br100",
        "link set br100 up",
        "addr add 10.20.0.2/24 brd + dev br100",
    ]


def test_nothing_is_missing() -> None:
    assert bridge.plan_present(SPEC, host(dataclasses.replace(ETH1, master="br100"), BR100)) == []


def test_guests_are_plugged_in_again() -> None:
    taps = [
        Link(name, "fe:16:3e:00:00:01", 1500, up=True, master=master)
        for name, master in (("vnet0", None), ("vnet1", "br100"), ("vnet2", "virbr0"))
    ]
    spec = dataclasses.replace(SPEC, taps=("vnet0", "vnet1", "vnet2", "vnet9"))
    steps = bridge.plan_present(spec, host(dataclasses.replace(ETH1, master="br100"), BR100, *taps))
    assert commands(steps) == ["link set vnet0 master br100", "link set vnet2 master br100"]
    assert [step.undo[-2:] for step in steps if step.undo] == [["vnet0", "nomaster"], ["master", "virbr0"]]


def test_a_vlan_with_its_mtu() -> None:
    spec = dataclasses.replace(SPEC, vlan=100, mtu=9000)
    steps = bridge.plan_present(
        spec,
        host(
            dataclasses.replace(ETH1, up=False, addresses=("192.0.2.1/24",)),
            ssh=frozenset({"eth1"}),
            routed=frozenset({"eth1"}),
        ),
    )
    assert commands(steps) == [
        "link add name br100 address 52:54:00:00:00:01 type bridge stp_state 0 forward_delay 0",
        "link set dev br100 alias novalite:-",
        "link add link eth1 name vlan100 type vlan id 100",
        "link set dev vlan100 alias novalite:-",
        "link set eth1 mtu 9000",
        "link set vlan100 mtu 9000",
        "link set eth1 up",
        "link set vlan100 up",
        "link set vlan100 master br100",
        "link set br100 mtu 9000",
        "link set br100 up",
        "addr add 10.20.0.2/24 brd + dev br100",
    ]
    assert commands(bridge.Step(step.undo) for step in steps if step.undo)[:3] == [
        "link del br100",
        "link del vlan100",
        "link set eth1 mtu 1500",
    ]


def test_a_smaller_mtu_leaves_the_interface_below_a_vlan_alone() -> None:
    steps = bridge.plan_present(dataclasses.replace(SPEC, vlan=100, mtu=1450), host(ETH1))
    assert "link set eth1 mtu 1450" not in commands(steps)
    assert "link set vlan100 mtu 1450" in commands(steps)


def test_a_mac_that_could_change_is_fixed() -> None:
    port = dataclasses.replace(ETH1, master="br100")
    loose = dataclasses.replace(BR100, permanent_mac=False)
    assert commands(bridge.plan_present(SPEC, host(port, loose))) == ["link set br100 address 52:54:00:00:00:01"]
    alone = dataclasses.replace(SPEC, interface=None)
    assert commands(bridge.plan_present(alone, host(loose))) == ["link set br100 address 52:54:00:00:00:01"]
    first, second = (commands(bridge.plan_present(alone, host()))[0] for _ in range(2))
    assert first != second, "two hosts on one wire must not get the same MAC"


def test_our_address_comes_first() -> None:
    port = dataclasses.replace(ETH1, master="br100")
    other = dataclasses.replace(BR100, addresses=("10.30.0.1/24", "10.20.0.2/16", "fd00::1/64"))
    assert commands(bridge.plan_present(SPEC, host(port, other))) == [
        "addr del 10.20.0.2/16 dev br100",
        "addr del 10.30.0.1/24 dev br100",
        "addr add 10.20.0.2/24 brd + dev br100",
        "addr add 10.30.0.1/24 brd + dev br100",
    ]


@pytest.mark.parametrize(
    ("links", "values", "error", "named"),
    [
        ([], {}, NotFoundError, "eth1"),
        ([dataclasses.replace(ETH1, addresses=("192.0.2.9/24",))], {}, ConflictError, r"192\.0\.2\.9/24"),
        ([ETH1], {"ssh": frozenset({"eth1"})}, ConflictError, "ssh session"),
        ([ETH1], {"routed": frozenset({"eth1"})}, ConflictError, "routes"),
        ([dataclasses.replace(ETH1, master="br7")], {}, ConflictError, "br7"),
        ([ETH1, Link("br100", "02::", 1500, True)], {}, ConflictError, "is not a bridge"),
        ([ETH1, Link("eth2", "02::", 1500, True, addresses=("10.20.0.2/16",))], {}, ConflictError, "eth2"),
    ],
)
def test_what_would_do_harm_is_refused(
    links: list[Link], values: dict[str, t.Any], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        bridge.plan_present(SPEC, host(*links, **values))


def test_a_foreign_device_with_the_vlans_name_is_refused() -> None:
    spec = dataclasses.replace(SPEC, vlan=100)
    for kind, parent, number in ((None, None, None), ("vlan", "eth0", 100), ("vlan", "eth1", 101)):
        stranger = Link("vlan100", "02::", 1500, True, kind, None, parent, number)
        with pytest.raises(ConflictError, match="vlan100"):
            bridge.plan_present(spec, host(ETH1, stranger))


def test_a_port_that_belongs_to_the_bridge_may_carry_what_it_likes() -> None:
    port = dataclasses.replace(ETH1, master="br100")
    assert bridge.plan_present(SPEC, host(port, BR100, ssh=frozenset({"eth1"}), routed=frozenset({"eth1"}))) == []


def test_absent() -> None:
    port = dataclasses.replace(ETH1, master="br100")
    assert bridge.plan_absent(SPEC, host(port)) == ([], [])
    steps, kept = bridge.plan_absent(SPEC, host(port, BR100))
    assert (commands(steps), kept) == (["link set eth1 nomaster", "link del br100"], [])
    guest = Link("vnet3", "fe::", 1500, True, master="br100")
    assert bridge.plan_absent(SPEC, host(port, BR100, guest)) == ([], ["vnet3"])
    vlan = Link("vlan100", ETH1.mac, 1500, True, "vlan", "br100", "eth1", 100, alias=OURS)
    steps, kept = bridge.plan_absent(dataclasses.replace(SPEC, vlan=100), host(ETH1, BR100, vlan))
    assert commands(steps) == ["link set vlan100 nomaster", "link del vlan100", "link del br100"]


def test_links_are_read() -> None:
    rows = [
        {},
        {
            "ifname": "vlan100",
            "link": "eth1",
            "flags": ["UP"],
            "mtu": 1500,
            "address": "52:54:00:00:00:01",
            "master": "br100",
            "linkinfo": {"info_kind": "vlan", "info_data": {"id": 100}},
            "addr_info": [
                {"scope": "link", "local": "fe80::1", "prefixlen": 64},
                {"scope": "global", "local": "2001:db8::7", "prefixlen": 64, "temporary": True},
                {"scope": "global", "local": "10.0.0.1", "prefixlen": 8},
            ],
        },
    ]
    assert links.read_links(json.dumps(rows), {"vlan100"}) == {
        "vlan100": Link(
            "vlan100",
            "52:54:00:00:00:01",
            1500,
            True,
            "vlan",
            "br100",
            "eth1",
            100,
            ("10.0.0.1/8",),
            True,
            ("fe80::1/64",),
            advertised=True,
        )
    }


TENANT = Bridge(
    "br10000",
    vxlan=bridge.Vxlan(10000, "192.0.2.1", ("192.0.2.2",)),
    addresses=("10.0.0.2/24",),
    namespace="nova-br10000",
    mtu=1450,
)


def tenant_host() -> Host:
    """A host that has all of TENANT."""
    return host(
        Link("br10000", "02::", 1450, True, "bridge", permanent_mac=True, alias=OURS),
        Link(
            "vxlan10000",
            "02::",
            1450,
            True,
            "vxlan",
            "br10000",
            number=10000,
            local="192.0.2.1",
            remotes=("192.0.2.2",),
            alias=OURS,
            dstport=4789,
        ),
        Link("nv-br10000", "02::", 1450, True, "veth", "br10000", alias=OURS),
        inside={
            "nova-br10000": {
                "lo": Link("lo", "", 65536, True, alias=OURS),
                "br10000": Link("br10000", "02::", 1450, True, addresses=("10.0.0.2/24",)),
            }
        },
    )


def test_a_tenant_network_that_is_there() -> None:
    assert bridge.plan_present(TENANT, tenant_host()) == []


def test_what_a_tenant_network_lacks_is_added() -> None:
    there = tenant_host()
    there.links["vxlan10000"].remotes = ("192.0.2.3",)
    there.inside["nova-br10000"]["br10000"].addresses = ()
    assert commands(bridge.plan_present(TENANT, there)) == [
        "fdb del 00:00:00:00:00:00 dev vxlan10000 dst 192.0.2.3 self",
        "fdb append 00:00:00:00:00:00 dev vxlan10000 dst 192.0.2.2 self",
        "-n nova-br10000 addr add 10.0.0.2/24 brd + dev br10000",
    ]


def test_only_a_projects_own_bridge_is_set_down() -> None:
    """An interface of the hosts, and a bridge that others made, carry the host itself or others."""
    down = dataclasses.replace(TENANT, up=False)
    assert commands(bridge.plan_present(down, tenant_host())) == ["link set br10000 down"]
    others = host(Link("br10000", "02::", 1450, True, "bridge", permanent_mac=True))
    with pytest.raises(ConflictError, match="was there before and is not set down"):
        bridge.plan_present(down, others)
    for values in (
        {"interface": "eth1"},
        {"interface": "eth1", "vlan": 7},
        {},
        {"interface": "eth1", "namespace": "nova-b"},
    ):
        with pytest.raises(NovaliteError, match="may be down"):
            bridge.parse([{"name": "b", "up": False, **values}])


def test_after_its_namespace_was_lost() -> None:
    there = tenant_host()
    there.inside.clear()
    steps = commands(bridge.plan_present(TENANT, there))
    assert steps[:2] == ["netns add nova-br10000", "-n nova-br10000 link set dev lo up alias novalite:-"]
    assert steps[2:4] == [
        "link del nv-br10000",
        "link add name nv-br10000 type veth peer name br10000 netns nova-br10000",
    ]


@pytest.mark.parametrize(
    "link",
    [
        Link("vxlan10000", "02::", 1500, True, "vxlan", number=7),
        Link("vxlan10000", "02::", 1500, True),
        Link("vxlan10000", "02::", 1500, True, "vxlan", "br7", number=10000),
        Link("nv-br10000", "02::", 1500, True, "dummy"),
        Link("nv-br10000", "02::", 1500, True, "veth", "br7"),
    ],
)
def test_a_strangers_device_with_a_tenant_networks_name_is_refused(link: Link) -> None:
    with pytest.raises(ConflictError, match=link.name):
        bridge.plan_present(TENANT, host(link))


def test_a_tenant_network_goes_with_its_namespace_and_way_out() -> None:
    there = tenant_host()
    there.links["nt-br10000"] = Link("nt-br10000", "02::", 1500, True, "veth")
    steps, kept = bridge.plan_absent(TENANT, there)
    assert kept == []
    assert commands(steps)[-5:] == [
        "link del nv-br10000",
        "link del nt-br10000",
        "link del vxlan10000",
        "link del br10000",
        "netns del nova-br10000",
    ]
    assert commands(
        bridge.plan_absent(TENANT, host(inside={"nova-br10000": {"lo": Link("lo", "", 65536, True, alias=OURS)}}))[0]
    ) == ["netns del nova-br10000"]


def test_a_routers_link_local_address_is_the_only_one() -> None:
    spec = Bridge("br100", addresses=("10.20.0.2/24", "fd00::a14:2/64", "fe80::a14:2/64"))
    steps = commands(bridge.plan_present(spec, host()))
    assert steps.index("link set br100 addrgenmode none") < steps.index("link set br100 up")
    there = dataclasses.replace(BR100, addresses=("10.20.0.2/24", "fd00::a14:2/64"), link_local=("fe80::1/64",))
    assert commands(bridge.plan_present(spec, host(there))) == [
        "link set br100 addrgenmode none",
        "addr del fe80::1/64 dev br100",
        "addr add fe80::a14:2/64 dev br100 nodad",
    ]
    there = dataclasses.replace(there, link_local=("fe80::a14:2/64",))
    assert bridge.plan_present(spec, host(there)) == []


def test_addresses_that_the_host_lives_by_are_not_taken_away_to_be_sorted() -> None:
    there = dataclasses.replace(BR100, addresses=("192.0.2.1/24",))
    steps = bridge.plan_present(Bridge("br100", addresses=("10.20.0.2/24",)), host(there, routed=frozenset({"br100"})))
    assert commands(steps) == ["addr add 10.20.0.2/24 brd + dev br100"]
    kept = bridge.plan_absent(Bridge("br100"), host(there, ssh=frozenset({"br100"})))
    assert kept == ([], ["the ssh session that Ansible came by"])


@pytest.mark.parametrize(
    "values",
    [
        {"name": "br1", "vxlan": {"vni": 0, "local": "192.0.2.1"}},
        {"name": "br1", "vxlan": {"vni": 2**24, "local": "192.0.2.1"}},
        {"name": "br1", "vxlan": {"vni": 7, "local": "192.0.2"}},
        {"name": "br1", "vxlan": {"vni": 7}},
        {"name": "br1", "vxlan": {"vni": 7, "local": "192.0.2.1", "remotes": ["192.0.2.1"]}},
        {"name": "br1", "vxlan": {"vni": 7, "local": "192.0.2.1", "remotes": ["fd00::1"]}},
        {"name": "br1", "interface": "eth1", "vxlan": {"vni": 7, "local": "192.0.2.1"}},
        {"name": "br1", "namespace": "default"},
        {"name": "br1", "namespace": "nova-../x"},
        {"name": "br 100"},
        {"name": "br100;reboot"},
        {"name": "a" * 16},
        {"name": "-br"},
        {"name": "br100", "vlan": 100},
        {"name": "br100", "interface": "eth1", "vlan": 4095},
        {"name": "br100", "mtu": 10},
        {"name": "br100", "addresses": ["10.0.0.1"]},
        {"name": "br100", "addresses": ["10.0.0/8"]},
    ],
)
def test_impossible_arguments_are_refused(values: dict[str, t.Any]) -> None:
    with pytest.raises(NovaliteError):
        bridge.parse([values])
