# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ranges beside the tables of hosts, judged address by address."""

from __future__ import annotations

import functools
import ipaddress
import typing as t
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._addressing import places
from ansible_collections.novalite.cloud.plugins.module_utils._addressing.places import Place, Use, conflict
from ansible_collections.novalite.cloud.plugins.module_utils._host import places as host_places
from tests.support.examples import part_of

Row = dict[str, t.Any]
BRIDGE = "br101"  # the network's own
LINKS = ("eth0", "docker0", "tun0", BRIDGE)
# An office, Docker's and libvirt's ranges, a VPN, IPv6: each so small that all of its addresses can be asked about
WORLDS = ("192.0.2.0/27", "172.17.0.0/28", "192.168.122.0/28", "10.8.0.0/27", "fd00:20::/124", "2001:db8::/125")


@functools.cache  # hypothesis looks through the list of a strategy when it is made
def subnets(world: str, length: int) -> st.SearchStrategy[t.Any]:
    return st.sampled_from(list(ipaddress.ip_network(world).subnets(new_prefix=length)))


@functools.cache
def inner(world: str) -> st.SearchStrategy[t.Any]:
    """A network in a world, or around it."""
    whole: t.Any = ipaddress.ip_network(world)
    around = [whole.supernet(new_prefix=length) for length in (4, 8, 12, 16, 20, 24) if length < whole.prefixlen]
    within = st.integers(whole.prefixlen, whole.max_prefixlen).flatmap(functools.partial(subnets, world))
    return within | st.sampled_from(around)


@functools.cache
def address_in(world: str) -> st.SearchStrategy[t.Any]:
    return st.sampled_from(list(ipaddress.ip_network(world)))


@st.composite
def tables(draw: t.Any) -> tuple[list[Row], list[Row], list[str], list[str]]:
    """Links, routes, the ssh session and name servers of a host, as `ip -j` and files show them."""
    anywhere = st.sampled_from(WORLDS)
    links = [{"ifname": name, "addr_info": []} for name in LINKS]
    for _number in range(draw(st.integers(0, 4))):
        network = draw(anywhere.flatmap(inner))
        address = network[draw(st.integers(0, min(network.num_addresses, 16) - 1))]
        entry = {"local": str(address), "prefixlen": network.prefixlen, "scope": "global"}
        draw(st.sampled_from(links))["addr_info"].append(entry)
    routes: list[Row] = [{"dst": "default", "gateway": str(draw(address_in(WORLDS[0]))), "dev": "eth0"}]
    for _number in range(draw(st.integers(0, 5))):
        destination = draw(anywhere.flatmap(inner))
        text = str(destination) if destination.num_addresses > 1 else str(destination.network_address)
        row: Row = {"dst": draw(st.sampled_from([text, text, text, "0.0.0.0/1", "2000::/3", "default"]))}
        kind = draw(st.sampled_from(["link", "gateway", "table", "hops", "blackhole", "unreachable"]))
        hop = {"dev": draw(st.sampled_from(LINKS))}
        if kind in ("gateway", "hops"):
            hop["gateway"] = str(draw(address_in(draw(anywhere))))
        if kind == "hops":
            row["nexthops"] = [hop]
        elif kind in ("blackhole", "unreachable"):
            row["type"] = kind
        else:
            row |= hop
        if kind == "table":
            row["table"] = "51820"
        routes.append(row)
    client = [str(draw(anywhere.flatmap(address_in)))] * 4 if draw(st.booleans()) else []
    return links, routes, client, [str(draw(anywhere.flatmap(address_in)))] if draw(st.booleans()) else []


def lives_by(address: t.Any, links: list[Row], routes: list[Row], machines: t.Collection[str]) -> bool:
    """Tell whether the host has, or reaches by anything but its default route and the network's bridge, `address`.

    As a person reads the output of `ip addr` and `ip route`; `machines` are the ssh client and name servers.
    """
    for link in links:
        for entry in link["addr_info"]:
            around = ipaddress.ip_interface(f"{entry['local']}/{entry['prefixlen']}").network
            if link["ifname"] != BRIDGE and address in around:
                return True
    for route in routes:
        for hop in route.get("nexthops", [route]):
            if route.get("type") or hop["dev"] == BRIDGE:
                continue
            if hop.get("gateway") == str(address):
                return True
            if route["dst"] not in ("default", "0.0.0.0/1", "2000::/3") and address in ipaddress.ip_network(
                route["dst"]
            ):
                return True
    return str(address) in machines


