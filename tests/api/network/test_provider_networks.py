# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks as an administrator asks for them: with a carrier, for all projects."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.api.doors import Doors

Body = dict[str, t.Any]
# what Horizon's form sends beside the carrier
FORM: Body = {"name": "n", "admin_state_up": True, "shared": False, "router:external": False}


@pytest.fixture(autouse=True)
def interfaces(doors: Doors) -> None:
    extensions = doors.app.extensions
    extensions["settings"] = dataclasses.replace(extensions["settings"], physical_networks="eth2, eth1")


def provider(kind: str | None = None, physical: str | None = None, number: int | str | None = None) -> Body:
    values = {"network_type": kind, "physical_network": physical, "segmentation_id": number}
    return {f"provider:{name}": value for name, value in values.items() if value is not None}


def made(doors: Doors, **values: t.Any) -> Body:
    body = {"network": {**FORM, "tenant_id": doors.project, **values}}
    return t.cast("Body", doors.admin.post("/networks", body, 201)["network"])


def refused(doors: Doors, values: Body, status: int = 400) -> tuple[str, str]:
    error = doors.admin.post("/networks", {"network": {**FORM, **values}}, status)["NeutronError"]
    return error["type"], error["message"]


@pytest.mark.parametrize(
    "asked, row",
    [
        (("vlan", "eth1", 7), {"manager": "vlan", "bridge_interface": "eth1", "vlan": 7, "isolated": False}),
        (("vxlan", None, "77"), {"manager": "vxlan", "bridge_interface": None, "vni": 77, "isolated": True}),
        (("flat", "eth2"), {"manager": "flat_dhcp", "bridge_interface": "eth2", "vlan": None, "isolated": False}),
        (("local",), {"manager": "flat_dhcp", "bridge_interface": None, "vlan": None, "isolated": True}),
    ],
)
def test_the_carrier_is_the_one_that_is_asked_for(doors: Doors, asked: tuple[t.Any, ...], row: Body) -> None:
    network = made(doors, **provider(*asked))
    kind, physical, number = (*asked, None, None)[:3]
    values = [network[f"provider:{name}"] for name in ("network_type", "physical_network", "segmentation_id")]
    assert values == [kind, physical, number and int(number)]
    (kept,) = doors.rows(tables.network)
    assert {name: kept[name] for name in row} == row and kept["owner"] == doors.project
    seen = doors.member.get(f"/networks/{network['id']}")["network"]
    assert not [name for name in seen if name.startswith("provider:")]
    (listed_network,) = doors.admin.get(f"/networks?provider:network_type={kind}")["networks"]
    assert listed_network["id"] == network["id"]
    assert doors.admin.get(f"/networks?provider:network_type={kind}x")["networks"] == []


def test_a_number_or_an_interface_that_is_left_open_is_a_free_one(doors: Doors) -> None:
    assert made(doors, **provider("vlan"))["provider:physical_network"] == "eth1"
    first, second = (made(doors, **provider("vlan", "eth2"))["provider:segmentation_id"] for _network in range(2))
    assert first != second


@pytest.mark.parametrize(
    "asked, words",
    [
        ((None, "eth1"), "network_type required"),
        (("geneve",), "network_type value 'geneve' not supported"),
        (("vlan", "eth9", 5), "physical_network 'eth9' unknown for VLAN provider network"),
        (("vlan", None, 5), "segmentation_id requires physical_network for VLAN provider network"),
        (("vlan", "eth1", 4095), "segmentation_id out of range (1 through 4094)"),
        (("vlan", "eth1", 0), "segmentation_id out of range (1 through 4094)"),
        (("vxlan", "eth1", 5), "physical_network prohibited for vxlan provider network"),
        (("flat",), "physical_network required for flat provider network"),
        (("flat", "eth1", 5), "segmentation_id prohibited for flat provider network"),
        (("local", "eth1"), "physical_network prohibited for local provider network"),
    ],
)
def test_what_cannot_be_is_refused_in_neutrons_words(doors: Doors, asked: tuple[t.Any, ...], words: str) -> None:
    kind, message = refused(doors, provider(*asked))
    assert kind == "InvalidInput" and words in message
    assert doors.rows(tables.network) == []


