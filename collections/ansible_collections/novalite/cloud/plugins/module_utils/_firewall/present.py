# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Novalite's part of one family's rules on a host, and what there is to do about it. Pure.

Built from `iptables-save`, or from what an earlier run kept (cache.py); then `ruleset` is None and no leftover, no
damage and no misplaced hook is there, because that run left none and nothing has changed since.
"""

from __future__ import annotations

import collections
import dataclasses
import re
import typing as t

from . import devices, dispatch, passage, policy
from .dispatch import EVERYWHERE, IN, OUT, Entries, Side
from .policy import GROUP_CHAINS, INSTANCE, NEW, OUT_OF, ZONES, Chains
from .ruleset import FILTER, Ruleset

_ZONE = re.compile(r"-i (\S+) -j CT --zone ([0-9]+)")
_SET = re.compile(r"-m set --match-set nova-g-([0-9]+(?:\.[0-9]+)?)-v[46] ")
_GROUP_PREFIXES = tuple(GROUP_CHAINS)

Scopes = dict[str, Entries]


@dataclasses.dataclass
class Held:
    """The state of a family of a host, before or after a change."""

    inbound: Scopes = dataclasses.field(default_factory=dict)
    outbound: Scopes = dataclasses.field(default_factory=dict)
    zones: dict[str, int] = dataclasses.field(default_factory=dict)
    # a group's chain -> by how many instances it is used
    users: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    sets: set[str] = dataclasses.field(default_factory=set)  # groups (zoned()) whose addresses the rules compare with
    devices: devices.Devices = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Present(Held):
    chains: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    dropping: frozenset[str] = frozenset()  # the built-in chains that drop what nobody accepts
    ruleset: Ruleset | None = None

    @property
    def is_empty(self) -> bool:
        """Tell whether no instance is here."""
        return not self.inbound and not devices.of(devices.ASKING, self.devices)


@dataclasses.dataclass
class Changes(Held):
    """The work to do in one family, and what the host has afterwards."""

    differing_chains: Chains = dataclasses.field(default_factory=dict)  # chains that are missing or differ
    # what those of them held that lead to instances: `Present` has these chains only where a host was read
    before: Chains = dataclasses.field(default_factory=dict)
    gone: list[str] = dataclasses.field(default_factory=list)
    roots: set[str] = dataclasses.field(default_factory=set)  # the roots that are hooked in
    is_last: bool = False  # no instance is left
    # (scope, address) that lead elsewhere than before, or nowhere
    moved: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    # addresses that more instances may use than a chain's name has room for: they are closed
    crowded: set[str] = dataclasses.field(default_factory=set)
    # (scope, address) that are an instance's and were nobody's
    arrived: set[tuple[str, str]] = dataclasses.field(default_factory=set)

    def rules_before(self, present: Present, name: str) -> tuple[str, ...] | None:
        """The rules that a chain held; None where it was not there."""
        if present.ruleset is None and name in self.before:
            return self.before[name]
        return present.chains.get(name)


def of_ruleset(ruleset: Ruleset) -> Present:
    chains = ruleset.owned()
    inbound, outbound = (_scopes(side, chains) for side in (IN, OUT))
    users = collections.Counter()  # type: collections.Counter[str]
    by_device = {side.root: devices.read(side, lambda name: chains.get(name, ())) for side in devices.SIDES}
    for who in whos(inbound) | set(by_device[devices.TO.root].values()):
        users.update(groups_of(chains, who))
    zones = {match[1]: int(match[2]) for match in map(_ZONE.fullmatch, chains.get(ZONES, ())) if match}
    sets = sets_in({name: chains.get(name, ()) for name in users})
    dropping = passage.dropping(ruleset.policies, ruleset.tables.get(FILTER, {}))
    return Present(inbound, outbound, zones, users, sets, by_device, chains, dropping, ruleset)


def everything(present: Present, family: str) -> Chains:
    """Return all chains, including those that lead to instances."""
    chains = {name: tuple(rules) for name, rules in present.chains.items()}
    if present.ruleset is None:
        heads = devices.heads(present.devices)
        for side, scopes in ((IN, present.inbound), (OUT, present.outbound)):
            if scopes or heads[side.root]:
                chains.update(dispatch.chains(side, scopes, family, heads[side.root]))
        for by_device in (*devices.SIDES, devices.ASKING):
            chains.update(devices.chains(by_device, devices.of(by_device, present.devices), family))
    return chains


def others(present: Present, instances: t.Iterable[policy.Instance]) -> dict[int, str]:
    """The numbers of those `instances` that have, on this host, the number of another one, and what tells: the UUID in
    its chain, or in one without a mark the devices that lead to it, of which the instance has none."""
    names: dict[int, str] = {}
    devices_of: dict[str, set[str]] | None = None
    for instance in instances:
        uuid = policy.uuid_of(present.chains.get(f"{INSTANCE}{instance.id}", ()))
        own = {*instance.devices, *instance.open_devices}
        if instance.uuid is None or uuid == instance.uuid:
            continue
        if uuid is not None:
            names[instance.id] = f"of instance {uuid}"
        elif own:
            devices_of = _by_number(present) if devices_of is None else devices_of
            there = devices_of.get(str(instance.id), own)
            if own.isdisjoint(there):
                names[instance.id] = f"for the device {min(there)}"
    return names


def _by_number(present: Present) -> dict[str, set[str]]:
    devices_of: dict[str, set[str]] = {}
    for device, who in devices.of(devices.ASKING, present.devices).items():
        devices_of.setdefault(who, set()).add(device)
    return devices_of


def whos(scopes: Scopes) -> set[str]:
    """Everything that addresses lead to: an instance's id, or several with `+` between."""
    return set().union(*(entries.values() for entries in scopes.values())) if scopes else set()


