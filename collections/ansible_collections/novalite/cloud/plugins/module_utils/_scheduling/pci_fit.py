# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Choice of a host's PCI devices for a guest: Nova's rules (nova/pci/stats.py), which `tests/parity` compares."""

from __future__ import annotations

import collections
import typing as t

from .._json import JsonMapping
from .._model.pci import LEGACY, PF, REQUIRED, TAKEN, Alias, Asked, Device, Held, aliases_of, devices_of


class Shelf:
    """Devices of a host that nobody has: not those that are `held`, nor what guests of others have."""

    def __init__(self, facts: JsonMapping, held: t.Iterable[Held]) -> None:
        self._aliases = aliases_of(facts)
        taken = {device.address for device in held}
        self._free = _left(devices_of(facts), taken.union(facts.get(TAKEN) or ()))

    @property
    def count(self) -> int:
        """Number of free devices."""
        return len(self._free)

    @property
    def by_node(self) -> t.Mapping[int | None, int]:
        """Number of free devices on each NUMA node."""
        return collections.Counter(device.numa_node for device in self._free)

    def pick(self, asked: Asked, nodes: t.Collection[int] = ()) -> tuple[Held, ...] | str:
        """Devices for a guest that is on these NUMA nodes of the host (none: on any); or why it gets none, worded to
        follow the host's name."""
        free, picked = self._free, []
        for ask in asked.devices:
            alias = self._aliases.get(ask.alias)
            if alias is None:
                return f"knows no PCI alias {ask.alias!r}: name it in compute_node_pci_alias"
            suitable = _suitable(free, alias, asked.policy or alias.policy, ask.count, nodes)
            if len(suitable) < ask.count:
                near = " near its NUMA nodes" if nodes else ""
                return f"{len(suitable)} PCI devices {ask.alias!r} are free{near}, {ask.count} are asked for"
            picked += [Held(ask.alias, device.address, device.managed) for device in suitable[: ask.count]]
            free = _left(free, {device.address for device in suitable[: ask.count]})
        return tuple(picked)


def _left(devices: t.Iterable[Device], taken: t.Collection[str]) -> list[Device]:
    """Return the devices without those `taken`, the virtual functions of these, and their physical ones."""
    devices = list(devices)
    parents = {device.parent for device in devices if device.address in taken}
    return [
        device
        for device in devices
        if device.address not in taken and device.parent not in taken and device.address not in parents
    ]


def _suitable(
    free: t.Sequence[Device], alias: Alias, policy: str, count: int, nodes: t.Collection[int]
) -> list[Device]:
    suitable = [device for device in free if alias.covers(device)]
    if len(suitable) >= count:
        suitable = _near(suitable, policy, count, nodes)
    return [device for device in suitable if alias.physical or device.type != PF]


def _near(suitable: list[Device], policy: str, count: int, nodes: t.Collection[int]) -> list[Device]:
    """Pick those on the NUMA nodes, as far as the policy asks for that: even where it need not be, it is better."""
    if not nodes:
        return suitable
    on_them = [device for device in suitable if device.numa_node in nodes]
    if policy == REQUIRED or len(on_them) >= count:
        return on_them
    not_away = [device for device in suitable if device.numa_node is None or device.numa_node in nodes]
    if policy == LEGACY or len(not_away) >= count:
        return not_away
    return sorted(suitable, key=lambda device: device not in not_away)
