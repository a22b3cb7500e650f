# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's CoreFilter, RamFilter and DiskFilter, with Placement's rule: how much of a host may be promised."""

from __future__ import annotations

import operator
import typing as t

from ..kinds import Filter
from ..options import Options
from ..rows import HostState, Request


def _capacity(name: str, nova: str, amount_of: str, unit: str, ratio: str) -> Filter:
    """The filter of one resource, by its name in requests and hosts. Overcommit is up to the host's `ratio`."""
    amount_in, room_of = operator.attrgetter(amount_of), operator.attrgetter(f"{amount_of}_room")

    def refused(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[int]:
        """Return positions of hosts with `used + amount > (total - reserved) * ratio`, or too small for one instance.

        Who asks for none is let in even where too much is used already: so does Placement.
        """
        amount = amount_in(request)
        return [at for at, room in enumerate(map(room_of, hosts)) if amount > room] if amount else []

    def passes(host: HostState, request: Request, options: Options) -> str | None:
        """Tell what is short on a refused host: the machine itself, or what is left of what may be promised.

        Overcommit shares a host between instances; one instance alone never gets more than the machine has, or it would
        compete with itself (Nova's AggregateCoreFilter and its siblings had the same rule).
        """
        amount, total = amount_in(request), amount_in(host)
        if not amount or amount <= room_of(host):
            return None
        if amount > total:
            return f"has {total} {unit} in all, {amount} are asked for"
        promised = (total - getattr(host, f"reserved_{amount_of}")) * getattr(host, ratio)
        free, others = max(0, int(promised - getattr(host, f"{amount_of}_used"))), getattr(host, f"{amount_of}_others")
        return f"{free} of {amount} {unit} free" + (f", {others} used by others" if others else "")

    return Filter(name, passes, refused=refused, nova=nova)


PLUGINS = (vcpu, ram, disk) = (
    _capacity("vcpu", "CoreFilter", "vcpus", "vCPUs", "cpu_ratio"),
    _capacity("ram", "RamFilter", "memory_mb", "MiB", "ram_ratio"),
    _capacity("disk", "DiskFilter", "disk_gb", "GiB", "disk_ratio"),
)