def chains_of(who: str) -> tuple[str, str, str, str]:
    return f"{INSTANCE}{who}", f"{NEW}{who}", f"{OUT_OF}{who}", f"{devices.TARGETS}{who}"


def groups_of(chains: t.Mapping[str, tuple[str, ...]], who: str) -> set[str]:
    """The group chains that an instance's chains jump to."""
    return {jump for name in chains_of(who)[:3] for jump in group_jumps(chains.get(name, ()))}


def group_jumps(rules: t.Iterable[str]) -> list[str]:
    return [jump for jump in (rule.rpartition(" ")[2] for rule in rules) if jump.startswith(_GROUP_PREFIXES)]


def sets_in(chains: Chains) -> set[str]:
    """The groups (`3`, `3.7`, see policy.zoned) whose sets of addresses the rules compare with."""
    return {
        part
        for name, rules in chains.items()
        if name.startswith(_GROUP_PREFIXES)
        for rule in rules
        for part in _SET.findall(rule)
    }


def _scopes(side: Side, chains: Chains) -> Scopes:
    roots, shielded = {EVERYWHERE: side.root}, set()
    for rule in chains.get(side.root, ()):
        words = rule.split(" ")
        if len(words) == 4 and words[0] == side.device and words[3] == f"{side.network}{words[1]}":
            roots[words[1]] = words[3]
        elif len(words) == 4 and rule == f"{side.device} {words[1]} {dispatch.SHIELD}":
            shielded.add(words[1])
    scopes = {scope: dispatch.read(side, root, lambda name: chains.get(name, ())) for scope, root in roots.items()}
    return {scope: entries for scope, entries in scopes.items() if entries} | {scope: {} for scope in shielded}


def roots(present: Present) -> set[str]:
    """The roots that shall be hooked in for what a host has."""
    return roots_of(present) | {name for name in passage.CALLED_FROM if name in present.chains}


def roots_of(held: Held) -> set[str]:
    heads = devices.heads(held.devices)
    needed = {
        policy.LOCAL: any(held.inbound.values()) or heads[policy.LOCAL],
        devices.ASKING.root: heads[policy.LOCAL],
        policy.OUTGOING: any(held.outbound.values()) or heads[policy.OUTGOING],
        ZONES: held.zones,
    }
    return {root for root, why in needed.items() if why}
