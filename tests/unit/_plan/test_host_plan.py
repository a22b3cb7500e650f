"""Plan of a host for its instances."""

from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._network import dnsmasq
from ansible_collections.novalite.cloud.plugins.module_utils._network.bridge import parse
from ansible_collections.novalite.cloud.plugins.module_utils._plan.host_plan import plan_by_host

NETWORK = {
    "id": 1,
    "uuid": "0c0f9e5e-7d0e-4bb5-8f0c-0d6f1e1b2c3d",
    "name": "private",
    "cidr": "10.20.0.0/24",
    "cidr_v6": None,
    "gateway": None,
    "gateway_v6": None,
    "bridge": "br100",
    "bridge_interface": "eth1",
    "vlan": None,
    "dhcp": True,
    "dns": [],
    "domain": "novalocal",
    "mtu": None,
    "lease_seconds": 86400,
    "manager": "flat_dhcp",
    "vni": None,
    "isolated": False,
    "snat": False,
    "ntp": [],
    "ipv6_mode": "eui64",
}
RULE = {"id": "r", "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_min": 22, "port_max": 22}


def instance(number: int, host: str, **changes: t.Any) -> t.Any:
    base = {
        "id": number,
        "uuid": f"00000000-0000-4000-8000-{number:012d}",
        "name": f"web-{number}",
        "hostname": f"web-{number}",
        "domain_name": f"instance-{number:08x}",
        "host": host,
        "flavor": {"name": "m1.tiny", "vcpus": 1, "memory_mb": 512, "root_gb": 1},
        "image": {
            "name": "ami-tiny",
            "disk_format": "qcow2",
            "source": "/images/ami-tiny.qcow2",
            "checksum": "sha256:aa",
            "size": 7,
            "virtual_size": 32 << 20,
            "kernel": {"source": "/images/kernel", "checksum": "sha256:bb", "size": 5},
            "ramdisk": None,
            "properties": {"os_host_mount": "yes"},
        },
        "key": {"name": "test", "public_key": "ssh-ed25519 AAAA test"},
        "security_groups": [{"id": 3, "name": "default", "rules": [RULE]}],
        "nics": [
            {
                "id": f"vif-{number}",
                "mac": f"fa:16:3e:00:00:{number:02x}",
                "ip": f"10.20.0.{number + 2}",
                "ipv6": None,
                "dhcp_server": f"10.20.0.{host[-1]}",
                "network": NETWORK,
            }
        ],
        "config_drive": False,
        "guest": {},
    }
    return {**copy.deepcopy(base), **changes}


def render(server: t.Mapping[str, t.Any], facts: t.Mapping[str, t.Any]) -> str:
    return f"<domain type='{facts['domain_type']}' name='{server['domain_name']}'/>"


def test_each_host_gets_its_own_instances_in_one_plan() -> None:
    plans = plan_by_host(
        [instance(1, "hv1"), instance(2, "hv2"), instance(3, "hv1")],
        {"hv1": {"domain_type": "qemu"}, "hv2": {"domain_type": "kvm"}},
        render,
    )
    assert {host: plan.names for host, plan in plans.items()} == {"hv1": ["web-1", "web-3"], "hv2": ["web-2"]}
    assert plans["hv2"].domains == [
        {
            "uuid": "00000000-0000-4000-8000-000000000002",
            "name": "instance-00000002",
            "xml": "<domain type='kvm' name='instance-00000002'/>",
        }
    ]


def test_what_instances_share_is_named_once() -> None:
    plan = plan_by_host([instance(1, "hv1"), instance(2, "hv1")], {"hv1": {"domain_type": "qemu"}}, render)["hv1"]
    assert plan.bridges == [
        {
            "name": "br100",
            "interface": "eth1",
            "addresses": ["10.20.0.1/24"],
            "vlan": None,
            "vxlan": None,
            "namespace": None,
            "mtu": None,
        }
    ]
    assert [image["checksum"] for image in plan.images] == ["sha256:aa", "sha256:bb"]
    assert [group["id"] for group in plan.security_groups] == [3]
    (network,) = plan.dhcp_networks
    assert network["gateway"] == network["listen"] == "10.20.0.1"
    assert [host["ip"] for host in network["hosts"]] == ["10.20.0.3", "10.20.0.4"]


