# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports that are deleted while a server has them, and MACs that administrators give."""

from __future__ import annotations

import itertools
import random
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.macs import eui64
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import interfaces
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from tests.api.compute import test_interfaces_api as compute
from tests.api.compute.test_interfaces_api import ask, network, port, rows, server, set_active
from tests.api.seeds import Api

hosts = compute.hosts  # what hosts say of themselves
MAC = "fa:16:3e:00:00:77"


@pytest.mark.parametrize("made", ["by itself", "with the server"])
def test_a_servers_port_that_is_deleted_is_pulled_out_first(api: Api, made: str) -> None:
    client = api.client_as("demo")
    of = network(client)
    own = port(client, of)["id"] if made == "by itself" else None
    uuid = server(client, [{"port": own} if own else {"uuid": of}])
    set_active(api, uuid)
    (number,) = (shown["id"] for shown in ask(client, "GET", f"/network/v2.0/ports?device_id={uuid}")["ports"])
    path = f"/network/v2.0/ports/{number}"
    ask(api.client_as("alt"), "DELETE", path, status=404)
    ask(api.client_as("reader"), "DELETE", path, status=403)
    ask(client, "DELETE", path, status=204)
    (detach,) = [row for row in rows(api, tables.tables_jobs.job) if row["kind"] == "interface_detach"]
    assert detach["state"] == "queued"
    ask(client, "DELETE", path, status=204)  # again: it is under way, and needs no other job
    assert len([row for row in rows(api, tables.tables_jobs.job) if row["kind"] == "interface_detach"]) == 1
    ask(client, "GET", path)  # until the host has pulled it out
    with transaction(api.engine) as connection:
        assert interfaces.finish(connection, interfaces.DETACHING, {uuid: None}, "hv1") == [uuid]
    ask(client, "GET", path, status=404)
    assert ask(client, "GET", f"/compute/v2.1/servers/{uuid}/os-interface")["interfaceAttachments"] == []
    ask(client, "DELETE", f"/network/v2.0/networks/{of}", status=204)


# What holds for a server's interfaces at Compute's door holds at this one
STATES: dict[str, tuple[dict[str, t.Any], int, int]] = {  # columns; status for a member, for an administrator
    "active": ({}, 204, 204),
    "stopped": ({"vm_state": "stopped"}, 204, 204),
    "locked": ({"locked": True}, 409, 204),
    "rebooting": ({"task_state": "rebooting"}, 409, 409),
    "error": ({"vm_state": "error"}, 409, 409),
    "being deleted": ({"task_state": "deleting"}, 204, 204),
}


@pytest.mark.parametrize("who", ["demo", "admin"])
@pytest.mark.parametrize("state", STATES)
def test_both_doors_say_the_same_of_a_server_that_may_not_change(api: Api, state: str, who: str) -> None:
    client = api.client_as(who)
    uuid = server(api.client_as("demo"), [{"uuid": network(api.client_as("demo"))}])
    columns, *statuses = STATES[state]
    set_active(api, uuid, **columns)
    status = statuses[who == "admin"]
    (nic,) = ask(client, "GET", f"/compute/v2.1/servers/{uuid}/os-interface")["interfaceAttachments"]
    ask(client, "DELETE", f"/network/v2.0/ports/{nic['port_id']}", status=status)
    begun = [row["kind"] for row in rows(api, tables.tables_jobs.job) if row["kind"] == "interface_detach"]
    assert begun == (["interface_detach"] if status == 204 and state != "being deleted" else [])
    if status == 409:
        path = f"/compute/v2.1/servers/{uuid}/os-interface/{nic['port_id']}"
        ask(client, "DELETE", path, status=409)


def test_openstacksdk_deletes_a_servers_port(api: Api, sdk: t.Callable[[str], t.Any]) -> None:
    client = api.client_as("demo")
    uuid = server(client, [{"uuid": network(client)}])
    set_active(api, uuid)
    cloud = sdk("demo")
    (nic,) = cloud.network.ports(device_id=uuid)
    cloud.network.delete_port(nic, ignore_missing=False)
    with transaction(api.engine) as connection:
        interfaces.finish(connection, interfaces.DETACHING, {uuid: None}, "hv1")
    assert list(cloud.network.ports(device_id=uuid)) == []


