# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries of a network's guests in the files of its dnsmasq, and whose they are. Pure."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing as t

from .._errors import ConflictError
from . import dhcp_options
from .dhcp_options import Option

MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_WHOSE = " # "  # begins what dnsmasq takes for a comment: the UUID of a host's instance


@dataclasses.dataclass(frozen=True)
class Host:
    """A guest of a network; `uuid` is its instance's, where that is known."""

    mac: str
    ip: str
    hostname: str
    ipv6: str | None = None
    options: tuple[Option, ...] = ()
    uuid: str | None = None


def hosts_text(hosts: t.Iterable[Host], domain: str) -> str:
    """`dhcp-hostsfile`: Nova's `MAC,hostname.domain,IP` lines, with the IPv6 address in brackets behind it, the tag of
    a host that has options of its own behind the MAC, and its instance in a comment."""
    lines = []
    for host in hosts:
        tags = [f"set:{dhcp_options.tag(host.mac)}"] if host.options else []
        ipv6 = [f"[{host.ipv6}]"] if host.ipv6 else []
        whose = f"{_WHOSE}{host.uuid}" if host.uuid else ""
        lines.append(",".join([host.mac, *tags, f"{host.hostname}.{domain}", host.ip, *ipv6]) + whose + "\n")
    return "".join(lines)


def options_text(hosts: t.Iterable[Host]) -> str:
    """`dhcp-optsfile`: the options that single hosts have."""
    return dhcp_options.text({host.mac: host.options for host in hosts})


def read_hosts(text: str, options: str = "") -> list[Host]:
    """Hosts in a text of `hosts_text`, with those `options` in one of `options_text`; a line that these cannot have
    written is left out, and gone with the next write."""
    hosts = []
    by_tag = dhcp_options.read(options)
    for line in text.splitlines():
        entry, _whose, uuid = line.partition(_WHOSE)
        fields = [field for field in entry.split(",") if not field.startswith("set:")]
        if len(fields) in (3, 4) and MAC.fullmatch(fields[0]):
            ipv6 = fields[3].strip("[]") if len(fields) == 4 else None
            own = by_tag.get(dhcp_options.tag(fields[0]), ())
            hosts.append(Host(fields[0], fields[2], fields[1].partition(".")[0], ipv6, own, uuid or None))
    return hosts


def merged(old: t.Sequence[Host], new: t.Sequence[Host]) -> list[Host]:
    """`old` with `new` added; a line for the same MAC or the same address is replaced. Sorted by address.

    Raises ConflictError for a line of another instance, if the new one knows its own: it may have a guest here.
    """
    for host in new:
        for there in old if host.uuid else ():
            if there.uuid == host.uuid or (there.mac == host.mac and there.uuid is None):
                continue
            if there.mac == host.mac or there.ip == host.ip or (there.ipv6 and there.ipv6 == host.ipv6):
                whose = f"instance {there.uuid}" if there.uuid else "another instance"
                raise ConflictError(
                    f"this host has a DHCP entry of {whose} ({there.mac}, {there.ip}, {there.hostname}) in place of "
                    f"one for instance {host.uuid} ({host.mac}, {host.ip}): run playbooks/reconcile.yml, and before "
                    "that ledger_rebuild.yml if this ledger was restored"
                )
    addresses = {host.ip for host in new} | {host.ipv6 for host in new if host.ipv6}
    kept = [host for host in without(old, new) if addresses.isdisjoint((host.ip, host.ipv6))]
    return sorted([*kept, *new], key=lambda host: (int(ipaddress.IPv4Address(host.ip)), host.mac))


def without(old: t.Sequence[Host], leaving: t.Sequence[Host]) -> list[Host]:
    """`old` without the MACs of `leaving`. An address that another MAC has got meanwhile stays, and so does a MAC that
    another instance has."""
    owners = {host.mac: host.uuid for host in leaving}
    return [
        host
        for host in old
        if host.mac not in owners or (owners[host.mac] and host.uuid and owners[host.mac] != host.uuid)
    ]
