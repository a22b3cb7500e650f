# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""dnsmasq's files: merging, and that nothing from outside becomes an option."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._network import dhcp_hosts, dnsmasq
from ansible_collections.novalite.cloud.plugins.module_utils._network.dhcp_hosts import Host

VALUES = {"name": "private", "bridge": "br100", "listen": "10.20.0.2", "cidr": "10.20.0.0/24"}
HOST = {"mac": "FA:16:3E:00:00:05", "ip": "10.20.0.5", "hostname": "web-1"}


def conf(**values: t.Any) -> list[str]:
    return dnsmasq.config(dnsmasq.parse([{**VALUES, **values}])[0], "/d").splitlines()


def test_configuration() -> None:
    lines = conf(gateway="10.20.0.1", mtu=1450, lease_seconds=600, dns=["192.0.2.53"], domain="example.org")
    for line in (
        "interface=br100",
        "listen-address=10.20.0.2",
        "bind-interfaces",
        "dhcp-hostsfile=/d/hosts",
        "pid-file=/d/pid",
        "dhcp-range=10.20.0.0,static,255.255.255.0,600s",
        "dhcp-option=option:router,10.20.0.1",
        "dhcp-option=option:mtu,1450",
        "domain=example.org",
        "no-resolv",
        "server=192.0.2.53",
        "no-hosts",
    ):
        assert line in lines
    # Two hosts' servers share the wire: an authoritative one would refuse the other's guests.
    assert not any("authoritative" in line for line in lines if not line.startswith("#"))


def test_defaults() -> None:
    lines = conf()
    assert "dhcp-option=option:router" in lines, "without it dnsmasq would name itself"
    assert not any(line.startswith(("dhcp-option=option:mtu", "server=", "no-resolv")) for line in lines)


def test_hosts_are_read_back() -> None:
    (network,) = dnsmasq.parse([{**VALUES, "hosts": [HOST]}])
    text = dhcp_hosts.hosts_text(network.hosts, "novalocal")
    assert text == "fa:16:3e:00:00:05,web-1.novalocal,10.20.0.5\n"
    assert dhcp_hosts.read_hosts(text + "rubbish\n") == list(network.hosts)
    assert dnsmasq.names_text(network.hosts, "novalocal") == "10.20.0.5 web-1.novalocal web-1\n"


V6 = {"cidr_v6": "fd00:20::/64", "listen_v6": "fd00:20::a14:2"}


def test_ipv6_by_advertisement_or_by_dhcp() -> None:
    lines = conf(**V6, mtu=1450)
    for line in (
        "enable-ra",
        "ra-param=br100,mtu:1450,60,1800",
        "dhcp-range=fd00:20::,ra-only,64,86400s",
        "listen-address=fd00:20::a14:2",
    ):
        assert line in lines
    lines = conf(**V6, ipv6_mode="stable-privacy", router_v6=False)
    assert "dhcp-range=fd00:20::,static,64,86400s" in lines and "ra-param=br100,mtu:off,60,0" in lines
    assert not any("ra-" in line or "fd00" in line for line in conf(cidr_v6="fd00:20::/64")), "no address, no router"


def test_clocks_and_metadata() -> None:
    lines = conf(**V6, ntp=["192.0.2.1", "fd00::1", "192.0.2.2"], gateway="10.20.0.1")
    assert "dhcp-option=option:ntp-server,192.0.2.1,192.0.2.2" in lines
    assert "dhcp-option=option6:ntp-server,[fd00::1]" in lines
    # Metadata is answered by this host and not by a gateway that is another machine.
    assert "dhcp-option=option:classless-static-route,169.254.169.254/32,10.20.0.2,0.0.0.0/0,10.20.0.1" in lines
    assert not any("classless" in line for line in conf(gateway="10.20.0.2"))
    routes = [{"destination": "192.0.2.0/24", "nexthop": "10.20.0.9"}]
    routes_option = "dhcp-option=option:classless-static-route,192.0.2.0/24,10.20.0.9,0.0.0.0/0,10.20.0.2"
    assert routes_option in conf(gateway="10.20.0.2", routes=routes)
    with pytest.raises(NovaliteError, match="not an IPv4 network to route to"):
        conf(routes=[{"destination": "10.0.0.0/8\nport=1", "nexthop": "10.20.0.9"}])
    with pytest.raises(NovaliteError, match="next hop"):
        conf(routes=[{"destination": "10.0.0.0/8", "nexthop": "10.20.0.9,0.0.0.0/0"}])


@pytest.mark.parametrize("namespace", [None, "nova-br100"])
def test_a_configuration_is_read_back(namespace: str | None) -> None:
    text = "\n".join(conf(**V6, namespace=namespace))
    assert dnsmasq.read_config(text) == {
        "listen": "10.20.0.2",
        "cidr": "10.20.0.0/24",
        "domain": "novalocal",
        "namespace": namespace,
    }
    assert conf() != conf(namespace="nova-br100"), "a server that is elsewhere is another one"