def test_a_carrier_has_one_network(doors: Doors) -> None:
    for carrier, kind in (
        (("vlan", "eth1", 7), "VlanIdInUse"),
        (("vxlan", None, 77), "TunnelIdInUse"),
        (("flat", "eth1"), "FlatNetworkInUse"),
    ):
        made(doors, **provider(*carrier))
        assert refused(doors, provider(*carrier), 409)[0] == kind
    assert refused(doors, provider("vlan", "eth2", 7), 409)[0] == "VlanIdInUse"  # here a VLAN has one network
    made(doors, **provider("local"))
    made(doors, **provider("local"))


def test_they_are_an_administrators_to_choose(doors: Doors) -> None:
    for values in (provider("local"), {"shared": True}, {"router:external": True}, {"is_default": True}):
        error = doors.member.post("/networks", {"network": {"name": "n", **values}}, 403)["NeutronError"]
        assert (
            error["type"] == "PolicyNotAuthorized" and f"rule:create_network:{next(iter(values))} " in error["message"]
        )
    network = doors.member.post("/networks", {"network": FORM}, 201)["network"]
    doors.member.put(f"/networks/{network['id']}", {"network": {"name": "m", "shared": False}})
    doors.member.put(f"/networks/{network['id']}", {"network": {"shared": True}}, 403)


def test_a_shared_network_is_all_projects_and_an_administrators_to_change(doors: Doors) -> None:
    network = made(doors, shared=True, **provider("vlan", "eth1", 7))
    assert network["shared"]
    subnet = {"network_id": network["id"], "ip_version": 4, "cidr": "10.50.0.0/24"}
    doors.member.post("/subnets", {"subnet": subnet}, 403)
    doors.admin.post("/subnets", {"subnet": subnet}, 201)
    assert doors.stranger.get(f"/networks/{network['id']}")["network"]["shared"]
    doors.stranger.post("/ports", {"port": {"network_id": network["id"]}}, 201)
    path = f"/networks/{network['id']}"
    doors.member.put(path, {"network": {"name": "mine"}}, 403)
    doors.member.delete(path, 403)
    update = {"name": "ours", "admin_state_up": True, "shared": True, "router:external": False}
    assert doors.admin.put(path, {"network": update})["network"]["name"] == "ours"
    used = doors.admin.put(path, {"network": {"shared": False}}, 409)["NeutronError"]["type"]
    assert used == "InvalidSharedSetting"
    message = doors.admin.put(path, {"network": provider("vlan", "eth1", 8)}, 400)["NeutronError"]["message"]
    assert "Plugin does not support updating provider attributes" in message


def test_a_subnet_is_refused_where_hosts_live(doors: Doors) -> None:
    """An administrator hears where; the project that has the network hears only that it cannot have the range."""
    lan = [{"kind": "gateway", "cidr": "192.0.2.1", "device": "eth0"}]
    doors.cloud.host("hv1", facts={"places": [*lan, {"kind": "address", "cidr": "fd00:20::11/64", "device": "eth0"}]})
    network = made(doors, **provider("flat", "eth1"))
    for version, cidr, place in ((4, "192.0.2.0/24", "192.0.2.1 (eth0)"), (6, "fd00:20::/64", "fd00:20::11 (eth0)")):
        subnet = {"subnet": {"network_id": network["id"], "ip_version": version, "cidr": cidr}}
        heard = doors.admin.post("/subnets", subnet, 409)["NeutronError"]["message"]
        assert f"{cidr} is not free: compute host 'hv1' lives there, by its " in heard and place in heard
        refusal = doors.member.post("/subnets", subnet, 409)["NeutronError"]["message"]
        assert f"{cidr} is not free" in refusal and "hv1" not in refusal and "eth0" not in refusal
    isolated = doors.member.post("/networks", {"network": FORM}, 201)["network"]
    doors.member.post(
        "/subnets", {"subnet": {"network_id": isolated["id"], "ip_version": 4, "cidr": "192.0.2.0/24"}}, 201
    )


def test_an_external_network_is_a_floating_pool(doors: Doors) -> None:
    network = made(doors, **{"router:external": True}, **provider("flat", "eth1"))
    (pool,) = doors.rows(tables.floating_pool)
    assert (pool["name"], pool["interface"], network["router:external"]) == ("n", "eth1", True)
    kind, message = refused(doors, {"router:external": True})  # there are two interfaces
    assert kind == "InvalidInput" and "NOVALITE_PHYSICAL_NETWORKS names these: eth1, eth2" in message
    assert doors.admin.get("/extensions/provider")["extension"]["alias"] == "provider"
