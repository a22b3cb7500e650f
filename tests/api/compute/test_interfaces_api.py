# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports that servers are made with, and interfaces that they get and lose while they are there."""

from __future__ import annotations

import threading
import time
import typing as t

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import interfaces
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import job_outcomes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_interface import server_interface
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_state import server_state
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.fixed_ip import fixed_ip
from ansible_collections.novalite.cloud.plugins.module_utils._plan import host_plan
from tests.api.seeds import IMAGE_ID, Api

Body = dict[str, t.Any]
FACTS = {
    "domain_type": "qemu",
    "arch": "x86_64",
    "machine": "pc",
    "emulator": "/usr/bin/qemu-system-x86_64",
    "disk_cache": "none",
    "address": "192.0.2.1",
}


@pytest.fixture(autouse=True)
def hosts(api: Api) -> None:
    api.write(sa.update(tables.compute_host).values(facts=FACTS))


def ask(client: FlaskClient, method: str, path: str, body: t.Any = None, status: int = 200) -> t.Any:
    answer = client.open(path, method=method, json=body, headers={"OpenStack-API-Version": "compute 2.79"})
    text = answer.get_data(as_text=True)
    assert answer.status_code == status, (path, answer.status, text)
    return answer.get_json() if text and answer.is_json else text


def network(client: FlaskClient, name: str = "storage", cidr: str | None = "10.60.0.0/24") -> str:
    made = ask(client, "POST", "/network/v2.0/networks", {"network": {"name": name}}, 201)["network"]["id"]
    if cidr is not None:
        subnet_body = {"network_id": made, "ip_version": 4, "cidr": cidr}
        ask(client, "POST", "/network/v2.0/subnets", {"subnet": subnet_body}, 201)
    return str(made)


def port(client: FlaskClient, of: str, **values: t.Any) -> Body:
    body = {"port": {"network_id": of, **values}}
    return t.cast("Body", ask(client, "POST", "/network/v2.0/ports", body, 201)["port"])


def server(client: FlaskClient, networks: t.Any, status: int = 202, **values: t.Any) -> t.Any:
    server_body = {"name": "web", "flavorRef": "1", "imageRef": IMAGE_ID, "networks": networks, **values}
    made = ask(client, "POST", "/compute/v2.1/servers", {"server": server_body}, status)
    return made["server"]["id"] if status == 202 else made


def rows(api: Api, table: sa.Table) -> list[Body]:
    with api.engine.connect() as connection:
        return [dict(row) for row in connection.execute(sa.select(table)).mappings()]


def set_active(api: Api, uuid: str, **values: t.Any) -> None:
    state = {"vm_state": "active", "task_state": None, "host": "hv1", "power_state": 1, **values}
    api.write(sa.update(tables.instance).where(tables.instance.c.uuid == uuid).values(**state))


def test_a_hosts_plan_has_every_address_of_a_port(api: Api) -> None:
    client = api.client_as("demo")
    of = network(client)
    two = [{"ip_address": "10.60.0.7"}, {"ip_address": "10.60.0.8"}]
    made_port = port(client, of, fixed_ips=two)
    uuid = server(client, [{"port": made_port["id"]}])
    set_active(api, uuid, vm_state="building", task_state="networking")
    with transaction(api.engine) as connection:
        (addressed,) = fixed_ip(connection, {"instances": instances_by(connection, uuids=[uuid])})["instances"]
    (nic,) = addressed["nics"]
    assert (nic["ip"], nic["more_ips"]) == ("10.60.0.7", ["10.60.0.8"])
    (planned,) = host_plan.firewall_plan([addressed], {"antispoof": "chains"})["instances"]
    (scoped,) = planned["scoped"]
    assert {"10.60.0.7", "10.60.0.8"} <= set(scoped["addresses"])
    (device,) = planned["ports"]
    assert device["addresses"] == ["10.60.0.7", "10.60.0.8"]


def test_a_server_is_made_with_a_port_that_outlives_it(api: Api) -> None:
    client = api.client_as("demo")
    of = network(client)
    group = ask(client, "POST", "/network/v2.0/security-groups", {"security_group": {"name": "db"}}, 201)
    made_port = port(client, of, security_groups=[group["security_group"]["id"]], name="p")
    uuid = server(client, [{"port": made_port["id"]}])
    again = server(client, [{"port": made_port["id"]}], 409)
    assert "still in use" in again["conflictingRequest"]["message"]
    shown = ask(client, "GET", f"/network/v2.0/ports/{made_port['id']}")["port"]
    assert (shown["device_id"], shown["name"], shown["fixed_ips"]) == (uuid, "p", made_port["fixed_ips"])
    groups = ask(client, "GET", f"/compute/v2.1/servers/{uuid}/os-security-groups")["security_groups"]
    assert [group["name"] for group in groups] == ["db"]
    server(client, [{"port": "11111111-2222-3333-4444-555555555555"}], 400)
    server(client, [{"port": made_port["id"], "fixed_ip": "10.60.0.9"}], 400)
    other = port(client, of)
    server(client, [{"port": other["id"]}], 400, min_count=2, max_count=2)
    server(api.client_as("alt"), [{"port": other["id"]}], 400)
    set_active(api, uuid, task_state="deleting")
    with transaction(api.engine) as connection:
        server_state(connection, {"outcomes": [{"uuids": [uuid], "state": "deleted", "host": "hv1"}]})
    shown = ask(client, "GET", f"/network/v2.0/ports/{made_port['id']}")["port"]
    assert (shown["device_id"], shown["fixed_ips"], shown["status"]) == ("", made_port["fixed_ips"], "DOWN")
    ask(client, "DELETE", f"/network/v2.0/ports/{made_port['id']}", status=204)


