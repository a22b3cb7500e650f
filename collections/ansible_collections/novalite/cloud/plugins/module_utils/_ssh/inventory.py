# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances as hosts of an Ansible inventory: names, groups, variables, the way in. Pure: dicts in, dicts out."""

from __future__ import annotations

import collections
import contextlib
import re
import shlex
import typing as t

from .._errors import NovaliteError
from .._guest import image_properties
from .._json import JsonObject
from .._model.instance import Instance
from .._network.namespaces import namespace_of

GROUPED_BY = ("project", "zone", "host", "metadata", "security_group", "network")
# names that mean something else to Ansible, in a pattern or as a host
RESERVED = frozenset({"all", "ungrouped", "localhost"})
AGENT = "community.libvirt.libvirt_qemu"  # the connection plug-in, which runs on the controller
Guest = JsonObject


def guest(instance: Instance, zone: str | None) -> Guest:
    """Guest as the inventory shows it, in JSON's types, for a cache may keep it: no user data, no key, no place where
    an image was fetched from."""
    user, agent = None, False
    with contextlib.suppress(NovaliteError):  # the image was registered before such values were refused
        if "os_admin_user" in (instance["image"].get("properties") or {}):
            user = image_properties.login_user(instance["image"])
        agent = image_properties.guest_agent(instance["image"])
    return {
        "uuid": instance["uuid"],
        "name": instance["name"],
        "hostname": instance["hostname"],
        "domain_name": instance["domain_name"],
        "project": instance["project"]["name"],
        "zone": zone,
        "host": instance["host"],
        "vm_state": instance["vm_state"],
        "task_state": instance["task_state"],
        "flavor": {key: instance["flavor"].get(key) for key in ("name", "vcpus", "memory_mb", "root_gb")},
        "image": {"id": instance["image"].get("id"), "name": instance["image"].get("name")},
        "admin_user": user,
        "agent": agent,
        "key_name": instance["key"]["name"] if instance["key"] else None,
        "metadata": dict(instance["metadata"]),
        "security_groups": [group["name"] for group in instance["security_groups"]],
        "networks": [
            {
                "name": nic["network"]["name"],
                "ip": nic["ip"],
                "ipv6": nic["ipv6"],
                "mac": nic["mac"],
                "floating_ips": [floating_ip["address"] for floating_ip in nic["floating_ips"]],
                "isolated": namespace_of(nic["network"]) is not None,
            }
            for nic in instance["nics"]
        ],
        "created_at": instance["created_at"],
        "launched_at": instance["launched_at"],
    }


def names(guests: t.Sequence[Guest], taken: t.Collection[str], by: str = "name") -> list[str]:
    """The inventory hostname of each guest: its name, or its UUID where the name means something else already: `taken`
    are those of compute hosts, and what other inventories brought. Whoever may choose the names of instances must not
    slip one in under a name that a playbook uses for another host."""
    if by == "uuid":
        return [server["uuid"] for server in guests]
    count = collections.Counter(server["name"] for server in guests)
    barred = RESERVED | set(taken) | {server["uuid"] for server in guests}
    return [
        server["name"] if count[server["name"]] == 1 and server["name"] not in barred else server["uuid"]
        for server in guests
    ]


def groups(server: Guest, by: t.Iterable[str]) -> list[str]:
    """The groups of a guest, safe as names: `project_demo`, `metadata_role_web`, `security_group_default`, ..."""
    group_names = []
    for kind in by:
        values: list[str | None]
        if kind == "metadata":
            values = [f"{key}_{value}" for key, value in sorted(server["metadata"].items())]
        elif kind == "security_group":
            values = server["security_groups"]
        elif kind == "network":
            values = [network["name"] for network in server["networks"]]
        else:
            values = [server[kind]]
        group_names += [safe(f"{kind}_{value}") for value in values if value not in (None, "")]
    return list(dict.fromkeys(group_names))


def safe(name: str) -> str:
    """`name` with an underscore for every character that Ansible takes in no group's name."""
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def variables(server: Guest) -> JsonObject:
    """The guest's own variables, `novalite_<key>`."""
    return {f"novalite_{key}": value for key, value in server.items() if key != "admin_user"}


class Way(t.NamedTuple):
    """Way to reach guests: `ssh_config` is the file that the module of that name keeps, or None.

    `agent` says which of those that have a guest agent are reached by that: "never" one, "unaddressed" ones, "always".
    `agent_uri` is libvirt's URI of a compute host, with `{host}` for its name.
    """

    floating: bool = False
    jump: bool = True
    ssh_config: str | None = None
    user: str = "root"
    identity_file: str | None = None
    agent: str = "never"
    agent_uri: str = "qemu+ssh://root@{host}/system"


def connection(server: Guest, way: Way, shared: t.Collection[str] = ()) -> JsonObject:
    """The variables by which Ansible's ssh connection, or the one to its guest agent, finds the guest. `shared` are the
    fixed IPs of several guests on isolated networks, whom the ssh_config knows by their UUIDs alone."""
    first = server["networks"][0] if server["networks"] else None
    address = first and (first["ip"] or first["ipv6"])
    agent = way.agent == "always" or (way.agent == "unaddressed" and address is None)
    if agent and server["host"] and server.get("agent"):
        uri = way.agent_uri.replace("{host}", server["host"])
        return {"ansible_connection": AGENT, "ansible_libvirt_uri": uri, "ansible_host": server["domain_name"]}
    host_variables: JsonObject = {
        "ansible_user": server["admin_user"] or way.user,
        # A connection that is kept open belongs to this guest, not to the one that gets its address next.
        "ansible_control_path": f"%(directory)s/novalite-{server['uuid'].replace('-', '')[:16]}-%%r-%%p",
    }
    if way.identity_file:
        host_variables["ansible_ssh_private_key_file"] = way.identity_file
    floating = [address for network in server["networks"] for address in network["floating_ips"]]
    if way.floating and floating:
        host_variables["ansible_host"] = floating[0]
        return host_variables
    if first is None or address is None:
        # Nobody's: ssh must not try the name, which may be some other machine's in the DNS.
        host_variables["ansible_host"] = server["uuid"]
        return host_variables
    host_variables["ansible_host"] = address
    if not way.jump:
        return host_variables
    if way.ssh_config:
        host_variables["ansible_ssh_common_args"] = shlex.join(["-F", way.ssh_config])
        if address in shared or first["ip"] is None:
            host_variables["ansible_host"] = server["uuid"]
    elif server["host"]:
        host_variables["ansible_ssh_common_args"] = shlex.join(["-o", f"ProxyJump={server['host']}"])
    return host_variables
