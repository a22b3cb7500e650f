"""What a plan says of guests: injection, what they are told, volumes and namespaces."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance
from ansible_collections.novalite.cloud.plugins.module_utils._plan.host_plan import plan_by_host
from tests.unit._plan.test_host_plan import NETWORK, RULE, instance, render, volume


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
    assert bool(plan.injections) is injected


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
        )["hv1"].injections[0]["partition"]
        for properties in ({}, {"os_partition": "0"}, {"os_partition": 2})
    ]
    assert plans == ["inspect", 0, 2]


def test_a_guest_is_told_its_addresses_where_no_dhcp_does() -> None:
    server = instance(1, "hv1")
    assert plan_by_host([server], {}, lambda *_: "")["hv1"].injections[0]["network"] is None
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
        injected_network = plan_by_host([t.cast(Instance, {**server, "nics": list(nics)})], {}, lambda *_: "")[
            "hv1"
        ].injections[0]["network"]
        assert isinstance(injected_network, dict)
        return injected_network["nics"]

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
    guest_request = {"user_data": "eA==", "files": [{"path": "/a", "content": "YQ=="}], "password_hash": "$6$s$h"}
    image = instance(1, "hv1")["image"]
    whole = {"project": {"id": "p", "name": "p"}, "availability_zone": None, "metadata": {}}
    server: t.Any = {**instance(1, "hv1", guest=guest_request, config_drive=True), **whole}
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
    assert [drive["uuid"] for drive in plan.config_drives] == [server["uuid"], both["uuid"]]
    (injection,) = plan.injections
    assert (injection["uuid"], injection["password_hash"]) == (both["uuid"], "$6$s$h")
    assert injection["files"] == guest_request["files"] and plan.secret
    del server["guest"]  # it runs, or goes
    kept = plan_by_host([server], {}, lambda *_: "")["hv1"]
    assert kept.injections == kept.config_drives == [] and not kept.secret


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
    assert plan.bridges == [
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
    (network,) = plan.dhcp_networks
    assert (network["namespace"], network["listen_v6"], network["router_v6"]) == (
        "nova-br10000",
        "fd00:20::a14:1",
        False,
    )
    assert plan.routers == [
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
    assert plan.metadata_networks == [{"bridge": "br10000", "namespace": "nova-br10000", "network": NETWORK["uuid"]}]
    (guest,) = plan.guests
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
    (guest,) = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"].guests
    assert (guest["hindrance"] is None) is reached
    if not reached:
        assert "no rule lets it in (groups of web-1: shop), for its compute host at 10.20.0.1" in guest["hindrance"]


def test_nobody_is_called_unreachable_where_the_host_has_no_address_of_its_own() -> None:
    server = instance(1, "hv1", security_groups=[])
    server["nics"][0]["dhcp_server"] = None
    (guest,) = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"].guests
    assert guest["hindrance"] is None


def test_a_host_routes_only_where_there_is_something_to_route() -> None:
    server = instance(1, "hv1")
    assert plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"].routers == []
    server["nics"][0]["floating_ips"] = [{"address": "203.0.113.9", "interface": "eth0"}]
    (router,) = plan_by_host([server], {"hv1": {"domain_type": "qemu"}}, render)["hv1"].routers
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
    small, large = plan_by_host(members, {"hv1": {"domain_type": "qemu"}}, render)["hv1"].disks
    assert small | {"backend": "qcow2", "preallocation": "none", "ephemeral_gb": 0, "swap_mb": 0} == small
    assert (
        large | {"virtual_size_gb": 4, "backend": "raw", "preallocation": "space", "ephemeral_gb": 10, "swap_mb": 512}
        == large
    )


def test_an_image_may_be_as_large_as_the_largest_flavor() -> None:
    def limit(*sizes: int) -> t.Any:
        flavors = [{**instance(1, "hv1")["flavor"], "root_gb": size} for size in sizes]
        members = [instance(number, "hv1", flavor=flavor) for number, flavor in enumerate(flavors)]
        return plan_by_host(members, {"hv1": {"domain_type": "qemu"}}, render)["hv1"].images[0]["max_virtual_size"]

    assert [limit(1), limit(1, 3, 2), limit(1, 0, 2), limit(0)] == [1 << 30, 3 << 30, 0, 0]
