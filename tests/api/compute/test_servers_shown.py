# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server as the Compute API shows and changes it: its body by microversion, its fault, its name."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api.openstack.compute.servers import views as views_servers
from tests.api import seeds

SERVERS = "/compute/v2.1/servers"
ClientAs = t.Callable[..., FlaskClient]

AT_2_1 = {
    "id",
    "name",
    "status",
    "tenant_id",
    "user_id",
    "metadata",
    "hostId",
    "image",
    "flavor",
    "created",
    "updated",
    "addresses",
    "accessIPv4",
    "accessIPv6",
    "links",
    "OS-DCF:diskConfig",
    "progress",
    "OS-EXT-AZ:availability_zone",
    "config_drive",
    "key_name",
    "OS-SRV-USG:launched_at",
    "OS-SRV-USG:terminated_at",
    "OS-EXT-STS:task_state",
    "OS-EXT-STS:vm_state",
    "OS-EXT-STS:power_state",
    "os-extended-volumes:volumes_attached",
}
FOR_ADMINS = {"OS-EXT-SRV-ATTR:host", "OS-EXT-SRV-ATTR:hypervisor_hostname", "OS-EXT-SRV-ATTR:instance_name"}
FOR_ADMINS_2_3 = {
    f"OS-EXT-SRV-ATTR:{name}"
    for name in (
        "reservation_id",
        "launch_index",
        "hostname",
        "kernel_id",
        "ramdisk_id",
        "root_device_name",
        "user_data",
    )
}


def at(version: str) -> dict[str, str]:
    return {"OpenStack-API-Version": f"compute {version}"}


def nic(
    api: seeds.Api, server: str, address: str | None, ipv6: str | None = None, mac: str = "fa:16:3e:00:00:01"
) -> str:
    """An interface of the server in the network `private`; returns its id."""
    ((network,),) = api.rows(sa.select(tables.network.c.id).where(tables.network.c.name == "private"))
    return api.vif(server, network, address, mac=mac, ipv6=ipv6)


def test_a_server_is_shown_whole(api: seeds.Api, client_as: ClientAs) -> None:
    uuid_ = api.instance(
        "demo",
        "web",
        display_name="My web",
        host="hv1",
        key_name="test",
        public_key=seeds.PUBLIC_KEY,
        metadata={"a": "b"},
        launched_at=1_700_000_000,
        created_at=1_600_000_000,
        updated_at=1_700_000_000,
        user_id=api.users["demo"],
    )
    nic(api, uuid_, "10.20.0.7", "fd00::7")
    server = client_as("demo").get(f"{SERVERS}/{uuid_}").get_json()["server"]
    base = "http://localhost/compute"
    assert server == {
        "id": uuid_,
        "name": "My web",
        "status": "ACTIVE",
        "tenant_id": api.projects["demo"],
        "user_id": api.users["demo"],
        "metadata": {"a": "b"},
        "hostId": views_servers.host_id(api.projects["demo"], "hv1"),
        "image": {"id": seeds.IMAGE_ID, "links": [{"rel": "bookmark", "href": f"{base}/images/{seeds.IMAGE_ID}"}]},
        "flavor": {"id": "2", "links": [{"rel": "bookmark", "href": f"{base}/flavors/2"}]},
        "created": "2020-09-13T12:26:40Z",
        "updated": "2023-11-14T22:13:20Z",
        "addresses": {
            "private": [
                {
                    "version": 4,
                    "addr": "10.20.0.7",
                    "OS-EXT-IPS:type": "fixed",
                    "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01",
                },
                {
                    "version": 6,
                    "addr": "fd00::7",
                    "OS-EXT-IPS:type": "fixed",
                    "OS-EXT-IPS-MAC:mac_addr": "fa:16:3e:00:00:01",
                },
            ]
        },
        "accessIPv4": "",
        "accessIPv6": "",
        "links": [
            {"rel": "self", "href": f"{base}/v2.1/servers/{uuid_}"},
            {"rel": "bookmark", "href": f"{base}/servers/{uuid_}"},
        ],
        "OS-DCF:diskConfig": "MANUAL",
        "progress": 0,
        "OS-EXT-AZ:availability_zone": "nova",
        "config_drive": "",
        "key_name": "test",
        "OS-SRV-USG:launched_at": "2023-11-14T22:13:20.000000",
        "OS-SRV-USG:terminated_at": None,
        "OS-EXT-STS:task_state": None,
        "OS-EXT-STS:vm_state": "active",
        "OS-EXT-STS:power_state": 1,
        "os-extended-volumes:volumes_attached": [],
    }


