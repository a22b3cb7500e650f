# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which compute host has a volume, or does what is to be done to one that is shared."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError
from ..catalog import volume_types
from ..db.tables import compute_host
from ..db.tables_volumes import volume
from ..queries.counts import is_any
from ..queries.lookups import check_compute_hosts
from ..queries.volume_views import Options, Volume


def choose(
    connection: sa.Connection,
    type_name: str,
    options: Options,
    zone: str | None = None,
    host: str | None = None,
    limit_to: t.Collection[str] | None = None,
) -> str:
    """The compute host for a new volume: `host`, else of `limit_to` (None: all) the one with the fewest GiB of volumes.

    Raises NotFoundError for an unknown host, ConflictError when no host that is up has this type (in that zone).
    """
    allowed = options.get("hosts")
    if host is not None:
        check_compute_hosts(connection, [host])
        if allowed is not None and host not in allowed:
            raise ConflictError(
                f"volume type {type_name} is not on the compute host {host}, only on {', '.join(allowed)}"
            )
        return host
    taken = sa.select(sa.func.coalesce(sa.func.sum(volume.c.size_gb), 0)).where(volume.c.host == compute_host.c.name)
    query = (
        sa.select(compute_host.c.name)
        .where(compute_host.c.up, compute_host.c.enabled)
        .order_by(taken.scalar_subquery(), compute_host.c.name)
    )
    for names in (allowed, limit_to):
        if names is not None:
            query = query.where(compute_host.c.name.in_(sorted(set(names))))
    if zone is not None:
        if not is_any(connection, compute_host.c.zone == zone):
            raise NotFoundError(f"Availability zone '{volume_types.check_shown(zone)}' is invalid.")
        query = query.where(compute_host.c.zone == zone)
    chosen = connection.execute(query.limit(1)).scalar()
    if chosen is None:
        where = f" in zone {zone}" if zone is not None else ""
        where += f" among {', '.join(limit_to) or 'none'}" if limit_to is not None else ""
        raise ConflictError(f"no compute host that is up has room for volumes of type {type_name}{where}")
    return str(chosen)


def worker(connection: sa.Connection, of: Volume, limit_to: t.Collection[str] | None = None) -> str | None:
    """The compute host that works on this volume: its own, its instance's, or for shared storage any that is up (and in
    `limit_to`). None for one of which nothing is anywhere."""
    host = of.host or next((attachment.host for attachment in of.attachments if attachment.host is not None), None)
    if host is not None or of.backend in volume_types.LOCAL_BACKENDS:
        return host
    return choose(connection, of.type, of.options, limit_to=limit_to)
