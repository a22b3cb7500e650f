# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Claims: what an instance takes from its compute host, decided by a guarded write, never by a read before.

The rule is Placement's (nova/placement `resource_provider.py`): `used + amount <= (total - reserved) * ratio`, checked
inside the UPDATE that adds the amount, together with the generation that the decision was made on.
"""

from __future__ import annotations

import collections
import typing as t

import sqlalchemy as sa

from .tables import allocation, compute_host


def release_claims(connection: sa.Connection, uuids: t.Iterable[str]) -> int:
    """Give back what these instances claimed, on every host, and return how many claims there were.

    The sums are taken from the rows that this DELETE returned: of two callers only one gets a row, so nothing is
    given back twice. Instances without a claim are no error.
    """
    wanted = sorted(set(uuids))
    if not wanted:
        return 0
    columns = (allocation.c.compute_host_id, allocation.c.vcpus, allocation.c.memory_mb, allocation.c.disk_gb)
    freed = connection.execute(
        sa.delete(allocation).where(allocation.c.instance_uuid.in_(wanted)).returning(*columns)
    ).all()
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