# --- Any server, any port, both doors that take a port away ----------------------------------------------------------

VM_STATES = ("building", "active", "paused", "suspended", "stopped", "rescued", "resized", "error", "shelved_offloaded")
TASK_STATES = (None, "scheduling", "spawning", "rebooting", "resizing", "deleting")
PORTS = ("of a network", "by itself", "at two addresses", "of no security", "the first of two")
DOORS = {
    "network": ("/network/v2.0/ports/{port}", 204),
    "compute": ("/compute/v2.1/servers/{server}/os-interface/{port}", 202),
}


def _with_port(api: Api, client: t.Any, kind: str) -> tuple[str, str]:
    """A server that has a port of this kind; their UUIDs."""
    of = network(client)
    two = [{"ip_address": "10.60.0.7"}, {"ip_address": "10.60.0.8"}]
    values: dict[str, dict[str, t.Any]] = {
        "at two addresses": {"fixed_ips": two},
        "of no security": {"port_security_enabled": False, "security_groups": []},
    }
    made = None if kind in ("of a network", "the first of two") else port(client, of, **values.get(kind, {}))["id"]
    more = [{"uuid": network(client, "second", "10.61.0.0/24")}] if kind == "the first of two" else []
    uuid = server(client, [{"port": made} if made else {"uuid": of}, *more])
    (number,) = (shown["id"] for shown in ask(client, "GET", f"/network/v2.0/ports?network_id={of}")["ports"])
    return uuid, str(number)


def _shown(api: Api, number: str) -> dict[str, t.Any] | None:
    return next((row for row in rows(api, tables.vif) if row["id"] == number), None)


@pytest.mark.parametrize("kind", PORTS)
def test_no_port_goes_before_its_guest_has_lost_it(api: Api, kind: str) -> None:
    """Whatever the server's state is: a port that a host may have is there until it was pulled out, and what is refused
    changes nothing. Both doors allow the same."""
    client = api.client_as("demo")
    uuid, number = _with_port(api, client, kind)
    before = _shown(api, number)
    chance = random.Random(kind)
    for vm_state, task_state, locked in itertools.product(VM_STATES, TASK_STATES, (False, True)):
        host = None if vm_state == "shelved_offloaded" else "hv1"
        set_active(api, uuid, vm_state=vm_state, task_state=task_state, locked=locked, host=host)
        done = {}
        for door in chance.sample(sorted(DOORS), 2):
            path, fine = DOORS[door]
            answer = client.delete(path.format(port=number, server=uuid))
            now, jobs = _shown(api, number), _detaches(api)
            state = (door, vm_state, task_state, locked, answer.status)
            assert now is not None and (now["instance_uuid"], now["position"]) == (uuid, 0), state
            if answer.status_code == fine and task_state != "deleting":
                assert now["status"] == interfaces.DETACHING and jobs == ["queued"], state
            else:
                assert answer.status_code in (fine, 409) and (now, jobs) == (before, []), state
            done[door] = answer.status_code == fine
            api.write(
                sa.update(tables.vif).values(status=None),
                sa.delete(tables.tables_jobs.job_instance),
                sa.delete(tables.tables_jobs.job),
            )
        # the whole server goes, and the port with it: Neutron has nothing against it
        assert task_state == "deleting" or done["network"] == done["compute"], (vm_state, task_state, locked, done)
    set_active(api, uuid, locked=False)
    ask(client, "DELETE", f"/network/v2.0/ports/{number}", status=204)
    with transaction(api.engine) as connection:
        interfaces.finish(connection, interfaces.DETACHING, {uuid: "it does not let go"}, "hv1")
    assert _shown(api, number) == before
    ask(client, "DELETE", f"/network/v2.0/ports/{number}", status=204)
    with transaction(api.engine) as connection:
        interfaces.finish(connection, interfaces.DETACHING, {uuid: None}, "hv1")
    assert _shown(api, number) is None


def _detaches(api: Api) -> list[str]:
    return [row["state"] for row in rows(api, tables.tables_jobs.job) if row["kind"] == "interface_detach"]