def places_of(links: list[Row], routes: list[Row], session: list[str], servers: list[str]) -> list[Place]:
    with (
        mock.patch.object(host_places, "_name_servers", lambda: servers),
        mock.patch.object(host_places, "_libvirts", list),
    ):
        return host_places.of_rows(links, routes, session)


def by_the_bridge(routes: list[Row], address: str) -> bool:
    """Tell whether the kernel would send to `address` by the network's bridge: then it stays reachable there."""
    there = ipaddress.ip_address(address)
    lengths: dict[int, str] = {}
    for route in routes:
        for hop in route.get("nexthops", [route]):
            if route.get("type") or route.get("table"):
                continue
            if route["dst"] == "default":  # of the version that its gateway has
                if (":" in hop.get("gateway", address)) == (":" in address):
                    lengths.setdefault(0, hop["dev"])
            elif there in ipaddress.ip_network(route["dst"]):
                lengths.setdefault(ipaddress.ip_network(route["dst"]).prefixlen, hop["dev"])
    return bool(lengths) and lengths[max(lengths)] == BRIDGE


@settings(max_examples=part_of(300))
@given(table=tables(), cidr=st.sampled_from(WORLDS).flatmap(inner))
def test_a_range_is_refused_where_the_host_lives_by_one_of_its_addresses(table: t.Any, cidr: t.Any) -> None:
    links, routes, session, servers = table
    here = places_of(links, routes, session, servers)
    worlds = [ipaddress.ip_network(world) for world in WORLDS]
    addresses = [address for world in worlds if world.version == cidr.version for address in world if address in cidr]
    own = {entry["local"] for link in links for entry in link["addr_info"]}
    machines = {text for text in (*session[:1], *servers) if text not in own and not by_the_bridge(routes, text)}
    refused = conflict(Use(str(cidr), (BRIDGE,)), here)
    # a range around the worlds has addresses beside them: of these only what it is told to hold is looked for
    expected = any(lives_by(address, links, routes, machines) for address in addresses)
    assert (refused is not None) == expected or (refused is not None and not addresses)
    if refused is not None:
        assert refused.device != BRIDGE
        assert set(refused.row) == {"kind", "cidr", "device"} and refused.text


def test_a_vpn_is_where_its_own_table_leads() -> None:
    """As wg-quick sets it up, with the default route in a table of its own."""
    routes = [
        {"dst": "default", "dev": "wg0", "table": "51820"},
        {"dst": "10.8.0.0/24", "dev": "wg0", "table": "51820"},
    ]
    here = places_of([], routes, [], [])
    assert conflict(Use("10.8.0.128/25", (BRIDGE,)), here) == Place("route", "10.8.0.0/24", "wg0")
    assert conflict(Use("10.9.0.0/24", (BRIDGE,)), here) is None


@pytest.mark.parametrize("order", [1, -1])
def test_a_machine_is_where_the_longest_route_leads(order: int) -> None:
    routes: list[Row] = [
        {"dst": "default", "gateway": "192.0.2.1", "dev": "eth0"},
        {"dst": "10.8.0.0/24", "dev": BRIDGE},
        {"dst": "10.8.0.128/25", "dev": "tun0"},
        {"dst": "default", "gateway": "fe80::1", "dev": "eth1"},
    ]
    here = places_of([], routes[::order], ["10.8.0.200"], ["10.8.0.3", "198.51.100.1", "2001:db8::53"])
    assert [(place.cidr, place.device) for place in here if place.kind in ("client", "name server")] == [
        ("10.8.0.200", "tun0"),
        ("10.8.0.3", BRIDGE),
        ("198.51.100.1", "eth0"),
        ("2001:db8::53", "eth1"),
    ]


