# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way to a guest over ssh: through its compute host, as an ssh_config that every ssh tool understands. It includes
a file of its own for each guest, so that a launch writes one, whatever the size of the cloud.

A guest on an isolated network is reached from the network's namespace alone, which sshd's own forwarding does not
enter. There a few lines of Python do, on the host, where Ansible needs it anyway; whoever logs in there and is not root
has one program to enter it by, which sudo may run without a password.
"""

from __future__ import annotations

import collections
import json
import os
import re
import shlex
import typing as t

from .. import _keepalive
from .._errors import NovaliteError
from .._guest import image_properties
from .._model.instance import Instance
from .._network.namespaces import namespace_of
from .._relay import TO_ADDRESS
from .way_in import WayIn, own_path, quoted

REACH = "/usr/local/sbin/novalite-reach"  # role compute_node installs it, and the rule by which sudo runs it
_PROGRAMS = os.path.dirname(_keepalive.__file__)
_ALIAS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")  # any other character means something in a Host pattern


def directory_of(path: str) -> str:
    """The directory of the guests' own files, each named by its UUID, beside the ssh_config at `path`."""
    return f"{path}.d"


def render(ways: t.Mapping[str, WayIn], identity_file: str | None, path: str) -> str:
    """The ssh_config to be at `path`: a block for each compute host, by the way in which Ansible reaches it (`ways`),
    and where the guests' files are. Whenever it differs, the guests' may, too."""
    lines = ["# Written by novalite. Guests offer " + (json.dumps(identity_file) if identity_file else "what ssh has")]
    for host, way in sorted(ways.items()):
        lines += ["", local_line(host)] if way.local else ["", *_block(host, way.options)]
    lines += ["", "Host *", f"    Include {_glob(os.path.join(directory_of(path), ''))}"]
    return "\n".join(lines) + "\n"


def render_guests(
    instances: t.Iterable[Instance], ways: t.Mapping[str, WayIn], known_hosts: str, identity_file: str | None, path: str
) -> dict[str, str]:
    """UUID -> the file of each active instance with an address: the way to it. A guest is known by its UUID: the next
    one at its address has another host key. `instances` hold all that have a name or an address in common."""
    reachable = [
        (instance, host, ip)
        for instance in instances
        if (host := instance["host"]) and instance["nics"] and (ip := instance["nics"][0]["ip"])
    ]
    aliases = _aliases([instance for instance, _host, _ip in reachable], ways)
    addresses = collections.Counter(ip for _instance, _host, ip in reachable)
    files = {}
    for instance, host, ip in reachable:
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
        left = [] if host in ways else ["", *_block(host, ())]  # the inventory has it no longer
        files[instance["uuid"]] = "\n".join([*_block(" ".join(names), options), *left]) + "\n"
    return files


def _block(names: str, options: t.Sequence[tuple[str, str]]) -> list[str]:
    return [f"Host {names}", *(f"    {name} {value}" for name, value in _kept_alive(options))]


def _glob(directory: str) -> str:
    """The pattern of ssh's Include that means each file in `directory`. Some versions fill in tokens, which begin with
    a percent sign, and others do not: to all of them a question mark is any character."""
    literal = re.sub(r"[][*?\\]", r"\\\g<0>", directory).replace("$", "[$]").replace("%", "?")
    return quoted(f"{literal}*")


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


def relay_command(
    host: str, console_type: str, uuid: str, path: str, local: bool = False, uri: str = "qemu:///system"
) -> list[str]:
    """The command whose standard input and output are a guest's console, by the ssh_config at `path`."""
    return _on_host("_console_relay.py", [console_type, uuid, uri], host, path, local)


def addresses_command(
    host: str, uuid: str, path: str, local: bool = False, timeout: int = 2, uri: str = "qemu:///system"
) -> list[str]:
    """The command that prints the interfaces that a guest's agent tells of within `timeout` seconds, by the ssh_config
    at `path`: JSON, as guest_addresses.by_mac() takes it."""
    return _on_host("_agent_addresses.py", [uuid, uri, str(timeout)], host, path, local)


def _on_host(program: str, arguments: t.Sequence[str], host: str, path: str, local: bool) -> list[str]:
    """The command that runs one of our programs on a host. It asks nobody anything: where the login is neither root nor
    among libvirt's users, sudo must need no password."""
    with open(os.path.join(_PROGRAMS, program), encoding="utf-8") as handle:
        words = shlex.join(["-c", handle.read(), *arguments])
    # libvirt's binding is that of the distribution's Python
    script = (
        'p=/usr/bin/python3; [ -x $p ] || p=python3; s="sudo -n"; '
        f'{{ [ "$(id -u)" != 0 ] && $s true 2>/dev/null; }} || s=; exec $s $p {words}'
    )
    if local:
        return ["sh", "-c", script]
    return ["ssh", "-T", "-F", path, "-o", "BatchMode=yes", "-e", "none", "--", host, script]


def _kept_alive(options: t.Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """`options`, and those of keep-alive that the operator has not set."""
    names = {name.lower() for name, _value in options}
    more = (_keepalive.CONNECT_TIMEOUT, *_keepalive.OPTIONS)
    return [*options, *(option for option in more if option[0].lower() not in names)]