def test_hosts_with_both_addresses() -> None:
    (network,) = dnsmasq.parse([{**VALUES, **V6, "hosts": [{**HOST, "ipv6": "fd00:20::0005"}]}])
    text = dhcp_hosts.hosts_text(network.hosts, "novalocal")
    assert text == "fa:16:3e:00:00:05,web-1.novalocal,10.20.0.5,[fd00:20::5]\n"
    assert dhcp_hosts.read_hosts(text) == list(network.hosts)
    assert dnsmasq.names_text(network.hosts, "novalocal").splitlines() == [
        "10.20.0.5 web-1.novalocal web-1",
        "fd00:20::5 web-1.novalocal web-1",
    ]


@pytest.mark.parametrize(
    "values",
    [
        {"cidr_v6": "fd00::/48"},
        {"cidr_v6": "10.0.0.0/24"},
        {**V6, "listen_v6": "fd00:21::1"},
        {**V6, "hosts": [{**HOST, "ipv6": "fd00:21::1"}]},
        {**V6, "hosts": [{**HOST, "ipv6": "x\ny"}]},
        {"ntp": ["a b"]},
        {"namespace": "nova-x\nuser=root"},
        {"listen_v6": "fd00::1"},
        {"bridge": "../br100"},
        {"bridge": "br100\nuser=root"},
        {"listen": "10.20.1.2"},
        {"listen": "x"},
        {"cidr": "10.20.0.1/24"},
        {"cidr": "fd00::/64"},
        {"gateway": "10.20.0.1,1"},
        {"dns": ["a\nb"]},
        {"domain": "a,b"},
        {"domain": "a\nb"},
        {"domain": "-a"},
        {"domain": "a..b"},
        {"mtu": 5},
        {"lease_seconds": 5},
        {"hosts": [{**HOST, "hostname": "a,b"}]},
        {"hosts": [{**HOST, "hostname": "a\nb"}]},
        {"hosts": [{**HOST, "hostname": "a\n"}]},
        {"hosts": [{**HOST, "hostname": ""}]},
        {"hosts": [{**HOST, "hostname": "a" * 64}]},
        {"hosts": [{**HOST, "hostname": "a.b"}]},
        {"hosts": [{**HOST, "mac": "fa:16:3e:00:00"}]},
        {"hosts": [{**HOST, "mac": "fa:16:3e:00:00:05,set:x"}]},
        {"hosts": [{**HOST, "ip": "10.20.1.5"}]},
        {"hosts": [{**HOST, "ip": "10.20.0.5,infinite"}]},
        {"hosts": [HOST, {**HOST, "ip": "10.20.0.6"}]},
        {"hosts": [HOST, {**HOST, "mac": "fa:16:3e:00:00:06"}]},
    ],
)
def test_what_could_be_an_option_of_its_own_is_refused(values: dict[str, t.Any]) -> None:
    with pytest.raises(NovaliteError):
        dnsmasq.parse([{**VALUES, **values}])


def test_a_bridge_has_one_server() -> None:
    with pytest.raises(NovaliteError, match="bridge"):
        dnsmasq.parse([VALUES, {**VALUES, "name": "other"}])


def unique(hosts: list[Host]) -> list[Host]:
    return list({host.ip: host for host in {host.mac: host for host in hosts}.values()}.values())


HOSTS = st.lists(
    st.builds(
        lambda mac, ip: Host(f"fa:16:3e:00:00:{mac:02x}", f"10.0.0.{ip}", f"h{mac}"),
        st.integers(0, 9),
        st.integers(1, 12),
    ),
    max_size=8,
).map(unique)


@given(HOSTS, HOSTS)
def test_merging(old: list[Host], new: list[Host]) -> None:
    merged = dhcp_hosts.merged(old, new)
    assert set(new) <= set(merged) <= set(old) | set(new)
    assert len({host.mac for host in merged}) == len({host.ip for host in merged}) == len(merged)
    for host in set(old) - set(merged):
        assert any(host.mac == other.mac or host.ip == other.ip for other in new)
    assert dhcp_hosts.merged(merged, new) == merged
    left = dhcp_hosts.without(merged, new)
    assert set(left) == set(merged) - set(new)


def test_an_address_that_another_guest_has_got_stays() -> None:
    old = [Host("fa:16:3e:00:00:02", "10.0.0.5", "new")]
    assert dhcp_hosts.without(old, [Host("fa:16:3e:00:00:01", "10.0.0.5", "old")]) == old


FURTHER = {"cidr": "10.21.0.0/24", "listen": "10.21.0.2", "gateway": "10.21.0.2", "dns": ["192.0.2.54"]}


