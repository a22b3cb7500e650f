# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files on an instance's config drive, in both formats."""

from __future__ import annotations

import base64
import json
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._guest import image_properties, metadata, network_data
from ansible_collections.novalite.cloud.plugins.module_utils._guest.config_drive import config_drive

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
USER_DATA = b"#cloud-config\n\xff\x00"
GUEST = {
    "user_data": base64.b64encode(USER_DATA).decode(),
    "files": [
        {"path": "/etc/a", "content": base64.b64encode(b"A").decode()},
        {"path": "/etc/b", "content": base64.b64encode(b"B").decode()},
    ],
    "password_hash": "$6$salt$hash",
}
NETWORK = {
    "uuid": "0c0f9e5e-7d0e-4bb5-8f0c-0d6f1e1b2c3d",
    "domain": "novalocal",
    "dhcp": False,
    "cidr": "10.30.0.0/24",
    "gateway": "10.30.0.1",
    "cidr_v6": None,
    "gateway_v6": None,
    "dns": ["10.30.0.53"],
    "mtu": None,
}


def test_further_addresses_are_in_the_metadata() -> None:
    server = instance()
    for nic in server["nics"]:
        nic["more_ips"] = [f"{nic['ip']}9"]
    networks = network_data.openstack_network_data(server)["networks"]
    further = {"type": "ipv4", "netmask": "255.255.255.0", "routes": [], "services": []}
    assert [networks[number]["ip_address"] for number in (0, 1, 3)] == ["10.30.0.9", "10.30.0.99", "10.20.0.99"]
    assert networks[3] == {**networks[3], **further} and networks[2]["type"] == "ipv4_dhcp"
    static, _dhcp = network_data.interfaces_of(server)
    assert static["ipv4"] is not None
    assert static["more_ipv4"] == [{"address": "10.30.0.99", "prefix": static["ipv4"]["prefix"], "gateway": None}]
    tree: t.Any = metadata.ec2_meta_data(server)
    macs = tree["network"]["interfaces"]["macs"]
    assert macs["fa:16:3e:00:00:01"]["local-ipv4s"] == ["10.30.0.9", "10.30.0.99"]


def instance(**properties: str) -> t.Any:
    return {
        "id": 7,
        "uuid": UUID,
        "name": "web",
        "hostname": "web",
        "project": {"id": "p" * 32, "name": "demo"},
        "availability_zone": None,
        "metadata": {"tier": "1"},
        "security_groups": [],
        "flavor": {"name": "m1.tiny", "ephemeral_gb": 0, "swap_mb": 0},
        "image": {"id": UUID, "name": "debian", "kernel": None, "ramdisk": None, "properties": properties},
        "key": {"name": "test", "public_key": "ssh-ed25519 AAAA"},
        "nics": [
            {
                "id": UUID,
                "mac": "fa:16:3e:00:00:01",
                "ip": "10.30.0.9",
                "ipv6": None,
                "dhcp_server": None,
                "floating_ips": [],
                "network": NETWORK,
            },
            {
                "id": UUID,
                "mac": "fa:16:3e:00:00:02",
                "ip": "10.20.0.9",
                "ipv6": None,
                "dhcp_server": "10.20.0.2",
                "floating_ips": [],
                "network": {**NETWORK, "dhcp": True, "cidr": "10.20.0.0/24"},
            },
        ],
    }


def files(guest: t.Any, **properties: str) -> dict[str, bytes]:
    drive = config_drive(instance(**properties), guest)
    assert drive == config_drive(instance(**properties), guest) and drive["uuid"] == UUID
    assert drive["format"] == properties.get("os_config_drive_format", "config-2")
    return {path: base64.b64decode(content) for path, content in drive["files"].items()}


def test_openstacks_format() -> None:
    drive = files(GUEST)
    assert sorted(drive) == [
        "ec2/latest/meta-data.json",
        "ec2/latest/user-data",
        "openstack/content/0000",
        "openstack/content/0001",
        "openstack/latest/meta_data.json",
        "openstack/latest/network_data.json",
        "openstack/latest/user_data",
        "openstack/latest/vendor_data.json",
    ]
    meta_data = json.loads(drive["openstack/latest/meta_data.json"])
    assert (meta_data["uuid"], meta_data["hostname"], meta_data["meta"]) == (UUID, "web.novalocal", {"tier": "1"})
    assert meta_data["public_keys"] == {"test": "ssh-ed25519 AAAA"}
    for listed, content in zip(meta_data["files"], (b"A", b"B")):
        assert drive[f"openstack{listed['content_path']}"] == content
    assert drive["openstack/latest/user_data"] == drive["ec2/latest/user-data"] == USER_DATA
    assert json.loads(drive["openstack/latest/network_data.json"])["links"][0]["ethernet_mac_address"].endswith("01")
    ec2 = json.loads(drive["ec2/latest/meta-data.json"])
    assert ec2["public-keys"] == {"0": {"openssh-key": "ssh-ed25519 AAAA"}} and ec2["local-ipv4"] == "10.30.0.9"


