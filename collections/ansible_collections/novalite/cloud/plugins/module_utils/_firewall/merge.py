# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""A request merged into what a host has: which of novalite's chains shall be there afterwards. Pure."""

from __future__ import annotations

import dataclasses
import typing as t

from .._errors import NovaliteError
from . import policy, ruleset
from .policy import FALLBACK, GROUP, INSTANCE, LOCAL, NEW, Chains, Group, Instance


@dataclasses.dataclass(frozen=True)
class Request:
    """`present` ensures the instances and groups and leaves the others alone, `exclusive` leaves no others;
    `absent` takes the instances away, with the groups that no instance uses any more."""

    instances: tuple[Instance, ...] = ()
    groups: tuple[Group, ...] = ()
    state: str = "present"
    exclusive: bool = False


def merged(current: ruleset.Ruleset, request: Request, family: str) -> Chains:
    """All of novalite's chains of one family after the request; empty when no instance is left.

    An instance chain that nova-local does not lead to protects nobody: it is a crash's leftover and goes.
    Raises NovaliteError for a group that is neither given nor on the host.
    """
    owned = current.owned()
    given = {instance.id: instance for instance in request.instances}
    present = request.state == "present"
    added = [instance for instance in request.instances if present and instance.of(family)]
    local = _local(current, given, added, family, request.exclusive and present)
    if not local:
        return {}
    chains = {}  # type: Chains
    for instance in added:
        chains.update({chain.name: chain.rules for chain in policy.instance_chains(instance, family)})
    others = {t.cast(str, ruleset.target(jump))[len(INSTANCE):] for jump in local} - {str(number) for number in given}
    for number in others:
        for name in (f"{INSTANCE}{number}", f"{NEW}{number}"):
            if name in owned:
                chains[name] = owned[name]
    used = {jump[len(GROUP):] for rules in chains.values() for jump in map(ruleset.target, rules)
            if jump is not None and jump.startswith(GROUP)}
    head = {FALLBACK[family]: ("-j DROP",)}  # type: Chains
    head.update(_groups(owned, request, used, family))
    return {**head, **chains, LOCAL: tuple(local)}


def _local(
    current: ruleset.Ruleset, given: t.Container[int], added: t.Sequence[Instance], family: str, exclusive: bool
) -> list[str]:
    """nova-local's rules: what stays, in its order, then what is new. Anything else in there is not ours and goes."""
    wanted = dict.fromkeys(jump for instance in added for jump in policy.jumps(instance, family))
    taken = {address for instance in added for address in instance.of(family)}
    kept = []  # type: list[str]
    for address, identifier in current.instances().items():
        jump = f"-d {address} -j {INSTANCE}{identifier}"
        # An address that moved to another instance must leave its old line, which would come first and win.
        stays = jump in wanted or not (exclusive or identifier in given or address in taken)
        if stays:
            kept.append(jump)
            wanted.pop(jump, None)
    return kept + list(wanted)


def _groups(owned: Chains, request: Request, used: t.Collection[str], family: str) -> Chains:
    given = {group.id: group for group in request.groups} if request.state == "present" else {}
    chains = {}  # type: Chains
    for identifier in sorted(used, key=int):
        name = f"{GROUP}{identifier}"
        if int(identifier) in given:
            chains[name] = policy.group_chain(given[int(identifier)], given, family).rules
        elif name in owned:
            chains[name] = owned[name]
        else:
            raise NovaliteError(
                f"security group {identifier} is used by an instance, but is neither among security_groups nor on "
                "this host; give it with its rules"
            )
    return chains