@given(table=tables(), cidr=st.sampled_from(WORLDS).flatmap(inner))
def test_who_takes_no_address_loses_nothing(table: t.Any, cidr: t.Any) -> None:
    assert conflict(Use(str(cidr), (BRIDGE,), taken=False), places_of(*table)) is None


@given(table=tables(), world=st.sampled_from(WORLDS), data=st.data())
def test_a_network_on_the_hosts_wire_hands_out_what_nobody_needs(table: t.Any, world: str, data: st.DataObject) -> None:
    """A provider's network on the hosts' LAN. Which of its addresses hosts have themselves, its `reserved` says."""
    links, routes, session, servers = table
    for link in links:
        link["ifname"] = BRIDGE
    for route in routes:
        for hop in route.get("nexthops", [route]):
            if "dev" in hop:
                hop["dev"] = BRIDGE
    here = [place for place in places_of(links, routes, session, servers) if place.device == BRIDGE]
    low, high = sorted(data.draw(st.tuples(address_in(world), address_in(world))))
    refused = conflict(Use(world, (BRIDGE,), True, ((int(low), int(high)),)), here)
    gateways = [hop.get("gateway") for route in routes if "type" not in route for hop in route.get("nexthops", [route])]
    own = {entry["local"] for link in links for entry in link["addr_info"]}
    needed = [*gateways, *(text for text in (*session[:1], *servers) if text not in own)]
    machines = {ipaddress.ip_address(text) for text in needed if text}
    reached = {place.address for place in here}
    expected = any(low <= each <= high for each in machines if each.version == low.version and int(each) in reached)
    assert (refused is not None) == expected


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["kind", "cidr", "device"]), inner),
    )
)
def test_whatever_a_host_says_is_read(value: t.Any) -> None:
    assert all(isinstance(place, Place) for place in places.parse(value))


def test_what_a_host_says_is_bounded_and_kept() -> None:
    rows = [Place("route", f"10.{number // 256}.{number % 256}.0/24", "eth0").row for number in range(1000)]
    assert [place.row for place in places.parse(rows)] == rows[: places.MOST]


@pytest.mark.parametrize(
    ("cidr", "shared", "refused"),
    [
        ("10.20.0.0/24", (), True),
        ("10.20.0.0/24", ("10.0.0.0/8",), False),  # a part that somebody set apart
        ("10.0.0.0/8", ("10.0.0.0/8",), True),  # all of it
        ("10.20.0.0/24", ("10.0.0.0/9",), True),
    ],
)
def test_a_part_of_a_route_that_is_shared_is_free(cidr: str, shared: tuple[str, ...], refused: bool) -> None:
    here = [Place("gateway", "192.0.2.1", "eth0"), Place("route", "10.0.0.0/8", "eth0")]
    assert (conflict(Use(cidr, (BRIDGE,)), here, shared) is not None) == refused


LAN = [
    Place("address", "203.0.113.11/24", "eth0"),
    Place("gateway", "203.0.113.1", "eth0"),
    Place("client", "203.0.113.99", "eth0"),
    Place("address", "172.17.0.1/16", "docker0"),
]


@pytest.mark.parametrize(
    ("first", "last", "interface", "refused"),
    [
        ("203.0.113.100", "203.0.113.200", "eth0", None),
        ("203.0.113.0", "203.0.113.10", "eth0", "gateway"),
        ("203.0.113.11", "203.0.113.11", "eth0", "address"),
        ("203.0.113.90", "203.0.113.100", "eth0", "client"),
        ("172.17.3.0", "172.17.3.9", "eth0", "address"),
        ("172.17.3.0", "172.17.3.9", "docker0", None),
        ("198.51.100.0", "198.51.100.9", "eth0", None),  # routed to the host by others
        ("172.17.3.0", "172.17.3.9", "eth7", None),  # a host without that interface
    ],
)
def test_floating_ips_are_nobodys(first: str, last: str, interface: str, refused: str | None) -> None:
    bounds = [(int(ipaddress.IPv4Address(first)), int(ipaddress.IPv4Address(last)))]
    place = places.conflict_of_addresses(bounds, interface, LAN)
    assert (place and place.kind) == refused