def test_nocloud() -> None:
    drive = files(GUEST, os_config_drive_format="nocloud")
    assert sorted(drive) == ["meta-data", "network-config", "user-data", "vendor-data"]
    assert json.loads(drive["meta-data"]) == {
        "instance-id": UUID,
        "local-hostname": "web",
        "public-keys": ["ssh-ed25519 AAAA"],
    }
    assert drive["user-data"] == USER_DATA
    assert json.loads(drive["network-config"]) == {
        "version": 2,
        "ethernets": {
            "eth0": {
                "match": {"macaddress": "fa:16:3e:00:00:01"},
                "set-name": "eth0",
                "dhcp4": False,
                "addresses": ["10.30.0.9/24"],
                "routes": [{"to": "0.0.0.0/0", "via": "10.30.0.1"}],
                "nameservers": {"addresses": ["10.30.0.53"]},
            },
            "eth1": {"match": {"macaddress": "fa:16:3e:00:00:02"}, "set-name": "eth1", "dhcp4": True},
        },
    }


@pytest.mark.parametrize("user", ["root", "debian"])
def test_cloud_init_is_given_the_passwords_hash(user: str) -> None:
    openstack = json.loads(files(GUEST, os_admin_user=user)["openstack/latest/vendor_data.json"])
    nocloud = files(GUEST, os_admin_user=user, os_config_drive_format="nocloud")["vendor-data"].decode()
    for text in (openstack["cloud-init"], nocloud):
        first, _break, rest = text.partition("\n")
        assert first == "#cloud-config"
        assert json.loads(rest)["chpasswd"] == {"expire": False, "list": [f"{user}:$6$salt$hash"]}


@pytest.mark.parametrize("guest", [GUEST, {"files": GUEST["files"]}])
def test_cloud_init_is_told_of_the_files_for_which_its_own_format_has_no_place(guest: dict[str, t.Any]) -> None:
    first, _break, rest = files(guest, os_config_drive_format="nocloud")["vendor-data"].decode().partition("\n")
    assert first == "#cloud-config"
    written = {file["path"]: base64.b64decode(file["content"]) for file in json.loads(rest)["write_files"]}
    assert written == {"/etc/a": b"A", "/etc/b": b"B"}
    ways = {(file["encoding"], file["permissions"]) for file in json.loads(rest)["write_files"]}
    assert ways == {("b64", "0660")}  # as cloud-init writes those of the other format, and not for all to read


def test_with_nothing_to_tell() -> None:
    drive = files({})
    assert json.loads(drive["openstack/latest/vendor_data.json"]) == {} and "openstack/latest/user_data" not in drive
    assert files({}, os_config_drive_format="nocloud")["user-data"] == b""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("os_partition", "one"),
        ("os_partition", "-3"),
        ("os_partition", "12345"),
        ("os_config_drive", "yes"),
        ("img_config_drive", ""),
        ("os_config_drive_format", "vfat"),
        ("hw_cdrom_bus", "floppy"),
        ("os_admin_user", 'a"b'),
        ("os_admin_user", ""),
        ("os_admin_user", "-l"),
        ("os_admin_user", "x" * 33),
    ],
)
def test_a_property_with_a_value_there_is_none_of(name: str, value: str) -> None:
    with pytest.raises(NovaliteError, match=f"image 'debian': its property {name} is"):
        image_properties.check({"name": "debian", "properties": {name: value}})


def test_properties() -> None:
    for said, expected in ((None, "inspect"), (-1, "inspect"), ("none", None), (-2, None), ("0", 0), (3, 3)):
        image = {"properties": {} if said is None else {"os_partition": said}}
        image_properties.check(image)
        assert image_properties.partition(image) == expected
    assert image_properties.cdrom_bus({"properties": {"hw_cdrom_bus": "SATA"}}, "ide") == "sata"
    for name in ("os_config_drive", "img_config_drive"):
        assert image_properties.config_drive_is_mandatory({"properties": {name: "Mandatory"}})
