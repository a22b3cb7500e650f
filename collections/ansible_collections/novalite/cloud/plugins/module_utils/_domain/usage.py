# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Use of a compute host by guests of others, and whether it leaves the room that the ledger counts on."""

from __future__ import annotations

import dataclasses
import typing as t

RUNNING, ALL, NONE = "running", "all", "none"
COUNTS = (RUNNING, ALL, NONE)  # which of them count, by a host's `count_foreign`
UNITS = {"vcpus": "vCPUs", "memory_mb": "MiB of memory", "disk_gb": "GiB of disk"}

Domain = t.Mapping[str, t.Any]


class Usage(t.NamedTuple):
    """Sums over guests, by the names of their columns in compute_host. Memory in MiB, disk in GiB."""

    vcpus_others: int = 0
    memory_mb_others: int = 0
    disk_gb_others: int = 0


@dataclasses.dataclass(frozen=True)
class Share:
    """A resource of a host as the ledger has it, in the units of UNITS: `used` by its instances, those that are to be
    built among them; `reserved` for the host; `ratio`, how often each unit may be handed out."""

    used: int
    reserved: int
    ratio: float


@dataclasses.dataclass(frozen=True)
class Room:
    """Room that the ledger counts on: the UUIDs of its `instances` on the host, which other guests count, and the
    shares by resource. A resource without a share is not checked."""

    count_foreign: str
    instances: frozenset[str]
    shares: t.Mapping[str, Share]

    @classmethod
    def of(cls, options: t.Mapping[str, t.Any]) -> Room:
        """Return the room that the module `compute_host` was given as its option `room`."""
        shares = {name: Share(**options[name]) for name in UNITS if options.get(name)}
        return cls(options["count_foreign"], frozenset(options["instances"]), shares)


def usage(domains: t.Iterable[Domain], known: t.Container[str], count: str, removed_gb: int = 0) -> Usage:
    """Return what those `domains` of a host take that are not `known`, and the disks that were removed (`removed_gb`).

    With `running`, those that are off count with their disks alone: nobody gave their memory away, but their files are
    there, and grow when they start. `all` counts them as if they ran, `none` counts nobody.
    """
    if count == NONE:
        return Usage(disk_gb_others=removed_gb)
    sums = [0, 0, removed_gb]
    for domain in domains:
        if domain["uuid"] in known:
            continue
        if domain["state"] == "running" or count == ALL:
            sums[0] += domain["vcpus"]
            sums[1] += domain["memory_mb"]
        sums[2] += domain.get("disk_gb") or 0
    return Usage(*sums)


def shortage(facts: t.Mapping[str, t.Any], room: Room) -> str | None:
    """Return what the host with these `facts` (see host_facts.gather) has too little of, None if there is room.

    The rule is the one of a claim in the ledger (_ledger/placement/claims.py), which is Placement's.
    """
    removed_gb = facts.get("removed_gb", 0)
    others = usage(facts["domains"], room.instances, room.count_foreign, removed_gb)._asdict()
    for name, share in room.shares.items():
        by_others = others[f"{name}_others"]
        limit = int((facts[name] - share.reserved) * share.ratio)
        if share.used + by_others > limit:
            return (
                f"{share.used} of {limit} {UNITS[name]} are given to instances, "
                f"and guests of others have taken {by_others}"
            )
    return None