# --- MACs ------------------------------------------------------------------------------------------------------------


def test_an_administrator_gives_a_free_port_another_mac(api: Api, sdk: t.Callable[[str], t.Any]) -> None:
    client, admin = api.client_as("demo"), sdk("admin")
    of = network(client)
    six = {"network_id": of, "ip_version": 6, "cidr": "2001:db8:1::/64"}
    ask(client, "POST", "/network/v2.0/subnets", {"subnet": six}, 201)
    api.write(sa.update(tables.network).where(tables.network.c.uuid == of).values(ipv6_mode="eui64"))
    made, other = port(client, of), port(client, of)
    changed = admin.network.update_port(made["id"], mac_address=MAC.upper())
    assert changed.mac_address == MAC
    addresses = {entry["ip_address"] for entry in changed.fixed_ips}
    assert eui64("2001:db8:1::/64", MAC) in addresses
    assert made["fixed_ips"][0]["ip_address"] in addresses  # that of IPv4 stays
    path = f"/network/v2.0/ports/{other['id']}"
    taken = ask(api.client_as("admin"), "PUT", path, {"port": {"mac_address": MAC}}, 409)
    assert taken["NeutronError"]["type"] == "MacAddressInUse"
    ask(api.client_as("admin"), "PUT", path, {"port": {"mac_address": other["mac_address"]}})  # its own


@pytest.mark.parametrize("mac", ["", "fa:16:3e:00:00", "01:00:5e:00:00:01", "00:00:00:00:00:00", "x" * 17, None, 7])
def test_what_is_not_a_mac_is_refused(api: Api, mac: t.Any) -> None:
    client = api.client_as("demo")
    path = f"/network/v2.0/ports/{port(client, network(client))['id']}"
    ask(api.client_as("admin"), "PUT", path, {"port": {"mac_address": mac}}, 400)


def test_a_bound_port_keeps_its_mac(api: Api) -> None:
    client, admin = api.client_as("demo"), api.client_as("admin")
    of = network(client)
    uuid = server(client, [{"uuid": of}])
    (nic,) = ask(client, "GET", f"/compute/v2.1/servers/{uuid}/os-interface")["interfaceAttachments"]
    (subnet,) = ask(client, "GET", f"/network/v2.0/subnets?network_id={of}")["subnets"]
    router = ask(client, "POST", "/network/v2.0/routers", {"router": {}}, 201)["router"]["id"]
    add = f"/network/v2.0/routers/{router}/add_router_interface"
    routers = ask(client, "PUT", add, {"subnet_id": subnet["id"]})["port_id"]
    for number in (nic["port_id"], routers):
        answer = ask(admin, "PUT", f"/network/v2.0/ports/{number}", {"port": {"mac_address": MAC}}, 409)
        assert answer["NeutronError"]["type"] == "PortBound"
    ask(client, "DELETE", f"/network/v2.0/ports/{routers}", status=409)


@pytest.mark.parametrize("attached", [True, False])
def test_null_takes_what_a_port_has_or_is_refused(api: Api, attached: bool) -> None:
    client = api.client_as("demo")
    of = network(client)
    number = port(client, of)["id"]
    if attached:
        set_active(api, server(client, [{"port": number}]))
    path = f"/network/v2.0/ports/{number}"
    before = ask(client, "GET", path)["port"]
    assert before["security_groups"] and before["fixed_ips"]
    ask(client, "PUT", path, {"port": {"fixed_ips": None}}, status=400)
    nothings: tuple[list[str] | None, ...] = (None, [])
    for nothing in nothings:
        shown = ask(client, "PUT", path, {"port": {"security_groups": nothing}})["port"]
        assert (shown["security_groups"], shown["fixed_ips"]) == ([], before["fixed_ips"])
        ask(client, "PUT", path, {"port": {"security_groups": before["security_groups"]}})
    pair = [{"ip_address": "10.60.0.77"}]
    for nothing in nothings:
        ask(client, "PUT", path, {"port": {"allowed_address_pairs": pair}})
        shown = ask(client, "PUT", path, {"port": {"allowed_address_pairs": nothing}})["port"]
        assert shown["allowed_address_pairs"] == []
