# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's word about instances that hosts have something of, and what a run saw of them on other hosts: what
_drift/proofs.py judges."""

from __future__ import annotations

import os
import typing as t

import sqlalchemy as sa

from ..._drift.proofs import Evidence, Sight, Word, not_asked
from ..._json import JsonMapping
from ..._rules.build_states import OFFLOADED
from ..db.tables import compute_host, instance
from ..placement import departures
from ..queries.compute.instance_rows import instance_rows
from ..queries.volumes import volume_views


def words(connection: sa.Connection, uuids: t.Collection[str]) -> dict[str, Word]:
    """Return what the ledger says of those of these instances that it knows, deleted ones too."""
    left = departures.of_instances(connection, uuids)
    from_volumes = volume_views.from_volumes(connection, uuids)
    return {
        row.uuid: Word(
            uuid=row.uuid,
            name=row.name,
            host=row.host,
            deleted=bool(row.deleted),
            launched=row.launched_at is not None,
            own_disk=row.uuid not in from_volumes,
            image_kept=row.vm_state == OFFLOADED
            and (row.uuid in from_volumes or (row.disk_image is not None and os.path.exists(row.disk_image["source"]))),
            departures=left.get(row.uuid, {}),
        )
        for row in instance_rows(connection, instance.c.uuid.in_(sorted(uuids)))
    }


class Elsewhere:
    """Sights of this run on other hosts than `host`: `params["elsewhere"]`, as the operation `whereabouts` returns it
    for each host. Without it no other host was asked."""

    def __init__(self, connection: sa.Connection, host: str, params: JsonMapping) -> None:
        seen: JsonMapping | None = params.get("elsewhere")
        if seen is None:
            hosts = connection.execute(sa.select(compute_host.c.name).where(compute_host.c.name != host))
            seen = {"sights": {}, "volumes": {}, "silent": list(hosts.scalars())}
        self._sights: JsonMapping = seen["sights"]
        self._host, self._volumes = host, seen["volumes"]
        self._silent = frozenset(seen["silent"])

    def of(self, uuid: str) -> Evidence:
        """Return what was seen of the instance."""
        return Evidence({host: Sight(**sight) for host, sight in self._sights.get(uuid, {}).items()}, self._silent)

    def doubt_of_volume(self, volume_id: str) -> str | None:
        """Return why a volume that is missing on the host may not be lost."""
        there = self._volumes.get(volume_id)
        if there:
            return f"its data is on {' and '.join(there)}, the ledger has it on {self._host}"
        return not_asked(self._silent)