@pytest.mark.parametrize(("cidr_v6", "least"), [(None, 576), ("fd00::/64", 1280)])
def test_a_network_that_no_host_would_take_spoils_no_plan(cidr_v6: str | None, least: int) -> None:
    for mtu in (1, least - 1, least, 65535):
        server = instance(1, "hv1")
        server["nics"][0]["network"] |= {"mtu": mtu, "cidr_v6": cidr_v6}
        plan = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"]
        assert [part["mtu"] for part in (*plan.bridges, *plan.dhcp_networks)] == [max(mtu, least)] * 2
        parse(plan.bridges)
        dnsmasq.parse(plan.dhcp_networks)


def test_the_firewall_knows_every_address_and_the_own_dhcp_server() -> None:
    server = instance(1, "hv1")
    server["nics"].append(
        {
            "id": "vif-b",
            "mac": "fa:16:3e:00:01:01",
            "ip": "10.30.0.9",
            "ipv6": "fd00::9",
            "dhcp_server": None,
            "network": {**NETWORK, "bridge": "br200", "dhcp": False, "cidr": "10.30.0.0/24"},
        }
    )
    plan = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"]
    assert plan.firewall_instances == [
        {
            "id": 1,
            "uuid": server["uuid"],
            "addresses": ["10.20.0.3", "fe80::f816:3eff:fe00:1", "10.30.0.9", "fd00::9", "fe80::f816:3eff:fe00:101"],
            "scoped": [],
            "allowed_pairs": [],
            "devices": ["tapvif-1", "tapvif-b"],
            "ports": [],
            "dhcp_servers": ["10.20.0.1"],
            "ra_servers": [],
            "security_groups": [3],
        }
    ]
    assert plan.filters == [
        {
            "name": "nova-instance-instance-00000001",
            "uuid": server["uuid"],
            "references": ["nova-base", "nova-ipv6"],
            "allowed_pairs": [],
        }
    ]
    assert [network["bridge"] for network in plan.dhcp_networks] == ["br100"]
    assert plan.bridges[1]["addresses"] == []


def test_nobody_judges_an_interface_whose_port_security_is_off() -> None:
    """Of an instance with two, the other one is judged, and its filter and groups know nothing of the open one."""
    server = instance(1, "hv1")
    opened = {**server["nics"][0], "id": "vif-b", "mac": "fa:16:3e:00:01:01", "ip": "10.20.0.9", "ipv6": "fd00::9"}
    pairs = [{"ip_address": "10.20.0.99", "mac_address": None}]
    server["nics"].append({**opened, "port_security_enabled": False, "allowed_address_pairs": pairs})
    plans = {
        antispoof: plan_by_host([server], {"hv1": {"domain_type": "qemu", "antispoof": antispoof}}, render)["hv1"]
        for antispoof in ("nwfilter", "chains")
    }
    (rules,) = plans["nwfilter"].firewall_instances
    assert rules["addresses"] == ["10.20.0.3", "fe80::f816:3eff:fe00:1"]
    assert (rules["devices"], rules["open_devices"], rules["allowed_pairs"]) == (["tapvif-1"], ["tapvif-b"], [])
    assert plans["nwfilter"].filters == [
        {
            "name": "nova-instance-instance-00000001",
            "uuid": server["uuid"],
            "references": ["nova-base"],
            "allowed_pairs": [],
            "beside": ["nova-open"],
        }
    ]
    (rules,) = plans["chains"].firewall_instances
    assert rules["ports"][1] == {"device": "tapvif-b", "mac": "fa:16:3e:00:01:01", "port_security": False}


def test_a_network_that_is_open_to_itself_is_told_to_the_firewall() -> None:
    server = instance(1, "hv1")
    assert (
        "open_networks"
        not in plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"].firewall_instances[0]
    )
    server["nics"][0]["network"] = {**NETWORK, "allow_project_net_traffic": True, "cidr_v6": "fd00::/64"}
    (rules,) = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"].firewall_instances
    assert rules["open_networks"] == [
        {"bridge": "br100", "cidr": cidr} for cidr in ("10.20.0.0/24", "fd00::/64", "fe80::/64")
    ]


def servers_of(*nics: dict[str, t.Any]) -> tuple[list[str], list[str]]:
    server = instance(1, "hv1")
    server["nics"] = [
        {
            **server["nics"][0],
            "id": f"{number}",
            **{key: nic[key] for key in nic if key in server["nics"][0]},
            "network": {**NETWORK, "bridge": f"br{number}", "id": number, "cidr_v6": "fd00::/64", **nic},
        }
        for number, nic in enumerate(nics, 1)
    ]
    plan = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"]
    (rules,) = plan.firewall_instances
    for bridge in plan.bridges:
        known = [text.partition("/")[0] for text in bridge["addresses"]]
        assert not rules["ra_servers"] or len(nics) > 1 or set(rules["ra_servers"]) <= set(known)
    return rules["dhcp_servers"], rules["ra_servers"]


