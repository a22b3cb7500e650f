"""What a host is given for its instances."""

from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance
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
    assert {host: plan["names"] for host, plan in plans.items()} == {"hv1": ["web-1", "web-3"], "hv2": ["web-2"]}
    assert plans["hv2"]["domains"] == [
        {
            "uuid": "00000000-0000-4000-8000-000000000002",
            "name": "instance-00000002",
            "xml": "<domain type='kvm' name='instance-00000002'/>",
        }
    ]


def test_what_instances_share_is_named_once() -> None:
    plan = plan_by_host([instance(1, "hv1"), instance(2, "hv1")], {"hv1": {"domain_type": "qemu"}}, render)["hv1"]
    assert plan["bridges"] == [
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
    assert [image["checksum"] for image in plan["images"]] == ["sha256:aa", "sha256:bb"]
    assert [group["id"] for group in plan["security_groups"]] == [3]
    (network,) = plan["dhcp_networks"]
    assert network["gateway"] == network["listen"] == "10.20.0.1"
    assert [host["ip"] for host in network["hosts"]] == ["10.20.0.3", "10.20.0.4"]


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
    assert plan["firewall_instances"] == [
        {
            "id": 1,
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
    assert plan["filters"] == [
        {"name": "nova-instance-instance-00000001", "references": ["nova-base", "nova-ipv6"], "allowed_pairs": []}
    ]
    assert [network["bridge"] for network in plan["dhcp_networks"]] == ["br100"]
    assert plan["bridges"][1]["addresses"] == []


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
    (rules,) = plan["firewall_instances"]
    for bridge in plan["bridges"]:
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
    (rules,) = plan["firewall_instances"]
    assert rules["addresses"] == []
    assert rules["scoped"] == [{"bridge": "br10000", "addresses": ["10.20.0.3", "fe80::f816:3eff:fe00:1"]}]
    assert rules["allowed_pairs"] == [{"bridge": "br10000", "cidr": "10.20.0.99"}]
    assert plan["filters"][0]["allowed_pairs"] == [{"mac": "fa:16:3e:00:00:01", "cidr": "10.20.0.99"}]
    assert plan["firewall_zones"] == [{"bridge": "br10000", "zone": 2}]


def test_what_everybody_talks_to_is_not_judged_by_one_instances_groups() -> None:
    server = instance(1, "hv1")
    pairs = ["10.9.0.0/29", "10.20.0.0/30", "10.20.0.1/32", "10.20.0.255", "10.0.0.0/8"]
    server["nics"][0]["allowed_address_pairs"] = [{"ip_address": pair, "mac_address": None} for pair in pairs]
    plan = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"]
    judged = [pair["cidr"] for pair in plan["firewall_instances"][0]["allowed_pairs"]]
    # without the network's own address, this host's and the broadcast address; what is too large allows nothing
    assert judged == ["10.9.0.0/29", "10.20.0.2", "10.20.0.3"]
    assert [pair["cidr"] for pair in plan["filters"][0]["allowed_pairs"]] == judged


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
    assert plan["filters"] == []
    assert plan["firewall_instances"][0]["ports"] == [
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


@pytest.mark.parametrize(
    ("properties", "volumes", "injected"),
    [
        ({"os_host_mount": "yes"}, [], True),
        ({}, [], False),  # a tenant's: no kernel of a host mounts it
        ({"os_host_mount": "no"}, [], False),
        ({"os_partition": "1"}, [], False),
        ({"os_host_mount": "yes"}, [volume()], True),
        ({}, [volume()], False),
        ({"os_host_mount": "yes"}, [volume(made_at=1)], False),
        ({"os_host_mount": "yes"}, [volume(copied=True)], False),  # of a volume that some guest has had
        ({"os_host_mount": "yes"}, [volume(image="another")], False),
        ({"os_host_mount": "yes"}, [volume(image=None)], False),
    ],
)
def test_hosts_mount_what_the_operator_vouches_for(
    properties: dict[str, str], volumes: list[dict[str, t.Any]], injected: bool
) -> None:
    image = {**instance(1, "hv1")["image"], "id": "i1", "properties": properties}
    plan = plan_by_host([instance(1, "hv1", image=image, volumes=volumes)], {}, lambda *_: "")["hv1"]
    assert bool(plan["injections"]) is injected


def test_the_partition_to_inject_into_is_the_images_to_say() -> None:
    plans = [
        plan_by_host(
            [
                instance(
                    1,
                    "hv1",
                    image={**instance(1, "hv1")["image"], "properties": {"os_host_mount": "yes", **properties}},
                )
            ],
            {"hv1": {"domain_type": "qemu"}},
            render,
        )["hv1"]["injections"][0]["partition"]
        for properties in ({}, {"os_partition": "0"}, {"os_partition": 2})
    ]
    assert plans == ["inspect", 0, 2]


def test_a_guest_is_told_its_addresses_where_no_dhcp_does() -> None:
    server = instance(1, "hv1")
    assert plan_by_host([server], {}, lambda *_: "")["hv1"]["injections"][0]["network"] is None
    flat = {
        **NETWORK,
        "dhcp": False,
        "cidr": "10.30.0.0/22",
        "gateway": "10.30.0.1",
        "cidr_v6": "fd00::/64",
        "gateway_v6": "fd00::1",
        "dns": ["10.30.0.53"],
        "mtu": 1450,
    }
    static = {
        "id": "vif-b",
        "mac": "fa:16:3e:00:01:01",
        "ip": "10.30.0.9",
        "ipv6": "fd00::9",
        "dhcp_server": None,
        "network": flat,
    }
    routed = {**static, "network": {**flat, "gateway": None, "gateway_v6": None}, "ipv6": None}
    routed["dhcp_server"] = "10.30.0.2"  # the host is the router

    def network_of(*nics: dict[str, t.Any]) -> list[dict[str, t.Any]]:
        found = plan_by_host([t.cast(Instance, {**server, "nics": list(nics)})], {}, lambda *_: "")["hv1"][
            "injections"
        ][0]["network"]
        assert isinstance(found, dict)
        return found["nics"]

    assert network_of(static, server["nics"][0]) == [
        {
            "mac": "fa:16:3e:00:01:01",
            "name": "eth0",
            "dhcp": False,
            "ipv4": {"address": "10.30.0.9", "prefix": 22, "gateway": "10.30.0.1"},
            "ipv6": {"address": "fd00::9", "prefix": 64, "gateway": "fd00::1"},
            "dns": ["10.30.0.53"],
            "mtu": 1450,
        },
        {
            "mac": "fa:16:3e:00:00:01",
            "name": "eth1",
            "dhcp": True,
            "ipv4": {"address": "10.20.0.3", "prefix": 24, "gateway": None},
            "ipv6": None,
            "dns": [],
            "mtu": None,
        },
    ]
    # DHCP gives the first one its default route; IPv6 has one of its own
    second = network_of(server["nics"][0], static)[1]
    assert second["ipv4"]["gateway"] is None and second["ipv6"]["gateway"] == "fd00::1"
    assert network_of(routed)[0]["ipv4"]["gateway"] == "10.30.0.2"


def test_what_a_guest_is_told_goes_with_the_ways_that_its_image_takes() -> None:
    told = {"user_data": "eA==", "files": [{"path": "/a", "content": "YQ=="}], "password_hash": "$6$s$h"}
    image = instance(1, "hv1")["image"]
    whole = {"project": {"id": "p", "name": "p"}, "availability_zone": None, "metadata": {}}
    server: t.Any = {**instance(1, "hv1", guest=told, config_drive=True), **whole}
    server["image"] = {
        **image,
        "id": "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41",
        "properties": {"os_host_mount": "yes", "os_partition": "none"},
    }
    server["flavor"] = {**server["flavor"], "ephemeral_gb": 0, "swap_mb": 0}
    server["security_groups"] = [{"id": 3, "name": "default", "rules": [RULE]}]
    mounted = {**server["image"], "properties": {"os_host_mount": "yes"}}
    both: t.Any = {**server, "image": mounted, "uuid": "00000000-0000-4000-8000-000000000002"}
    plan = plan_by_host([server, both], {}, lambda *_: "")["hv1"]
    assert [drive["uuid"] for drive in plan["config_drives"]] == [server["uuid"], both["uuid"]]
    (injection,) = plan["injections"]
    assert (injection["uuid"], injection["password_hash"]) == (both["uuid"], "$6$s$h")
    assert injection["files"] == told["files"] and plan["secret"]
    del server["guest"]  # it runs, or goes
    kept = plan_by_host([server], {}, lambda *_: "")["hv1"]
    assert kept["injections"] == kept["config_drives"] == [] and not kept["secret"]


def on_network(number: int, host: str, **changes: t.Any) -> t.Any:
    server = instance(number, host)
    server["nics"][0]["network"] |= changes
    return server


def test_a_vxlan_network_spans_its_hosts_from_namespaces_of_its_own() -> None:
    tenant = {
        "bridge": "br10000",
        "bridge_interface": None,
        "manager": "vxlan",
        "vni": 10000,
        "isolated": True,
        "mtu": 1450,
        "cidr_v6": "fd00:20::/64",
        "snat": True,
    }
    plan = plan_by_host(
        [on_network(1, "hv1", **tenant)],
        {"hv1": {"domain_type": "qemu"}},
        render,
        {1: {"hv1": "192.0.2.1", "hv2": "192.0.2.2"}},
    )["hv1"]
    assert plan["bridges"] == [
        {
            "name": "br10000",
            "interface": None,
            "addresses": ["10.20.0.1/24", "fd00:20::a14:1/64", "fe80::a14:1/64"],
            "vlan": None,
            "vxlan": {"vni": 10000, "local": "192.0.2.1", "remotes": ["192.0.2.2"]},
            "namespace": "nova-br10000",
            "mtu": 1450,
        }
    ]
    (network,) = plan["dhcp_networks"]
    assert (network["namespace"], network["listen_v6"], network["router_v6"]) == (
        "nova-br10000",
        "fd00:20::a14:1",
        False,
    )
    assert plan["routers"] == [
        {
            "network": "private",
            "bridge": "br10000",
            "namespace": "nova-br10000",
            "cidr": "10.20.0.0/24",
            "address": "10.20.0.1",
            "snat": True,
            "floating": [],
        }
    ]
    assert plan["metadata_networks"] == [{"bridge": "br10000", "namespace": "nova-br10000", "network": NETWORK["uuid"]}]
    (guest,) = plan["guests"]
    assert (guest["name"], guest["address"], guest["namespace"]) == ("web-1", "10.20.0.3", "nova-br10000")


@pytest.mark.parametrize(
    ("rules", "reached"),
    [
        ([], False),
        ([{"protocol": "tcp", "port_min": 22, "port_max": 22, "cidr": "0.0.0.0/0"}], True),
        ([{"protocol": "tcp", "port_min": 22, "port_max": 22, "cidr": "203.0.113.0/24"}], False),
        ([{"protocol": "tcp", "port_min": 1, "port_max": 65535, "cidr": "10.20.0.0/24"}], True),
        ([{"protocol": "tcp", "port_min": 22, "port_max": 22, "remote_group_id": 9}], False),
        ([{"protocol": "udp", "cidr": "0.0.0.0/0"}], False),
    ],
)
def test_a_plan_knows_what_keeps_a_host_from_the_ssh_server_of_its_guest(
    rules: list[dict[str, t.Any]], reached: bool
) -> None:
    server = instance(1, "hv1", security_groups=[{"id": 9, "name": "shop", "rules": rules}])
    server["nics"][0]["dhcp_server"] = "10.20.0.1"
    (guest,) = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"]["guests"]
    assert (guest["hindrance"] is None) is reached
    if not reached:
        assert "no rule lets it in (groups of web-1: shop), for its compute host at 10.20.0.1" in guest["hindrance"]


def test_nobody_is_called_unreachable_where_the_host_has_no_address_of_its_own() -> None:
    server = instance(1, "hv1", security_groups=[])
    server["nics"][0]["dhcp_server"] = None
    (guest,) = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"]["guests"]
    assert guest["hindrance"] is None


def test_a_host_routes_only_where_there_is_something_to_route() -> None:
    server = instance(1, "hv1")
    assert plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"]["routers"] == []
    server["nics"][0]["floating_ips"] = [{"address": "203.0.113.9", "interface": "eth0"}]
    (router,) = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"]["routers"]
    assert router["floating"] == [{"fixed": "10.20.0.3", "floating": "203.0.113.9", "interface": "eth0"}]
    assert router["snat"] is False


def test_the_flavor_says_what_disks_there_are() -> None:
    flavor = {
        "name": "f",
        "root_gb": 4,
        "ephemeral_gb": 10,
        "swap_mb": 512,
        "extra_specs": {"novalite:disk_backend": "raw", "novalite:preallocation": "space"},
    }
    members = [instance(1, "hv1"), instance(2, "hv1", flavor=flavor)]
    small, large = plan_by_host(members, {"hv1": {"domain_type": "qemu"}}, render)["hv1"]["disks"]
    assert small | {"backend": "qcow2", "preallocation": "none", "ephemeral_gb": 0, "swap_mb": 0} == small
    assert (
        large | {"virtual_size_gb": 4, "backend": "raw", "preallocation": "space", "ephemeral_gb": 10, "swap_mb": 512}
        == large
    )


def test_an_image_may_be_as_large_as_the_largest_flavor() -> None:
    def limit(*sizes: int) -> t.Any:
        flavors = [{**instance(1, "hv1")["flavor"], "root_gb": size} for size in sizes]
        members = [instance(number, "hv1", flavor=flavor) for number, flavor in enumerate(flavors)]
        return plan_by_host(members, {"hv1": {"domain_type": "qemu"}}, render)["hv1"]["images"][0]["max_virtual_size"]

    assert [limit(1), limit(1, 3, 2), limit(1, 0, 2), limit(0)] == [1 << 30, 3 << 30, 0, 0]
