# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way to a guest over ssh: through its compute host, as one ssh_config that every ssh tool understands.

A guest on an isolated network is reached from the network's namespace alone, which sshd's own forwarding does not
enter. There a few lines of Python do, on the host, where Ansible needs it anyway; whoever logs in there and is not root
has one program to enter it by, which sudo may run without a password.
"""

from __future__ import annotations

import collections
import shlex
import typing as t

from .._errors import NovaliteError
from .._guest import image_properties
from .._json import JsonMapping
from .._model.instance import Instance
from .._network.namespaces import namespace_of
from .._relay import TO_ADDRESS

JUMP_VARIABLES = (
    "ansible_host",
    "ansible_port",
    "ansible_user",
    "ansible_ssh_private_key_file",
    "ansible_ssh_common_args",
)

REACH = "/usr/local/sbin/novalite-reach"  # role compute_node installs it, and the rule by which sudo runs it


def jump_options(hostvars: JsonMapping) -> dict[str, str]:
    """ssh_config options to reach a compute host, from the variables by which Ansible does: JUMP_VARIABLES; of
    `ansible_ssh_common_args` the `-o` options."""
    options = {"HostName": str(hostvars["ansible_host"])} if hostvars.get("ansible_host") else {}
    for name, variable in (
        ("Port", "ansible_port"),
        ("User", "ansible_user"),
        ("IdentityFile", "ansible_ssh_private_key_file"),
    ):
        if hostvars.get(variable):
            options[name] = str(hostvars[variable])
    words = iter(shlex.split(str(hostvars.get("ansible_ssh_common_args") or "")))
    for word in words:
        if word.startswith("-o"):
            name, _equals, value = (word[2:] or next(words, "")).partition("=")
            # Ansible's own connection sharing belongs to Ansible's runs
            if value and not name.lower().startswith("control"):
                options[name] = value
    return options


def render(
    instances: t.Iterable[Instance],
    hypervisors: t.Mapping[str, JsonMapping],
    known_hosts: str,
    identity_file: str | None,
    path: str,
) -> str:
    """The whole ssh_config, to be at `path`: a block for each compute host in use and one for each active instance with
    an address. A guest is known by its UUID: the next one at its address has another host key."""
    reachable = [
        (instance, host, ip)
        for instance in instances
        if (host := instance["host"]) and instance["nics"] and (ip := instance["nics"][0]["ip"])
    ]
    lines = ["# Written by novalite at every launch and termination."]
    for host in sorted({host for _instance, host, _ip in reachable}):
        lines += ["", f"Host {host}", *_options(jump_options(hypervisors.get(host, {})))]
    names = collections.Counter(instance["name"] for instance, _host, _ip in reachable)
    addresses = collections.Counter(ip for _instance, _host, ip in reachable)
    for instance, host, ip in sorted(reachable, key=lambda guest: (guest[0]["name"], guest[0]["uuid"])):
        try:
            user = image_properties.login_user(instance["image"])
        except NovaliteError:
            continue  # it was registered before such names were refused: the others keep their ways in
        aliases = [instance["uuid"]]
        if addresses[ip] == 1:  # isolated networks may use the same
            aliases.append(ip)
        if names[instance["name"]] == 1 and instance["name"] not in hypervisors:
            aliases.insert(0, instance["name"])
        options = {
            "HostName": ip,
            "User": user,
            **_way(host, namespace_of(instance["nics"][0]["network"]), path),
            "HostKeyAlias": instance["uuid"],
            "UserKnownHostsFile": known_hosts,
            "StrictHostKeyChecking": "accept-new",
            "LogLevel": "ERROR",  # the first login is no warning
        }
        if identity_file:
            options |= {"IdentityFile": identity_file, "IdentitiesOnly": "yes"}
        lines += ["", f"Host {' '.join(aliases)}", *_options(options)]
    return "\n".join(lines) + "\n"


def _way(host: str, namespace: str | None, path: str) -> dict[str, str]:
    if namespace is None:
        return {"ProxyJump": host}
    relay = shlex.join(["ip", "netns", "exec", namespace, "python3", "-c", TO_ADDRESS])
    # The shell of whoever logs in there knows whether it may enter a namespace itself.
    remote = f'[ "$(id -u)" = 0 ] && exec {relay} "$@"; exec sudo -n {shlex.join([REACH, namespace])} "$@"'
    # %h and %p are ssh's to fill in; any other percent sign is itself.
    words = [word.replace("%", "%%") for word in ("ssh", "-F", path, host, remote)]
    return {"ProxyCommand": shlex.join([*words[:-1], f"set -- %h %p; {words[-1]}"])}


def console_command(host: str, domain: str, path: str) -> str:
    """The command that attaches this terminal to a guest's console, by the ssh_config at `path`; ^] leaves it. Where
    the login is not root, sudo may ask for its password, on this terminal."""
    remote = f'[ "$(id -u)" = 0 ] || s=sudo; exec $s virsh -c qemu:///system console --force {domain}'
    return shlex.join(["ssh", "-t", "-F", path, host, remote])


def _options(options: t.Mapping[str, str]) -> list[str]:
    return [
        # a command is taken to the end of its line as it is
        f'    {name} "{value}"' if " " in value and name != "ProxyCommand" else f"    {name} {value}"
        for name, value in options.items()
    ]
