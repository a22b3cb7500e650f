# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses that running guests have by their own account, which their agents give: for people to look at, and never
what anything is decided by. A guest can say what it likes, so what is taken of it is bounded."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
import re
import typing as t

from .._host.waiting import in_threads
from . import lifecycle

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

AGENT_TIMEOUT = 2  # seconds that an agent has to answer
MOST_INTERFACES, MOST_ADDRESSES = 32, 32
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def look(connection: libvirt.virConnect, uuids: t.Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """UUID -> MAC -> addresses, IPv4 first, of each guest; none of one that is off, or whose agent does not answer."""
    return dict(zip(uuids, in_threads(lambda uuid: _of_guest(connection, uuid), list(uuids), lifecycle.WORKERS)))


def _of_guest(connection: libvirt.virConnect, uuid: str) -> dict[str, list[str]]:
    domain = lifecycle.lookup(connection, uuid)
    if domain is None or not domain.isActive():
        return {}
    with contextlib.suppress(libvirt.libvirtError):  # it has no agent, or one that keeps silent
        domain.agentSetResponseTimeout(AGENT_TIMEOUT, 0)
        return by_mac(domain.interfaceAddresses(libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT, 0) or {})
    return {}


def by_mac(interfaces: t.Mapping[str, t.Any]) -> dict[str, list[str]]:
    """MAC -> addresses, IPv4 first, of `interfaces`, which libvirt has of a guest's agent by their names."""
    addresses: dict[str, list[str]] = {}
    for interface in itertools.islice(interfaces.values(), MOST_INTERFACES):
        if not isinstance(interface, dict):
            continue
        mac = str(interface.get("hwaddr") or "").lower()
        own = _checked_texts(str(entry["addr"]) for entry in interface.get("addrs") or ())
        if own and _MAC.fullmatch(mac):
            addresses[mac] = own
    return addresses


def _checked_texts(texts: t.Iterable[str]) -> list[str]:
    """List those that are addresses, and of another kind than a loopback's."""
    checked = []
    for text in itertools.islice(texts, MOST_ADDRESSES):
        with contextlib.suppress(ValueError):
            address = ipaddress.ip_address(text.partition("%")[0])  # after that, any text would do
            if not address.is_loopback:
                checked.append(address)
    return [str(address) for address in sorted(checked, key=lambda address: (address.version, int(address)))]
