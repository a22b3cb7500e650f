# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look at a host: its tables, or what the last run kept, where nobody has written to these since; and the addresses
that its DHCP servers answer from."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import ipaddress
import json
import re
import typing as t

from .._errors import NovaliteError
from .._host.command import CommandError, run
from .._json import JsonMapping, JsonObject
from . import cache, damage, fingerprint, ports, ruleset
from .arguments import Request
from .fingerprint import Fingerprint
from .policy import Instance
from .present import Present, of_ruleset
from .rules import FAMILIES
from .ruleset import Ruleset
from .tables import Second, Tables

_VOLATILE = re.compile(r"^(?:#.*\n|(:[A-Z]+ [A-Z]+) \[\d+:\d+\])", re.MULTILINE)  # time stamps, counters


@dataclasses.dataclass
class Known:
    """The state of the host. `facts`: what a run that reads the tables sees besides, kept for those that do not."""

    presents: dict[str, Present]
    facts: JsonObject
    trusted: bool  # `presents` are what an earlier run kept
    fingerprint: Fingerprint
    kept: bool = False  # and are kept under this fingerprint
    # What the last run left, of which somebody else has changed something since.
    intended: dict[str, Present] = dataclasses.field(default_factory=dict)
    intended_ports: ports.Present | None = None
    ports: ports.Present = dataclasses.field(default_factory=ports.Present)


@dataclasses.dataclass(frozen=True)
class Look:
    """A look at what `request` is about."""

    tables: Tables
    second: Second
    request: Request
    check_mode: bool
    directory: str

    def known(self, thorough: bool, keep: bool = True) -> Known:
        kept = cache.load(self.directory) if keep else None
        if kept and kept.facts.get("backend") != self.tables.backend:
            kept = None  # what an earlier run wrote, it wrote elsewhere
        now = fingerprint.take()
        # Where only members are told, no rule is at stake.
        rules = bool(self.request.instances) or any(group.rules is not None for group in self.request.groups)
        trusting = None if self.check_mode else kept
        if trusting and fingerprint.trusted(trusting.fingerprint, self.tables.backend, now, thorough, rules):
            return Known(trusting.families, trusting.facts, True, now, True, ports=self._kept_ports(trusting.facts))
        texts: dict[str, str] = {}
        for family in FAMILIES:
            try:
                texts[family] = self.tables.text(family)
            except CommandError:
                if self._needed(family):
                    raise
                texts[family] = ""  # a host without ip6tables, and nothing of ours in it
        digest = _digest(texts)
        if trusting and trusting.facts.get("digest") == digest:
            self._look_at_the_other()
            return self._compared(
                Known(trusting.families, trusting.facts, True, now, False, ports=self._read_ports()), kept
            )
        rulesets = {family: ruleset.parse(text) for family, text in texts.items()}
        self._look_at_the_other()
        presents = {family: of_ruleset(rules) for family, rules in rulesets.items()}
        facts = {"backend": self.tables.backend, "digest": digest, "foreign": sorted(_foreign_users(rulesets))}
        return self._compared(Known(presents, facts, False, now, False, ports=self._read_ports()), kept)

    def _compared(self, known: Known, kept: cache.Kept | None) -> Known:
        """Put into `known` what the last run left, where that is not there. A request for everything needs no notes."""
        if (
            kept is None
            or kept.fingerprint["namespace"] != known.fingerprint["namespace"]
            or self.request.is_everything
        ):
            return known
        for family, present in known.presents.items() if not known.trusted else ():
            if damage.names(kept.families[family], present, family):
                known.intended[family] = dataclasses.replace(kept.families[family], dropping=present.dropping)
        ports_then = self._kept_ports(kept.facts)
        if any(ports.difference(known.ports, ports_then.chains)):
            known.intended_ports = ports_then
        return known

    def _kept_ports(self, facts: JsonMapping) -> ports.Present:
        return ports.Present(facts["ports"], [f"-j {ports.ROOT}"] if facts["ports"] else [])

    def _read_ports(self) -> ports.Present:
        try:
            return ports.read()
        except CommandError:
            if any(instance.ports for instance in self.request.instances):
                raise
            return ports.Present()  # a host without ebtables, and nothing of ours in it

    def _needed(self, family: str) -> bool:
        return self.request.state == "present" and any(instance.is_in(family) for instance in self.request.instances)

    def _look_at_the_other(self) -> None:
        """Refuse a request that does not give all instances of the host while the other backend holds chains: whatever
        was left there alone would be protected no more."""
        if not self.second.look() or self.request.is_everything:
            return
        backend, other = self.tables.backend, self.second.backend
        raise NovaliteError(
            f"novalite's chains are in iptables-{other} too, and packets traverse both: give all instances of this "
            f"host with exclusive: true and backend: {backend}, as playbooks/firewall.yml does, or switch the host's "
            f"iptables alternative to {other}"
        )


def _digest(texts: t.Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for text in texts.values():
        digest.update(_VOLATILE.sub(r"\1", text).encode())
    return digest.hexdigest()


def _foreign_users(rulesets: t.Mapping[str, Ruleset]) -> set[str]:
    """Novalite's chains that a rule of somebody else's jumps to."""
    users: set[str] = set()
    for current in rulesets.values():
        for table, name, rules in current.foreign():
            for rule in rules:
                if "nova-" in rule and not ruleset.is_hook(table, name, rule):
                    users.add(str(ruleset.target(rule)))
    return users


def with_sources(instances: t.Iterable[Instance]) -> list[Instance]:
    """The instances, whose DHCP servers on this host (IPv4) are joined by the addresses that those answer from.

    dnsmasq leaves that to the kernel, which takes the device's first address: on a bridge with an operator's address
    that one, and not the server's.
    """
    known = list(instances)
    servers = {server for instance in known for server in instance.dhcp_servers if ":" not in server}
    if not servers:
        return known
    sources: dict[str, list[str]] = {}
    with contextlib.suppress(CommandError, ValueError, KeyError):
        for row in json.loads(run(["ip", "-4", "-j", "address", "show"]).stdout or "[]"):
            sources |= _of_device(
                [f"{address['local']}/{address['prefixlen']}" for address in row.get("addr_info", ())], servers
            )
    return [
        dataclasses.replace(
            instance,
            dhcp_servers=tuple(
                dict.fromkeys(text for server in instance.dhcp_servers for text in (server, *sources.get(server, ())))
            ),
        )
        for instance in known
    ]


def _of_device(addresses: t.Sequence[str], servers: t.Collection[str]) -> dict[str, list[str]]:
    """Return, by server, those of a device's addresses (in the kernel's order) that packets leave with: to everybody
    the first of all, to machines in the server's network the first address in that network."""
    interfaces = [ipaddress.IPv4Interface(text) for text in addresses]
    sources = {}
    for interface in interfaces:
        if str(interface.ip) in servers:
            first = next(candidate for candidate in interfaces if interface.ip in candidate.network)
            ahead = dict.fromkeys((interfaces[0], first))
            sources[str(interface.ip)] = [str(candidate.ip) for candidate in ahead if candidate != interface]
    return sources