def test_further_ranges_have_options_of_their_own() -> None:
    single = conf(gateway="10.20.0.2", dns=["192.0.2.53"])
    several = conf(gateway="10.20.0.2", dns=["192.0.2.53"], further_ranges=[FURTHER])
    assert [line for line in single if line not in several] == ["dhcp-lease-max=256"]
    assert [line for line in several if line not in single] == [
        "listen-address=10.21.0.2",
        "dhcp-range=set:range-10.21.0.0,10.21.0.0,static,255.255.255.0,86400s",
        "dhcp-lease-max=512",
        "dhcp-option=tag:range-10.21.0.0,option:router,10.21.0.2",
        "server=192.0.2.54",
    ]
    # Where one range has routes, the others must not get them.
    elsewhere = conf(gateway="10.20.0.1", further_ranges=[FURTHER])
    assert [line for line in elsewhere if "classless" in line] == [
        "dhcp-option=option:classless-static-route,169.254.169.254/32,10.20.0.2,0.0.0.0/0,10.20.0.1",
        "dhcp-option=tag:range-10.21.0.0,option:classless-static-route,0.0.0.0/0,10.21.0.2",
    ]
    routes = [{"destination": "198.51.100.0/24", "nexthop": "10.21.0.9"}]
    assert [
        line for line in conf(gateway="10.20.0.2", further_ranges=[{**FURTHER, "routes": routes}]) if "less" in line
    ] == [
        "dhcp-option=option:classless-static-route,0.0.0.0/0,10.20.0.2",
        "dhcp-option=tag:range-10.21.0.0,option:classless-static-route,198.51.100.0/24,10.21.0.9,0.0.0.0/0,10.21.0.2",
    ]


def test_further_ranges_are_read_back_and_hold_hosts() -> None:
    text = "\n".join(conf(**V6, further_ranges=[FURTHER]))
    read = dnsmasq.read_config(text)
    assert read["further_ranges"] == [{"cidr": "10.21.0.0/24", "listen": "10.21.0.2"}]
    other = {"mac": "fa:16:3e:00:00:06", "ip": "10.21.0.6", "hostname": "web-2"}
    (network,) = dnsmasq.parse([{"name": "x", "bridge": "br100", **read, "hosts": [HOST, other]}])
    assert [network.listens_for(host.ip) for host in network.hosts] == ["10.20.0.2", "10.21.0.2"]
    for wrong, message in (
        ({"hosts": [{**other, "ip": "10.22.0.6"}]}, "is not in 10.20.0.0/24 or 10.21.0.0/24"),
        ({"further_ranges": [{**FURTHER, "cidr": "10.20.0.128/25", "listen": "10.20.0.129"}]}, "overlap"),
        ({"further_ranges": [{**FURTHER, "listen": "10.20.0.3"}]}, "is not in 10.21.0.0/24"),
        ({"further_ranges": [{**FURTHER, "listen": ""}]}, "is not an IPv4 address"),
        ({"further_ranges": [{**FURTHER, "gateway": "10.21.0.1,x"}]}, "is not an IPv4 address"),
        ({"further_ranges": [{**FURTHER, "dns": ["a\nb"]}]}, "is not an IPv4 address"),
    ):
        with pytest.raises(NovaliteError, match=message):
            dnsmasq.parse([{**VALUES, "further_ranges": [FURTHER], **wrong}])


@given(
    st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 255), unique=True, max_size=2)), min_size=1, max_size=3),
    st.booleans(),
)
def test_ranges_are_read_back_with_all_that_guests_are_told(
    ranges: list[tuple[bool, list[int]]], with_ipv6: bool
) -> None:
    arguments = [
        {
            "cidr": f"10.{20 + place}.0.0/24",
            "listen": f"10.{20 + place}.0.2",
            "gateway": f"10.{20 + place}.0.{1 if elsewhere else 2}",
            "dns": ["192.0.2.53"],
            "routes": [{"destination": f"198.51.{number}.0/24", "nexthop": "10.20.0.9"} for number in numbers],
        }
        for place, (elsewhere, numbers) in enumerate(ranges)
    ]
    (network,) = dnsmasq.parse(
        [{**VALUES, **(V6 if with_ipv6 else {}), **arguments[0], "further_ranges": arguments[1:]}]
    )
    hosts = [Host(f"fa:16:3e:00:00:0{place}", f"10.{20 + place}.0.5", "x") for place in range(len(ranges))]
    (other,) = dnsmasq.parse([{**VALUES, "cidr": "10.90.0.0/24", "listen": "10.90.0.2"}])
    text = dnsmasq.config(network, "/d")
    assert dnsmasq.ranges_in_use(text, other, hosts) == list(network.ranges)
    assert dnsmasq.ranges_in_use(text, other, hosts[1:]) == list(network.ranges)[1:]
    assert dnsmasq.ranges_in_use(text, network, hosts) == []
    assert dnsmasq.ranges_in_use("rubbish", other, hosts) == []
