# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan of a host on a network with several IPv4 ranges: the same, whichever of its interfaces it is worked out from."""

from __future__ import annotations

import dataclasses
import typing as t

import netaddr
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.macs import router_link_local
from ansible_collections.novalite.cloud.plugins.module_utils._domain import guest
from ansible_collections.novalite.cloud.plugins.module_utils._guest.network_data import (
    interfaces_of,
    openstack_network_data,
)
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance
from ansible_collections.novalite.cloud.plugins.module_utils._plan.host_plan import plan_by_host
from tests.unit._plan.test_host_plan import NETWORK, instance, render

Ranges = list[dict[str, t.Any]]
# parts of a plan that are of the network, and not of one guest
SHARED = ("bridges", "routers", "metadata_networks", "firewall_serving", "firewall_zones")


def ranges(*addresses: str | None, **values: t.Any) -> Ranges:
    """10.20.0.0/24, 10.21.0.0/24 ..., in which the host has these addresses."""
    return [
        {
            "cidr": f"10.{20 + place}.0.0/24",
            "gateway": None,
            "dhcp": True,
            "dns": [f"192.0.2.{place}"],
            "routes": [],
            "address": address,
            **values,
        }
        for place, address in enumerate(addresses)
    ]


def server(number: int, place: int, all_ranges: Ranges, **network: t.Any) -> Instance:
    """An instance with its first address in the range at this place."""
    made = instance(number, "hv1")
    own = all_ranges[place]
    of_range = {key: own[key] for key in ("cidr", "gateway", "dhcp", "dns", "routes")}
    made["nics"][0].update(
        ip=str(netaddr.IPNetwork(own["cidr"])[number + 10]),
        dhcp_server=own["address"],
        network={**NETWORK, **of_range, "ranges": all_ranges, **network},
    )
    return t.cast(Instance, made)


def plan_of(servers: t.Iterable[Instance]) -> dict[str, t.Any]:
    return dataclasses.asdict(plan_by_host(servers, {"hv1": {"domain_type": "qemu"}}, render)["hv1"])


@given(
    st.lists(st.booleans(), min_size=2, max_size=4).filter(any),
    st.data(),
    st.fixed_dictionaries(
        {"snat": st.booleans(), "isolated": st.booleans(), "cidr_v6": st.sampled_from([None, "fd00::/64"])}
    ),
)
def test_it_is_the_same_whichever_interface_comes_first(
    has: list[bool], data: st.DataObject, network: dict[str, t.Any]
) -> None:
    addresses = [f"10.{20 + place}.0.1" if there else None for place, there in enumerate(has)]
    served = data.draw(st.lists(st.booleans(), min_size=len(has), max_size=len(has)))
    all_ranges = [{**each, "dhcp": dhcp} for each, dhcp in zip(ranges(*addresses), served)]
    places = data.draw(st.lists(st.sampled_from([at for at, there in enumerate(has) if there]), min_size=1, max_size=4))
    servers = [server(number, place, all_ranges, **network) for number, place in enumerate(places, 1)]
    plan, reverse = plan_of(servers), plan_of(servers[::-1])
    assert {key: plan[key] for key in SHARED} == {key: reverse[key] for key in SHARED}
    alone = [plan_of([each]) for each in servers]
    assert all(each[key] == plan[key] for each in alone for key in SHARED)

    def dhcp_networks(one_plan: dict[str, t.Any]) -> list[dict[str, t.Any]]:
        return [{key: value for key, value in each.items() if key != "hosts"} for each in one_plan["dhcp_networks"]]

    assert dhcp_networks(plan) == dhcp_networks(reverse) and all(
        dhcp_networks(each) == dhcp_networks(plan) for each in alone
    )
    # and a guest gets its address by the server that has its range
    for network_plan in plan["dhcp_networks"]:
        cidrs = {network_plan["cidr"], *(each["cidr"] for each in network_plan.get("further_ranges", []))}
        assert cidrs == {each["cidr"] for each in all_ranges if each["dhcp"] and each["address"]}
        for host in network_plan["hosts"]:
            assert any(host["ip"] in netaddr.IPNetwork(cidr) for cidr in cidrs)


@given(st.booleans(), st.booleans())
def test_one_range_is_told_as_ever(snat: bool, isolated: bool) -> None:
    """A host that has an address in one of the ranges alone is told no more than with a network of that range, but for
    which ranges its bridge may have addresses in, and its router's guests."""
    several = plan_of([server(1, 1, ranges(None, "10.21.0.1"), snat=snat, isolated=isolated)])
    single = server(1, 1, ranges(None, "10.21.0.1"), snat=snat, isolated=isolated)
    del single["nics"][0]["network"]["ranges"]
    alone = plan_of([single])
    assert several["bridges"][0].pop("ranges") == ["10.20.0.0/24", "10.21.0.0/24"]
    for of_several, of_single in zip(several["routers"], alone["routers"], strict=True):
        assert of_several.pop("further_ranges") == [{"cidr": "10.21.0.0/24", "address": "10.21.0.1"}]
        assert (of_several.pop("cidr"), of_several.pop("address")) == ("10.20.0.0/24", None)
        assert (of_single.pop("cidr"), of_single.pop("address")) == ("10.21.0.0/24", "10.21.0.1")
    assert several == alone