def test_a_failed_build_keeps_the_ports_address(api: Api) -> None:
    client = api.client_as("demo")
    made_port = port(client, network(client))
    uuid = server(client, [{"port": made_port["id"]}])
    with transaction(api.engine) as connection:
        server_state(connection, {"outcomes": [{"uuids": [uuid], "state": "error", "reason": "no host"}]})
    assert ask(client, "GET", f"/network/v2.0/ports/{made_port['id']}")["port"]["fixed_ips"] == made_port["fixed_ips"]


def test_networks_none_auto_and_without_addresses(api: Api) -> None:
    client = api.client_as("demo")
    alone = server(client, "none")
    assert ask(client, "GET", f"/compute/v2.1/servers/{alone}/os-interface")["interfaceAttachments"] == []
    bare = network(client, "bare", None)
    auto_server = server(client, "auto")  # one that has no addresses is no choice
    assert len(ask(client, "GET", f"/compute/v2.1/servers/{auto_server}/os-interface")["interfaceAttachments"]) == 1
    refused = server(client, [{"uuid": bare}], 400)
    assert "requires a subnet" in refused["badRequest"]["message"]


def test_an_interface_comes(api: Api) -> None:
    client = api.client_as("demo")
    of = network(client)
    uuid = server(client, "none")
    path = f"/compute/v2.1/servers/{uuid}/os-interface"
    interface_body = {"net_id": of, "fixed_ips": [{"ip_address": "10.60.0.77"}]}
    ask(client, "POST", path, {"interfaceAttachment": interface_body}, 409)  # it is being built
    set_active(api, uuid)
    interface = ask(client, "POST", path, {"interfaceAttachment": interface_body})["interfaceAttachment"]
    assert interface["port_state"] == "DOWN" and interface["net_id"] == of
    assert [address["ip_address"] for address in interface["fixed_ips"]] == ["10.60.0.77"]
    ask(client, "POST", path, {"interfaceAttachment": {"net_id": of}}, 409)  # one after the other
    ask(client, "DELETE", f"{path}/{interface['port_id']}", status=409)
    job = next(row for row in rows(api, tables.tables_jobs.job) if row["kind"] == "interface_attach")
    assert job["state"] == "queued"
    with transaction(api.engine) as connection:
        begun = server_interface(connection, {"state": "present", "uuids": [uuid], "state_dir": "/var/lib/novalite"})
    plan = begun["hosts"]["hv1"]
    assert plan["uuids"] == [uuid] and interface["mac_addr"] in plan["domains"][0]["xml"]
    assert [host["ip"] for net in plan["surroundings"]["dhcp_networks"] for host in net["hosts"]] == ["10.60.0.77"]
    assert interface["mac_addr"] not in plan["undo"]["domains"][0]["xml"] and plan["undo"]["last_bridges"]
    outcome = {"host": "hv1", "results": [{"uuid": uuid}], "error": None}
    with transaction(api.engine) as connection:
        done = server_interface(connection, {"state": "present", "plans": begun["hosts"], "outcomes": [outcome]})
    assert done["errors"] == [] and "hv1" in done["firewall"]
    shown = ask(client, "GET", f"{path}/{interface['port_id']}")["interfaceAttachment"]
    assert shown["port_state"] == "ACTIVE"
    actions = ask(client, "GET", f"/compute/v2.1/servers/{uuid}/os-instance-actions")["instanceActions"]
    assert actions[0]["action"] == "attach_interface" and actions[0]["message"] is None


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(("state", "status"), [("succeeded", 200), ("failed", 409)])
def test_the_answer_waits_until_the_guest_has_the_interface(api: Api, state: str, status: int) -> None:
    """As Nova's: who asks for the next change after it is not refused."""
    client = api.client_as("demo")
    of = network(client)
    uuid = server(client, "none")
    set_active(api, uuid)
    table = tables.tables_jobs.job
    waiting = sa.and_(table.c.kind == "interface_attach", table.c.state == "queued")
    error = None if state == "succeeded" else "hv1 has no such bridge"
    asked = threading.Event()
    asked.set()

    def work() -> None:
        """Stand in for the worker, for as long as something is asked."""
        while asked.is_set():
            time.sleep(0.2)
            with transaction(api.engine) as connection:
                if connection.execute(sa.update(table).where(waiting).values(state=state, message=error)).rowcount:
                    interfaces.finish(connection, interfaces.ATTACHING, {uuid: error}, "hv1")

    worker = threading.Thread(target=work)
    worker.start()
    path = f"/compute/v2.1/servers/{uuid}/os-interface"
    try:
        for _time in range(2):
            answer = ask(client, "POST", path, {"interfaceAttachment": {"net_id": of}}, status)
            assert ("interfaceAttachment" in answer) is (state == "succeeded")
            assert error is None or error in answer["conflictingRequest"]["message"]
    finally:
        asked.clear()
        worker.join()


