# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way to a guest over ssh: through its compute host, as one ssh_config that every ssh tool understands.

A guest on an isolated network is reached from the network's namespace alone, which sshd's own forwarding does not
enter. There a few lines of Python do, on the host, where Ansible needs it anyway; whoever logs in there and is not root
has one program to enter it by, which sudo may run without a password.
"""

from __future__ import annotations

import collections
import re
import shlex
import typing as t

from .. import _keepalive
from .._errors import NovaliteError
from .._guest import image_properties
from .._model.instance import Instance
from .._network.namespaces import namespace_of
from .._relay import TO_ADDRESS
from .way_in import WayIn, own_path

REACH = "/usr/local/sbin/novalite-reach"  # role compute_node installs it, and the rule by which sudo runs it
_ALIAS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # any other character means something in a Host pattern


def render(
    instances: t.Iterable[Instance], ways: t.Mapping[str, WayIn], known_hosts: str, identity_file: str | None, path: str
) -> str:
    """The whole ssh_config, to be at `path`: a block for each compute host in use, by the way in which Ansible reaches
    it (`ways`), and one for each active instance with an address. A guest is known by its UUID: the next one at its
    address has another host key."""
    reachable = [
        (instance, host, ip)
        for instance in instances
        if (host := instance["host"]) and instance["nics"] and (ip := instance["nics"][0]["ip"])
    ]
    lines = ["# Written by novalite at every launch and termination."]
    for host in sorted({host for _instance, host, _ip in reachable}):
        way = ways.get(host, WayIn())
        lines += ["", local_line(host)] if way.local else ["", f"Host {host}", *_options(_kept_alive(way.options))]
    aliases = _aliases([instance for instance, _host, _ip in reachable], ways)
    addresses = collections.Counter(ip for _instance, _host, ip in reachable)
    for instance, host, ip in sorted(reachable, key=lambda guest: (guest[0]["name"], guest[0]["uuid"])):
        try:
            user = image_properties.login_user(instance["image"])
        except NovaliteError:
            continue  # it was registered before such names were refused: the others keep their ways in
        names = [*aliases[instance["uuid"]], instance["uuid"]]
        if addresses[ip] == 1:  # isolated networks may use the same
            names.append(ip)
        namespace = namespace_of(instance["nics"][0]["network"])
        options = [
            ("HostName", ip),
            ("User", user),
            *_way(host, namespace, path, ways.get(host, WayIn()).local),
            ("HostKeyAlias", instance["uuid"]),
            ("UserKnownHostsFile", own_path(known_hosts)),
            ("StrictHostKeyChecking", "accept-new"),
            ("LogLevel", "ERROR"),  # the first login is no warning
        ]
        if identity_file:
            options += [("IdentityFile", own_path(identity_file)), ("IdentitiesOnly", "yes")]
        lines += ["", f"Host {' '.join(names)}", *_options(_kept_alive(options))]
    return "\n".join(lines) + "\n"


def local_line(host: str) -> str:
    """The line of an ssh_config that says that no ssh leads to this compute host: it is the controller itself."""
    return f"# {host} is this machine"


def _aliases(instances: t.Sequence[Instance], hosts: t.Container[str]) -> dict[str, list[str]]:
    """UUID -> the names by which a person logs in: `<name>.<project>`, and the name alone for the first that had it.

    A tenant's server of the same name takes no name from anybody: neither one of before, nor one that names another
    project's server in full.
    """
    names: dict[str, list[str]] = {instance["uuid"]: [] for instance in instances}
    in_order = sorted(instances, key=lambda instance: instance["id"])
    taken: set[str] = set()
    in_full = [(instance, f"{instance['name']}.{instance['project']['name']}") for instance in in_order]
    for instance, name in [*in_full, *((instance, instance["name"]) for instance in in_order)]:
        if _ALIAS.fullmatch(name) and name not in taken and name not in hosts:
            taken.add(name)
            names[instance["uuid"]].insert(0, name)
    return names


def _way(host: str, namespace: str | None, path: str, local: bool) -> list[tuple[str, str]]:
    if namespace is None:
        return [] if local else [("ProxyJump", host)]
    relay = shlex.join(["ip", "netns", "exec", namespace, "python3", "-c", TO_ADDRESS])
    # The shell of whoever logs in there knows whether it may enter a namespace itself.
    remote = f'[ "$(id -u)" = 0 ] && exec {relay} "$@"; exec sudo -n {shlex.join([REACH, namespace])} "$@"'
    # %h and %p are ssh's to fill in; any other percent sign is itself. A command is taken to the end of its line.
    script = "set -- %h %p; " + remote.replace("%", "%%")
    way = ["sh", "-c"] if local else [word.replace("%", "%%") for word in ("ssh", "-F", path, host)]
    return [("ProxyCommand", shlex.join([*way, script]))]


def console_command(host: str, domain: str, path: str, local: bool = False) -> str:
    """The command that attaches this terminal to a guest's console, by the ssh_config at `path`; ^] leaves it. Where
    the login is not root, sudo may ask for its password, on this terminal. An adopted domain may have any name."""
    attach = shlex.join(["virsh", "-c", "qemu:///system", "console", "--force", "--", domain])
    script = f'[ "$(id -u)" = 0 ] || s=sudo; exec $s {attach}'
    return shlex.join(["sh", "-c", script] if local else ["ssh", "-t", "-F", path, host, script])


def _kept_alive(options: t.Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """`options`, and those of keep-alive that the operator has not set."""
    names = {name.lower() for name, _value in options}
    more = (_keepalive.CONNECT_TIMEOUT, *_keepalive.OPTIONS)
    return [*options, *(option for option in more if option[0].lower() not in names)]


def _options(options: t.Iterable[tuple[str, str]]) -> list[str]:
    return [f"    {name} {value}" for name, value in options]
