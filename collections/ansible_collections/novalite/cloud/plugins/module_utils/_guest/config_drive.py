# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of an instance's config drive, in OpenStack's format or NoCloud's. Pure, so that the same instance always
gives the same drive: what changes from call to call, as Nova's random seed does, is left out."""

from __future__ import annotations

import base64
import json

from .._json import Json, JsonObject
from .._model.instance import GuestRecord, Instance
from . import image_properties
from .guest_network import ethernets, nics_of
from .image_properties import CONFIG_2
from .metadata import NAME, Tree, ec2_meta_data, openstack_meta_data
from .network_data import interfaces_of, openstack_network_data

Files = dict[str, bytes]


def config_drive(instance: Instance, guest: GuestRecord) -> JsonObject:
    """`{"uuid", "format", "files": {path on the drive: base64}}` of `instance`, and of what only the `guest` may know:
    `user_data` (base64), `files` ([{"path", "content" (base64)}]), `password_hash`. Raises NovaliteError."""
    drive_format = image_properties.config_drive_format(instance["image"])
    files = (_config_2 if drive_format == CONFIG_2 else _nocloud)(instance, guest)
    return {
        "uuid": instance["uuid"],
        "format": drive_format,
        "files": {path: base64.b64encode(content).decode() for path, content in files.items()},
    }


def _config_2(instance: Instance, guest: GuestRecord) -> Files:
    """Files as Nova writes them (nova/api/metadata/base.py), in `latest` alone, a directory that every reader knows."""
    injected = guest.get("files") or []
    vendor = _cloud_config(_password(instance, guest))
    files = {
        "openstack/latest/meta_data.json": _json(
            openstack_meta_data(instance, files=[file["path"] for file in injected])
        ),
        "openstack/latest/network_data.json": _json(openstack_network_data(instance)),
        "openstack/latest/vendor_data.json": _json({"cloud-init": vendor} if vendor else {}),
        "ec2/latest/meta-data.json": _json(_without_listings(ec2_meta_data(instance))),
    }
    for number, file in enumerate(injected):
        files[f"openstack/content/{number:04d}"] = base64.b64decode(file["content"])
    if encoded := guest.get("user_data"):
        user_data = base64.b64decode(encoded)
        files["openstack/latest/user_data"] = user_data
        files["ec2/latest/user-data"] = user_data
    return files


def _nocloud(instance: Instance, guest: GuestRecord) -> Files:
    """cloud-init's NoCloud; its YAML files are JSON, which is YAML. It asks for user-data, be it empty, and has no
    place for files beside its own: cloud-init is told to write them."""
    meta_data: JsonObject = {"instance-id": instance["uuid"], "local-hostname": instance["hostname"]}
    if instance["key"]:
        meta_data["public-keys"] = [instance["key"]["public_key"]]
    nics = nics_of({"nics": interfaces_of(instance)})
    files = {
        "meta-data": _json(meta_data),
        "user-data": base64.b64decode(guest.get("user_data") or ""),
        # cloud-init takes the key for the interface's name
        "network-config": _json({"version": 2, "ethernets": ethernets(nics, name=lambda nic: nic.name, rename=True)}),
    }
    vendor = _cloud_config({**_password(instance, guest), **_injected(guest)})
    if vendor:
        files["vendor-data"] = vendor.encode()
    return files


def _password(instance: Instance, guest: GuestRecord) -> JsonObject:
    """The administrator's password as cloud-init takes it, hashed: OpenStack's admin_pass would have to be in clear."""
    if not guest.get("password_hash"):
        return {}
    user = image_properties.admin_user(instance["image"])
    return {"chpasswd": {"expire": False, "list": [f"{user}:{guest['password_hash']}"]}}


def _injected(guest: GuestRecord) -> JsonObject:
    """The files that the guest is to have, as cloud-init writes some: with the mode that it gives those of the other
    format, DataSourceConfigDrive.write_injected_files()."""
    listed = [
        {"path": file["path"], "encoding": "b64", "content": file["content"], "permissions": "0660"}
        for file in guest.get("files") or ()
    ]
    return {"write_files": listed} if listed else {}


def _cloud_config(document: JsonObject) -> str | None:
    return f"#cloud-config\n{json.dumps(document)}\n" if document else None


def _without_listings(tree: Tree | list[str] | str) -> Tree | list[str] | str:
    if isinstance(tree, dict):
        return {name: _without_listings(child) for name, child in tree.items() if name != NAME}
    return tree


def _json(document: Json) -> bytes:
    return json.dumps(document, sort_keys=True).encode()