def test_an_interface_that_does_not_come_gives_everything_back(api: Api) -> None:
    client = api.client_as("demo")
    of = network(client)
    uuid, path = server(client, "none"), ""
    path = f"/compute/v2.1/servers/{uuid}/os-interface"
    set_active(api, uuid)
    made_port = port(client, of)
    ask(client, "POST", path, {"interfaceAttachment": {"port_id": made_port["id"]}})
    with transaction(api.engine) as connection:
        job_outcomes.settle(connection, "interface_attach", [uuid], "its worker died")
    assert ask(client, "GET", path)["interfaceAttachments"] == []
    free = ask(client, "GET", f"/network/v2.0/ports/{made_port['id']}")["port"]
    assert (free["device_id"], free["fixed_ips"]) == ("", made_port["fixed_ips"])  # it was made by itself
    made = ask(client, "POST", path, {"interfaceAttachment": {"net_id": of}})["interfaceAttachment"]
    with transaction(api.engine) as connection:
        job_outcomes.settle(connection, "interface_attach", [uuid], "its worker died")
    ask(client, "GET", f"/network/v2.0/ports/{made['port_id']}", status=404)
    owners = [row["owner"] for row in rows(api, tables.fixed_ip) if row["owner"]]
    assert owners == [f"vif:{made_port['id']}"]  # the host's own address went, too
    actions = ask(client, "GET", f"/compute/v2.1/servers/{uuid}/os-instance-actions")["instanceActions"]
    assert [row["message"] for row in actions if row["action"] == "attach_interface"] == ["Error", "Error"]


def test_an_interface_goes(api: Api) -> None:
    client = api.client_as("demo")
    of = network(client)
    uuid = server(client, [{"uuid": of}, {"uuid": of}])  # twice on one network, as in Nova
    path = f"/compute/v2.1/servers/{uuid}/os-interface"
    set_active(api, uuid)
    first, second = ask(client, "GET", path)["interfaceAttachments"]
    ask(api.client_as("alt"), "DELETE", f"{path}/{first['port_id']}", status=404)
    ask(client, "DELETE", f"{path}/11111111-2222-3333-4444-555555555555", status=404)
    ask(client, "DELETE", f"{path}/{first['port_id']}", status=202)
    with transaction(api.engine) as connection:
        begun = server_interface(connection, {"state": "absent", "uuids": [uuid], "state_dir": "/var/lib/novalite"})
    plan = begun["hosts"]["hv1"]
    xml = plan["domains"][0]["xml"]
    assert first["mac_addr"] not in xml and second["mac_addr"] in xml
    assert plan["last_bridges"] == []  # the other one is on it
    assert [host["mac"] for net in plan["dhcp_networks"] for host in net["hosts"]] == [first["mac_addr"]]
    with transaction(api.engine) as connection:
        outcomes: list[Body] = []
        done = server_interface(connection, {"state": "absent", "plans": begun["hosts"], "outcomes": outcomes})
    assert [error["message"] for error in done["errors"]] == ["'web': host hv1 did not answer"]
    assert len(ask(client, "GET", path)["interfaceAttachments"]) == 2  # it stays
    ask(client, "DELETE", f"{path}/{first['port_id']}", status=202)
    with transaction(api.engine) as connection:
        interfaces.finish(connection, interfaces.DETACHING, {uuid: None}, "hv1")
    (left,) = ask(client, "GET", path)["interfaceAttachments"]
    assert left["port_id"] == second["port_id"]


def test_by_name_what_is_there_is_left_alone(api: Api) -> None:
    client = api.client_as("demo")
    network(client)
    uuid = server(client, "none")
    set_active(api, uuid)
    interface = {"server": "web", "network": "storage", "port": None, "fixed_ip": None}
    params = {"state": "present", "project": "demo", "interfaces": [interface], "state_dir": "/var/lib/novalite"}
    with transaction(api.engine) as connection:
        begun = server_interface(connection, params)
    assert begun["changed"] and begun["diff"]["before"] == {"web": []} and len(begun["diff"]["after"]["web"]) == 1
    with transaction(api.engine) as connection:
        interfaces.finish(connection, interfaces.ATTACHING, {uuid: None})
        assert not server_interface(connection, params)["changed"]
        gone = server_interface(connection, {**params, "state": "absent"})
    assert gone["changed"] and gone["diff"]["after"] == {"web": []}
