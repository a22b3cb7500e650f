# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""The way to a guest over ssh: through its compute host, as one ssh_config that every ssh tool understands."""

from __future__ import annotations

import collections
import shlex
import typing as t

JUMP_VARIABLES = (
    "ansible_host",
    "ansible_port",
    "ansible_user",
    "ansible_ssh_private_key_file",
    "ansible_ssh_common_args",
)


def jump_options(hostvars: t.Mapping[str, t.Any]) -> dict[str, str]:
    """ssh_config options to reach a compute host, from the variables by which Ansible reaches it.

    Takes JUMP_VARIABLES; of `ansible_ssh_common_args` the `-o` options.
    """
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
    instances: t.Iterable[t.Mapping[str, t.Any]],
    hypervisors: t.Mapping[str, t.Mapping[str, t.Any]],
    known_hosts: str,
    identity_file: str | None,
) -> str:
    """The whole ssh_config: a block for each compute host in use and one for each active instance with an address.

    A guest is known by its UUID, not by its address: the next guest at that address has another host key.
    """
    reachable = [one for one in instances if one["host"] and one["nics"] and one["nics"][0]["ip"]]
    lines = ["# Written by novalite at every launch and termination."]
    for host in sorted({one["host"] for one in reachable}):
        lines += ["", f"Host {host}", *_options(jump_options(hypervisors.get(host, {})))]
    names = collections.Counter(one["name"] for one in reachable)
    for one in sorted(reachable, key=lambda one: (one["name"], one["uuid"])):
        aliases = [one["uuid"], one["nics"][0]["ip"]]
        if names[one["name"]] == 1 and one["name"] not in hypervisors:
            aliases.insert(0, one["name"])
        options = {
            "HostName": one["nics"][0]["ip"],
            "User": one["image"]["properties"].get("os_admin_user", "root"),
            "ProxyJump": one["host"],
            "HostKeyAlias": one["uuid"],
            "UserKnownHostsFile": known_hosts,
            "StrictHostKeyChecking": "accept-new",
            "LogLevel": "ERROR",  # the first login is no warning
        }
        if identity_file:
            options |= {"IdentityFile": identity_file, "IdentitiesOnly": "yes"}
        lines += ["", f"Host {' '.join(aliases)}", *_options(options)]
    return "\n".join(lines) + "\n"


def _options(options: t.Mapping[str, str]) -> list[str]:
    return [f'    {name} "{value}"' if " " in value else f"    {name} {value}" for name, value in options.items()]
