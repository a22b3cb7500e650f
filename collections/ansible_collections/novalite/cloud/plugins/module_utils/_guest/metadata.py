# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Metadata of a guest, out of an Instance dict: the documents that cloud images read.

The metadata service and the config drive render the same ones. Their shapes are OpenStack's (docs: "Metadata service",
"Config drives") and EC2's version 2009-04-04, as far as Nova answers them. Pure: no clock, no randomness.
"""

from __future__ import annotations

import typing as t

from .._json import JsonObject
from .._model.instance import Instance, Nic

Tree = dict[str, t.Union[str, list[str], "Tree"]]

# Nova answers them all with what the newest has, and so do we: cloud-init takes the newest that it knows.
OPENSTACK_VERSIONS = (
    *("2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15", "2016-06-30", "2016-10-06"),
    *("2017-02-22", "2018-08-27", "2020-10-14"),
)
EC2_VERSIONS = (
    *("1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15"),
    *("2008-02-01", "2008-09-01", "2009-04-04"),
)
DEFAULT_ZONE = "nova"
NAME = "_name"  # in a directory: how its parent lists it, "0=test" for public-keys/0


def openstack_meta_data(
    instance: Instance, *, files: t.Sequence[str] = (), random_seed: str | None = None, admin_pass: str | None = None
) -> JsonObject:
    """`meta_data.json` of `instance`. `files` are the paths of its injected files, in the order of content/0000,
    content/0001 ...; `random_seed` is base64 for the guest's entropy pool, the caller's to draw; `admin_pass` belongs
    on a config drive only, where no network is between."""
    document: JsonObject = {
        "uuid": instance["uuid"],
        "name": instance["name"],
        "hostname": fully_qualified(instance),
        "launch_index": 0,
        "availability_zone": instance["availability_zone"] or DEFAULT_ZONE,
        "project_id": instance["project"]["id"],
        "devices": [],
        "dedicated_cpus": [],
        "meta": {name: str(value) for name, value in instance["metadata"].items()},
    }
    key = instance["key"]
    if key:
        document["public_keys"] = {key["name"]: key["public_key"]}
        document["keys"] = [{"name": key["name"], "type": "ssh", "data": key["public_key"]}]
    if files:
        document["files"] = [{"path": path, "content_path": f"/content/{n:04d}"} for n, path in enumerate(files)]
    if random_seed is not None:
        document["random_seed"] = random_seed
    if admin_pass is not None:
        document["admin_pass"] = admin_pass
    return document


def ec2_meta_data(instance: Instance) -> Tree:
    """The tree below `/latest/meta-data/`: directories are dicts, leaves text or a list of lines. The first interface
    gives the addresses, as in Nova."""
    nic = instance["nics"][0] if instance["nics"] else None
    hostname = fully_qualified(instance)
    tree: Tree = {
        "ami-id": ec2_id("ami", instance["image"]["id"]),
        "ami-launch-index": "0",
        "ami-manifest-path": "(unknown)",
        "block-device-mapping": _block_devices(instance),
        "hostname": hostname,
        "instance-action": "none",
        "instance-id": ec2_id("i", instance["id"]),
        "instance-type": instance["flavor"]["name"],
        "local-hostname": hostname,
        "local-ipv4": nic["ip"] if nic and nic["ip"] else "",
        "placement": {"availability-zone": instance["availability_zone"] or DEFAULT_ZONE},
        "public-hostname": hostname,
        "public-ipv4": next(iter(_public_addresses(nic, of_primary=True)), ""),
        "reservation-id": ec2_id("r", instance["id"]),
        "security-groups": [group["name"] for group in instance["security_groups"]],
    }
    if nic:
        tree["mac"] = nic["mac"]
        tree["network"] = {
            "interfaces": {
                "macs": {interface["mac"]: _ec2_interface(n, interface) for n, interface in enumerate(instance["nics"])}
            }
        }
    if instance["image"]["kernel"]:
        tree["kernel-id"] = ec2_id("aki", instance["image"]["id"])
    if instance["image"]["ramdisk"]:
        tree["ramdisk-id"] = ec2_id("ari", instance["image"]["id"])
    key = instance["key"]
    if key:
        tree["public-keys"] = {"0": {NAME: f"0={key['name']}", "openssh-key": key["public_key"]}}
    return tree


def ec2_listing(node: Tree | list[str] | str) -> str:
    """Answer to a GET of `node`: a leaf's text, a list's lines, a directory's entries ("/" after directories)."""
    if not isinstance(node, dict):
        return node if isinstance(node, str) else "\n".join(node)
    lines = []
    for name in sorted(node):
        child = node[name]
        if name != NAME:
            lines.append(str(child.get(NAME, f"{name}/")) if isinstance(child, dict) else name)
    return "\n".join(lines)


def ec2_id(kind: str, value: int | str) -> str:
    """EC2's form of an id, `i-0000002a`: a number as it is, a UUID by its first eight digits."""
    return f"{kind}-{value:08x}" if isinstance(value, int) else f"{kind}-{value.replace('-', '')[:8]}"


def fully_qualified(instance: Instance) -> str:
    """`web-1.novalocal`: the name that resolves inside the first interface's network."""
    domain = instance["nics"][0]["network"]["domain"] if instance["nics"] else ""
    return f"{instance['hostname']}.{domain}" if domain else str(instance["hostname"])


def _block_devices(instance: Instance) -> Tree:
    sizes = {"ephemeral0": instance["flavor"]["ephemeral_gb"], "swap": instance["flavor"]["swap_mb"]}
    further = zip((name for name, size in sizes.items() if size), ("vdb", "vdc"))
    return {"ami": "vda", "root": "/dev/vda", **dict(further)}


def _ec2_interface(number: int, nic: Nic) -> Tree:
    interface: Tree = {"device-number": str(number), "mac": nic["mac"]}
    if nic["ip"]:
        interface["local-ipv4s"] = [nic["ip"], *nic.get("more_ips", ())]
        interface["subnet-ipv4-cidr-block"] = str(nic["network"]["cidr"])
    if nic["ipv6"]:
        interface["ipv6s"] = [nic["ipv6"]]
    public = _public_addresses(nic)
    if public:
        interface["public-ipv4s"] = public
    return interface


def _public_addresses(nic: Nic | None, of_primary: bool = False) -> list[str]:
    leading = nic.get("floating_ips") or () if nic else ()
    return [floating["address"] for floating in leading if not (of_primary and floating.get("fixed"))]
