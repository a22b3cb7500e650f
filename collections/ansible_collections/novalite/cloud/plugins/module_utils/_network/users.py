# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users of a host's bridges: guests, and the runs that are building some.

What the last guest of a network leaves on a host (bridge, way out, metadata proxy, switches) goes by a plan that was
right when it was made. Until it is carried out, which may take minutes, another run can have begun to build on that
network. So a run that builds joins the locks of its bridges with its first step there, and keeps them until its process
ends, be it killed. Who takes something away holds them alone, and asks the host then.
"""

from __future__ import annotations

import contextlib
import os
import typing as t
from xml.etree import ElementTree

from .._domain.compare import METADATA_NAMESPACE, attribute
from .._errors import ConflictError, NovaliteError
from .._host.command import run
from .._host.files import STATE_DIR, read_text
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.locks import locked
from . import dhcp_hosts, ownership
from .links import Link, read_links

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

PATIENCE = 5.0  # seconds for the end of a run that builds; after that it has its guests there, or a long way to go
_GUESTS = ("tap", "vnet")  # what novalite, and libvirt by itself, name the devices of guests
_joined: dict[str, contextlib.ExitStack] = {}  # bridge -> its lock, which this process shares until its end


def join(bridges: t.Iterable[str]) -> None:
    """Be a user of these bridges until this process ends."""
    for bridge in sorted(set(bridges) - _joined.keys()):
        with contextlib.ExitStack() as stack:
            stack.enter_context(locked(_lock(bridge), together=True))
            _joined[bridge] = stack.pop_all()


@contextlib.contextmanager
def alone(
    bridges: t.Iterable[str], uri: str = DEFAULT_URI, check_mode: bool = False, state_dir: str = STATE_DIR
) -> t.Iterator[dict[str, list[str]]]:
    """Hold the locks of these bridges, and yield the users of those that have some: nothing of theirs may go."""
    idle = sorted(set(bridges))
    users = _of_guests(idle, uri, state_dir)  # before the locks: nobody waits for a run whose guest is there
    with contextlib.ExitStack() as locks:
        for bridge in [bridge for bridge in idle if bridge not in users] if not check_mode else ():
            if bridge in _joined:
                _joined.pop(bridge).close()
            try:
                locks.enter_context(locked(_lock(bridge), PATIENCE))
            except ConflictError:
                users[bridge] = ["a run that is building on it"]
        yield {**users, **_of_guests([bridge for bridge in idle if bridge not in users], uri, state_dir)}


def _lock(bridge: str) -> str:
    return f"users-{bridge}"


def _of_guests(bridges: t.Collection[str], uri: str, state_dir: str) -> dict[str, list[str]]:
    if not bridges:
        return {}
    links = read_links(run(["ip", "-d", "-j", "addr", "show"]).stdout)
    users = {}
    for bridge in bridges:
        hosts = dhcp_hosts.read_hosts(read_text(os.path.join(state_dir, "networks", bridge, "hosts")) or "")
        users[bridge] = [*_ports(bridge, links), *(f"DHCP entry of {host.mac}" for host in hosts)]
    idle = [bridge for bridge, of_bridge in users.items() if not of_bridge]
    if idle:
        try:
            named = domains(uri)
        except NovaliteError as error:  # nobody knows which guests are off
            named = {bridge: [str(error)] for bridge in idle}
        users.update((bridge, named.get(bridge, [])) for bridge in idle)
    return {bridge: of_bridge for bridge, of_bridge in users.items() if of_bridge}


def _ports(bridge: str, links: t.Mapping[str, Link]) -> list[str]:
    """Devices of guests on a bridge that some ledger made. What else is on others' bridges is none of our business."""
    if bridge not in links or ownership.read(links[bridge].alias) is None:
        return []
    return [
        link.name
        for link in links.values()
        if link.master == bridge and (link.kind == "tun" or link.name.startswith(_GUESTS))
    ]


def domains(uri: str) -> dict[str, list[str]]:
    """Bridge -> the domains with novalite's metadata that name it, whether they run or not. Raises NovaliteError."""
    named: dict[str, list[str]] = {}
    with contextlib.closing(connect(uri)) as connection:
        try:
            guests = connection.listAllDomains()
        except libvirt.libvirtError as error:
            raise NovaliteError(f"this host's domains cannot be listed: {error.get_error_message()}") from None
        for guest in guests:
            with contextlib.suppress(libvirt.libvirtError):  # it has gone just now
                root = ElementTree.fromstring(guest.XMLDesc())
                if root.find(f"metadata/{{{METADATA_NAMESPACE}}}instance") is not None:
                    for bridge in {attribute(nic, "source", "bridge") for nic in root.findall("./devices/interface")}:
                        named.setdefault(str(bridge), []).append(f"domain {guest.name()}")
    return named