def test_the_firewall_knows_the_router_that_this_host_is() -> None:
    own = ["10.20.0.1", "fe80::a14:1"]
    assert servers_of({}) == (own, own[1:])
    assert servers_of({}, {"cidr_v6": None, "dhcp_server": "10.20.0.7"}) == (sorted([*own, "10.20.0.7"]), own[1:])
    # A router of somebody else's has a link-local address that nobody told us.
    assert servers_of({"gateway_v6": "fd00::1"}) == (own, [])
    assert servers_of({}, {"gateway_v6": "fd00::1", "dhcp": False}) == (own, [])
    assert servers_of({"dhcp": False}) == ([], [])


def test_an_isolated_network_has_a_scope_and_a_conntrack_zone_of_its_own() -> None:
    server = instance(1, "hv1")
    nic = server["nics"][0]
    nic["allowed_address_pairs"] = [{"ip_address": "10.20.0.99", "mac_address": None}]
    nic["network"] = {**NETWORK, "id": 65537, "bridge": "br10000", "isolated": True}
    plan = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"]
    (rules,) = plan.firewall_instances
    assert rules["addresses"] == []
    assert rules["scoped"] == [{"bridge": "br10000", "addresses": ["10.20.0.3", "fe80::f816:3eff:fe00:1"]}]
    assert rules["allowed_pairs"] == [{"bridge": "br10000", "cidr": "10.20.0.99"}]
    assert plan.filters[0]["allowed_pairs"] == [{"mac": "fa:16:3e:00:00:01", "cidr": "10.20.0.99"}]
    assert plan.firewall_zones == [{"bridge": "br10000", "zone": 2}]


def test_what_everybody_talks_to_is_not_judged_by_one_instances_groups() -> None:
    server = instance(1, "hv1")
    pairs = ["10.9.0.0/29", "10.20.0.0/30", "10.20.0.1/32", "10.20.0.255", "10.0.0.0/8"]
    server["nics"][0]["allowed_address_pairs"] = [{"ip_address": pair, "mac_address": None} for pair in pairs]
    plan = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"]
    judged = [pair["cidr"] for pair in plan.firewall_instances[0]["allowed_pairs"]]
    # without the network's own address, this host's and the broadcast address; what is too large allows nothing
    assert judged == ["10.9.0.0/29", "10.20.0.2", "10.20.0.3"]
    assert [pair["cidr"] for pair in plan.filters[0]["allowed_pairs"]] == judged


def test_a_host_may_hold_its_guests_to_their_addresses_with_chains_of_its_own() -> None:
    server = instance(1, "hv1")
    server["nics"][0]["id"] = "0c0f9e5e-7d0e-4bb5-8f0c-0d6f1e1b2c3d"
    server["nics"].append(
        {
            **server["nics"][0],
            "id": "1c",
            "ipv6": "fd00::9",
            "mac": "fa:16:3e:00:01:01",
            "ip": None,
            "allowed_address_pairs": [{"ip_address": "10.9.0.0/24", "mac_address": "00:00:5e:00:01:01"}],
        }
    )
    plan = plan_by_host([server], {"hv1": {"domain_type": "qemu", "antispoof": "chains"}}, render)["hv1"]
    assert plan.filters == []
    assert plan.firewall_instances[0]["ports"] == [
        {"device": "tap0c0f9e5e-7d", "mac": "fa:16:3e:00:00:01", "addresses": ["10.20.0.3"], "allowed_pairs": []},
        {
            "device": "tap1c",
            "mac": "fa:16:3e:00:01:01",
            "addresses": ["fd00::9", "fe80::f816:3eff:fe00:101"],
            "allowed_pairs": [{"mac": "00:00:5e:00:01:01", "cidr": "10.9.0.0/24"}],
        },
    ]


def volume(**values: t.Any) -> dict[str, t.Any]:
    """The root volume of an instance, about to be made of its image."""
    return {
        "boot_index": 0,
        "volume_id": "v1",
        "backend": "file",
        "options": {},
        "format": "raw",
        "made_at": None,
        "image": "i1",
        "copied": False,
        "attached_at": None,
        "device": "/dev/vda",
        "readonly": False,
        **values,
    }
