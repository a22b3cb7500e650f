# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is asked of a host's firewall, and what there is to do about it in one family. Plain data."""

from __future__ import annotations

import collections
import dataclasses
import typing as t

from .devices import Devices
from .policy import Chains, Group, Instance
from .present import Present, Scopes


@dataclasses.dataclass(frozen=True)
class Request:
    """`present` ensures the instances and groups and leaves the others alone, `exclusive` leaves no others;
    `absent` takes the instances away, with the groups that no instance uses any more.

    `zones`: the conntrack zone of each isolated bridge. `sets`: whether the kernel has ip_set. `bridges` are those of
    the instances' networks (`absent`: that go with them), `serving` those on which this host serves DHCP and DNS.
    `opened`: what guests may ask of the host besides (host.py); None leaves that as it is.
    `targets`: whether the kernel has xt_bpf, without which the target of neighbour discovery is not compared.
    """

    instances: tuple[Instance, ...] = ()
    groups: tuple[Group, ...] = ()
    state: str = "present"
    exclusive: bool = False
    zones: t.Mapping[str, int] = dataclasses.field(default_factory=dict)
    sets: bool = True
    bridges: tuple[str, ...] = ()
    serving: tuple[str, ...] = ()
    opened: tuple[str, ...] | None = None
    targets: bool = True


@dataclasses.dataclass
class Changes:
    """What to do in one family, and what the host has afterwards."""

    wanted: Chains = dataclasses.field(default_factory=dict)  # chains that are missing or differ
    # what those of them held that lead to instances: `Present` has these chains only where a host was read
    before: Chains = dataclasses.field(default_factory=dict)
    gone: list[str] = dataclasses.field(default_factory=list)
    roots: set[str] = dataclasses.field(default_factory=set)  # the roots that are hooked in
    inbound: Scopes = dataclasses.field(default_factory=dict)
    outbound: Scopes = dataclasses.field(default_factory=dict)
    devices: Devices = dataclasses.field(default_factory=dict)
    zones: dict[str, int] = dataclasses.field(default_factory=dict)
    users: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    sets: set[str] = dataclasses.field(default_factory=set)  # groups (zoned()) whose addresses the rules compare with
    is_last: bool = False  # no instance is left
    # (scope, address) that lead elsewhere than before, or nowhere
    moved: set[tuple[str, str]] = dataclasses.field(default_factory=set)
    # addresses that more instances may use than a chain's name has room for: they are closed
    crowded: set[str] = dataclasses.field(default_factory=set)
    # (scope, address) that are an instance's and were nobody's
    arrived: set[tuple[str, str]] = dataclasses.field(default_factory=set)

    def rules_before(self, present: Present, name: str) -> tuple[str, ...] | None:
        """What a chain held; None where it was not there."""
        if present.ruleset is None and name in self.before:
            return self.before[name]
        return present.chains.get(name)