@pytest.mark.parametrize(
    ("version", "fields", "for_admins"),
    [
        ("2.1", set(), FOR_ADMINS),
        ("2.3", set(), FOR_ADMINS | FOR_ADMINS_2_3),
        ("2.9", {"locked"}, FOR_ADMINS | FOR_ADMINS_2_3),
        ("2.16", {"locked"}, FOR_ADMINS | FOR_ADMINS_2_3 | {"host_status"}),
        ("2.19", {"locked", "description"}, FOR_ADMINS | FOR_ADMINS_2_3 | {"host_status"}),
        ("2.26", {"locked", "description", "tags"}, FOR_ADMINS | FOR_ADMINS_2_3 | {"host_status"}),
        (
            "2.96",
            {
                "locked",
                "description",
                "tags",
                "trusted_image_certificates",
                "server_groups",
                "locked_reason",
                "OS-EXT-SRV-ATTR:hostname",
                "pinned_availability_zone",
            },
            FOR_ADMINS | FOR_ADMINS_2_3 | {"host_status"},
        ),
    ],
)
def test_fields_come_with_their_microversion(
    api: seeds.Api, client_as: ClientAs, version: str, fields: set[str], for_admins: set[str]
) -> None:
    uuid_ = api.instance("demo", "web")
    server = client_as("demo").get(f"{SERVERS}/{uuid_}", headers=at(version)).get_json()["server"]
    assert set(server) == AT_2_1 | fields
    server = client_as("admin").get(f"{SERVERS}/{uuid_}", headers=at(version)).get_json()["server"]
    assert set(server) == AT_2_1 | fields | for_admins
    (listed,) = client_as("demo").get(f"{SERVERS}/detail", headers=at(version)).get_json()["servers"]
    assert set(listed) == (AT_2_1 | fields) - {"server_groups"}


def test_administrators_see_user_data_since_2_3(api: seeds.Api, client_as: ClientAs) -> None:
    uuid_ = api.instance("demo", "web", user_data=b"#cloud-config\n")
    key = "OS-EXT-SRV-ATTR:user_data"
    admin, member = client_as("admin"), client_as("demo")
    shown = admin.get(f"{SERVERS}/{uuid_}", headers=at("2.3")).get_json()["server"]
    (listed,) = admin.get(f"{SERVERS}/detail?all_tenants=1", headers=at("2.3")).get_json()["servers"]
    assert shown[key] == listed[key] == "I2Nsb3VkLWNvbmZpZwo="
    for path in (f"{SERVERS}/{uuid_}", f"{SERVERS}/detail?all_tenants=1"):
        assert "I2Nsb3V" not in admin.get(path, headers=at("2.1")).get_data(as_text=True)
    assert "I2Nsb3V" not in member.get(f"{SERVERS}/{uuid_}", headers=at("2.96")).get_data(as_text=True)
    assert "I2Nsb3V" not in member.get(f"{SERVERS}/detail", headers=at("2.96")).get_data(as_text=True)


def test_the_flavor_is_embedded_since_2_47(api: seeds.Api, client_as: ClientAs) -> None:
    uuid_ = api.instance("demo", "web")
    server = client_as("demo").get(f"{SERVERS}/{uuid_}", headers=at("2.47")).get_json()["server"]
    assert server["flavor"] == {
        "vcpus": 1,
        "ram": 512,
        "disk": 1,
        "ephemeral": 0,
        "swap": 0,
        "original_name": "m1.tiny",
        "extra_specs": {},
    }


def test_a_fault_is_told(api: seeds.Api, client_as: ClientAs) -> None:
    fault = {"code": 500, "message": "No valid host was found. ", "created": 1_600_000_000}
    uuid_ = api.instance("demo", "web", vm_state="error", power_state=0, fault=fault)
    server = client_as("demo").get(f"{SERVERS}/{uuid_}").get_json()["server"]
    assert server["status"] == "ERROR" and "progress" not in server
    assert server["fault"] == {"code": 500, "created": "2020-09-13T12:26:40Z", "message": "No valid host was found. "}


def test_a_server_is_renamed_and_described(api: seeds.Api, client_as: ClientAs) -> None:
    uuid_ = api.instance("demo", "web")
    client = client_as("demo")
    asked = {"name": " new ", "description": "d", "hostname": "Mail"}
    answer = client.put(f"{SERVERS}/{uuid_}", json={"server": asked}, headers=at("2.90"))
    assert answer.status_code == 200
    server = answer.get_json()["server"]
    assert (server["name"], server["description"], server["OS-EXT-SRV-ATTR:hostname"]) == ("new", "d", "mail")
    with api.engine.connect() as connection:
        row = connection.execute(sa.select(tables.instance)).one()
    assert (row.name, row.display_name) == ("web", "new")
    for bad in ({"name": ""}, {"name": "\n"}, {"description": "x"}, {"nosuch": 1}, {"name": None}):
        assert client.put(f"{SERVERS}/{uuid_}", json={"server": bad}).status_code == 400
    assert client.put(f"{SERVERS}/{uuid_}", json={}).status_code == 400
    assert client_as("alt").put(f"{SERVERS}/{uuid_}", json={"server": {"name": "x"}}).status_code == 404
    assert client_as("reader").put(f"{SERVERS}/{uuid_}", json={"server": {"name": "x"}}).status_code == 403