def test_what_the_host_has_in_each_range() -> None:
    all_ranges = ranges("10.20.0.1", "10.21.0.1", None)
    all_ranges[1]["routes"] = [{"destination": "198.51.100.0/24", "nexthop": "10.21.0.9"}]
    floating = [{"address": "203.0.113.9", "interface": "eth0"}]
    servers = [server(1, 1, all_ranges, cidr_v6="fd00::/64"), server(2, 0, all_ranges, cidr_v6="fd00::/64")]
    servers[0]["nics"][0]["floating_ips"] = t.cast(t.Any, floating)
    plan = plan_of(servers)
    (bridge,), (dhcp,), (router,) = plan["bridges"], plan["dhcp_networks"], plan["routers"]
    assert bridge["addresses"] == ["10.20.0.1/24", "10.21.0.1/24", "fd00::a14:1/64", "fe80::a14:1/64"]
    assert bridge["ranges"] == ["10.20.0.0/24", "10.21.0.0/24", "10.22.0.0/24"]
    assert (dhcp["cidr"], dhcp["listen"], dhcp["gateway"], dhcp["dns"]) == (
        "10.20.0.0/24",
        "10.20.0.1",
        "10.20.0.1",
        ["192.0.2.0"],
    )
    assert dhcp["listen_v6"] == "fd00::a14:1" and "routes" not in dhcp
    assert dhcp["further_ranges"] == [
        {
            "cidr": "10.21.0.0/24",
            "listen": "10.21.0.1",
            "gateway": "10.21.0.1",
            "dns": ["192.0.2.1"],
            "routes": all_ranges[1]["routes"],
        }
    ]
    assert {host["ip"] for host in dhcp["hosts"]} == {"10.21.0.11", "10.20.0.12"}
    assert (router["cidr"], router["address"]) == ("10.20.0.0/24", "10.20.0.1")
    assert router["further_ranges"] == [
        {"cidr": "10.21.0.0/24", "address": "10.21.0.1"},
        {"cidr": "10.22.0.0/24", "address": None},
    ]
    assert router["floating"] == [{"fixed": "10.21.0.11", "floating": "203.0.113.9", "interface": "eth0"}]
    # answers to a broadcast come from the bridge's first address, router advertisements from its link-local one
    own, other = plan["firewall_instances"]
    assert own["dhcp_servers"] == ["10.20.0.1", "10.21.0.1", "fe80::a14:1"]
    assert other["dhcp_servers"] == ["10.20.0.1", "fe80::a14:1"]
    assert own["ra_servers"] == other["ra_servers"] == [router_link_local("10.20.0.1")]
    parameters = list(guest._filter_parameters(servers[0]["nics"][0], True))
    assert [value for name, value in parameters if name == "DHCPSERVER"] == ["10.21.0.1", "10.20.0.1"]
    assert ("RASERVER", "fe80::a14:1") in parameters and ("PROJNET", "10.21.0.0") in parameters


def test_a_range_without_dhcp_has_no_server_and_its_guests_are_told_by_their_config_drive() -> None:
    all_ranges = ranges("10.20.0.1", "10.21.0.1")
    all_ranges[0]["dhcp"] = False
    without, with_dhcp = server(1, 0, all_ranges), server(2, 1, all_ranges)
    plan = plan_of([without, with_dhcp])
    (dhcp,) = plan["dhcp_networks"]
    assert (dhcp["cidr"], [host["ip"] for host in dhcp["hosts"]]) == ("10.21.0.0/24", ["10.21.0.12"])
    assert "further_ranges" not in dhcp and plan["firewall_serving"] == ["br100"]
    assert plan["firewall_instances"][0]["dhcp_servers"] == []
    (guest_network,) = openstack_network_data(without)["networks"]
    assert (guest_network["ip_address"], guest_network["routes"][0]["gateway"]) == ("10.20.0.11", "10.20.0.1")
    assert openstack_network_data(with_dhcp)["networks"][0]["type"] == "ipv4_dhcp"


def test_further_addresses_have_the_netmask_of_their_range() -> None:
    all_ranges = ranges("10.20.0.1", "10.21.0.1", dhcp=False)
    all_ranges[0]["cidr"] = "10.20.0.0/16"
    own = server(1, 1, all_ranges)
    own["nics"][0]["more_ips"] = ["10.20.9.9", "10.21.0.99"]
    first, *further = openstack_network_data(own)["networks"]
    assert (first["netmask"], first["routes"][0]["gateway"]) == ("255.255.255.0", "10.21.0.1")
    assert [(each["ip_address"], each["netmask"], each["routes"]) for each in further] == [
        ("10.20.9.9", "255.255.0.0", []),
        ("10.21.0.99", "255.255.255.0", []),
    ]
    (interface,) = interfaces_of(own)
    assert interface["ipv4"] == {"address": "10.21.0.11", "prefix": 24, "gateway": "10.21.0.1"}
    assert [(each["address"], each["prefix"], each["gateway"]) for each in interface["more_ipv4"]] == [
        ("10.20.9.9", 16, None),
        ("10.21.0.99", 24, None),
    ]


def test_all_ranges_are_open_and_their_common_addresses_nobodys() -> None:
    all_ranges = ranges("10.20.0.1", None)
    all_ranges[1]["gateway"] = "10.21.0.254"
    own = server(1, 0, all_ranges, allow_project_net_traffic=True)
    own["nics"][0]["allowed_address_pairs"] = [
        {"ip_address": pair, "mac_address": None} for pair in ("10.20.0.0/30", "10.21.0.252/30")
    ]
    (rules,) = plan_of([own])["firewall_instances"]
    assert rules["open_networks"] == [{"bridge": "br100", "cidr": cidr} for cidr in ("10.20.0.0/24", "10.21.0.0/24")]
    judged = [pair["cidr"] for pair in rules["allowed_pairs"]]
    assert judged == ["10.20.0.2", "10.20.0.3", "10.21.0.252", "10.21.0.253"]
