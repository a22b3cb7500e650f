# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims: what an instance takes from its compute host, decided by a guarded write, never by a read before.

The rule is Placement's (nova/placement `resource_provider.py`): `used + amount <= (total - reserved) * ratio`, checked
inside the UPDATE that adds the amount, together with the generation that the decision was made on. What guests take
that are not in the ledger (`foreign.py`) is used, too.
"""

from __future__ import annotations

import collections
import typing as t

import sqlalchemy as sa

from ..._scheduling.explain import Decision
from ..._scheduling.options import Options
from ..db.tables import allocation, compute_host
from .placements import Instance, StaleChoiceError

DEFAULT_CHOICE = "filter_scheduler"
CLAIM_ATTEMPTS = 10  # as Placement: how often a choice is made again when a host changed meanwhile


def asks_for_instances(instances: t.Iterable[Instance], options: Options) -> bool:
    """Whether a filter or weigher will look at what stands on each host, one by one."""
    if options.plugin_paths:
        return True
    return any((instance.get("request") or {}).keys() & {"same_host", "different_host"} for instance in instances)


def take_room(connection: sa.Connection, placed: t.Sequence[Decision], versions: dict[str, tuple[int, int]]) -> None:
    """Add what `placed` ask for to what their hosts have given away. Raises StaleChoiceError when one is refused."""
    sums: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    for decision in placed:
        of_host = sums[decision.host or ""]
        of_host[0] += decision.request.vcpus
        of_host[1] += decision.request.memory_mb
        of_host[2] += decision.request.disk_gb
    c = compute_host.c
    vcpus: sa.BindParameter[int] = sa.bindparam("add_vcpus")
    memory_mb: sa.BindParameter[int] = sa.bindparam("add_memory_mb")
    disk_gb: sa.BindParameter[int] = sa.bindparam("add_disk_gb")
    claimed = connection.execute(
        sa.update(compute_host)
        .where(
            c.id == sa.bindparam("host_id"),
            c.generation == sa.bindparam("seen_generation"),
            c.vcpus_used + c.vcpus_others + vcpus <= (c.vcpus - c.reserved_vcpus) * c.cpu_ratio,
            c.memory_mb_used + c.memory_mb_others + memory_mb <= (c.memory_mb - c.reserved_memory_mb) * c.ram_ratio,
            # as in Placement, what is not asked for is not checked: the host may have promised too much of it before
            sa.or_(
                disk_gb == 0,
                c.disk_gb_used + c.disk_gb_others + disk_gb <= (c.disk_gb - c.reserved_disk_gb) * c.disk_ratio,
            ),
        )
        .values(
            vcpus_used=c.vcpus_used + vcpus,
            memory_mb_used=c.memory_mb_used + memory_mb,
            disk_gb_used=c.disk_gb_used + disk_gb,
            generation=c.generation + 1,
        ),
        # in the order of the ids, as every writer of these rows: two of them cannot lock each other out
        sorted(
            (
                {
                    "host_id": versions[host][0],
                    "seen_generation": versions[host][1],
                    "add_vcpus": of_host[0],
                    "add_memory_mb": of_host[1],
                    "add_disk_gb": of_host[2],
                }
                for host, of_host in sums.items()
            ),
            key=lambda row: row["host_id"],
        ),
    )
    if claimed.rowcount != len(sums):
        raise StaleChoiceError


def release_claims(connection: sa.Connection, uuids: t.Iterable[str], hosts: t.Collection[str] | None = None) -> int:
    """Give back what these instances claimed, on every host or on these, and return how many claims there were.

    The sums are taken from the rows that this DELETE returned: of two callers only one gets a row, so nothing is
    given back twice. Instances without a claim are no error.
    """
    wanted = sorted(set(uuids))
    if not wanted:
        return 0
    columns = (allocation.c.compute_host_id, allocation.c.vcpus, allocation.c.memory_mb, allocation.c.disk_gb)
    of_these: sa.ColumnElement[bool] = allocation.c.instance_uuid.in_(wanted)
    if hosts is not None:
        ids = sa.select(compute_host.c.id).where(compute_host.c.name.in_(sorted(hosts)))
        of_these = sa.and_(of_these, allocation.c.compute_host_id.in_(ids))
    freed = connection.execute(sa.delete(allocation).where(of_these).returning(*columns)).all()
    sums: dict[int, list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    for host_id, vcpus, memory_mb, disk_gb in freed:
        of_host = sums[host_id]
        of_host[0] += vcpus
        of_host[1] += memory_mb
        of_host[2] += disk_gb
    if sums:
        connection.execute(
            sa.update(compute_host)
            .where(compute_host.c.id == sa.bindparam("host_id"))
            .values(
                vcpus_used=compute_host.c.vcpus_used - sa.bindparam("vcpus_freed"),
                memory_mb_used=compute_host.c.memory_mb_used - sa.bindparam("memory_mb_freed"),
                disk_gb_used=compute_host.c.disk_gb_used - sa.bindparam("disk_gb_freed"),
                generation=compute_host.c.generation + 1,
            ),
            # in the order of the ids, as every writer of these rows: two of them cannot lock each other out
            [
                {"host_id": host_id, "vcpus_freed": vcpus, "memory_mb_freed": memory_mb, "disk_gb_freed": disk_gb}
                for host_id, (vcpus, memory_mb, disk_gb) in sorted(sums.items())
            ],
        )
    return len(freed)
