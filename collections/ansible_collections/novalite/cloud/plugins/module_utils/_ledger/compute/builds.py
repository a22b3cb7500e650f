# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Builds that are begun again: those that failed, and those of a run that died."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._addressing import pools
from ..._errors import ConflictError
from ..._model.rows import InstanceRow
from ..db.tables import instance, instance_action, network, vif
from ..network.addresses import release_addresses
from ..network.pool_claims import claim_one
from ..network.preexisting_ports import interfaces_to_release
from ..placement.claims import release_claims
from ..queries import actions
from ..queries.instance_rows import swap
from .create import NetworkRef

BUILD_TIMEOUT = 600  # seconds without a sign of life, after which another run may take a build over


def begin_again(
    connection: sa.Connection, rows: t.Sequence[InstanceRow], passwords: t.Mapping[str, str], request_id: str, now: int
) -> None:
    """Make failed builds, and those of a run that died, new ones: same id, UUID, MACs, and what they were made with.

    Of a password there is no telling whether it is another one: the hash that is given now (by name) counts.
    """
    failed = [row.uuid for row in rows if row.vm_state == "error"]
    release_claims(connection, failed)
    release_addresses(connection, interfaces_to_release(connection, failed), now)
    for row in rows:
        values = {
            "vm_state": "building",
            "task_state": "scheduling",
            "power_state": 0,
            # A run that died may have left a guest that runs: only on that same host will it be found and kept.
            "host": row.host if row.vm_state == "building" else None,
            "fault": None,
            "attempts": [],
            "password_hash": passwords.get(row.name, row.password_hash),
            "updated_at": now,
        }
        same_task = instance.c.task_state.is_not_distinct_from(row.task_state)
        if not swap(connection, row.uuid, values, instance.c.vm_state == row.vm_state, same_task):
            raise ConflictError(f"'{row.name}' was changed by another run just now: run again")
    uuids = [row.uuid for row in rows]
    actions.abandon(connection, uuids, "ended without a result; begun again", now)
    wanted = _wanted_addresses(connection, failed)
    actions.start(connection, "create", {uuid: {} for uuid in uuids}, request_id, now)
    for vif_id, where, address in wanted:
        claim_one(connection, where, f"vif:{vif_id}", pools.to_int(address))


def _wanted_addresses(connection: sa.Connection, uuids: list[str]) -> list[tuple[str, NetworkRef, str]]:
    """(interface, network, address) for each address that these servers were asked for with."""
    asked = connection.execute(
        sa.select(instance_action.c.details["fixed_ips"]).where(
            instance_action.c.instance_uuid.in_(uuids), instance_action.c.action == "create"
        )
    ).scalars()
    wanted = {vif_id: address for addresses in asked for vif_id, address in (addresses or {}).items()}
    rows = connection.execute(
        sa.select(vif.c.id.label("vif_id"), network.c.id, network.c.name, network.c.cidr)
        .join(network, network.c.id == vif.c.network_id)
        .where(vif.c.id.in_(sorted(wanted)))
    )
    return [(row.vif_id, NetworkRef(row.id, row.name, row.cidr), wanted[row.vif_id]) for row in rows]
