# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Start of moves: requests are checked, recorded, and their instances taken."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._domain.guest import disk_backend
from ..._errors import ConflictError, NovaliteError
from ..._model import hardware
from ..._model.instance import Flavor, Instance, is_iso
from ..._model.rows import InstanceRow, MoveRow
from ..compute import migrations, server_actions
from ..compute.live_resize import check_quotas
from ..db import clock
from ..db.tables import compute_host, instance
from ..queries import lookups
from ..queries.compute.instance_rows import instance_rows
from ..queries.placement.host_states import SERVICE_DOWN_TIME
from ..queries.volumes import volume_views
from ..volumes.ha_disks import local_volume

_SIZES: t.Final = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap_mb")
_DISKS: t.Final = ("root_gb", "ephemeral_gb")


def begin_move(
    connection: sa.Connection,
    action: str,
    uuids: t.Iterable[str],
    *,
    request_id: str,
    flavor: Flavor | None = None,
    host: str | None = None,
    reason: str | None = None,
    user_id: str | None = None,
    by_admin: bool = False,
) -> list[Instance]:
    """Begin `action` (of migrations.ACTIONS) on all of `uuids`, or on none; returns them as they are then.

    `flavor` is the new size of a resize (as views.flavor_of makes it), `host` the destination that was asked for.
    Raises NovaliteError for what can never be, QuotaError, and ConflictError as server_actions.begin() does.
    """
    sorted_uuids = sorted(set(uuids))
    if host is not None:
        lookups.check_compute_hosts(connection, [host])
    rows = {row.uuid: row for row in instance_rows(connection, instance.c.uuid.in_(sorted_uuids))}
    details = {"flavor": flavor["name"]} if flavor else {}
    begun = server_actions.begin(
        connection,
        action,
        sorted_uuids,
        request_id=request_id,
        user_id=user_id,
        details={**details, **({"host": host} if host else {})},
        by_admin=by_admin,
    )
    open_moves = migrations.open_moves(connection, sorted_uuids)
    for server in begun:
        row = rows[server["uuid"]]
        if action in migrations.ENDS:
            _begin_end(connection, action, row, open_moves.get(row.uuid))
            continue
        if row.uuid in open_moves:
            # the hosts know how it ended, and nobody has asked them yet
            raise ConflictError(
                f"Instance {row.uuid} has a {open_moves[row.uuid].type} that was cut off: run playbooks/reconcile.yml"
            )
        if action == "resize":
            _check_flavor(row, flavor, own_root=not volume_views.from_volumes(connection, [row.uuid]))
        _check_host(connection, action, row, host)
        migrations.insert(connection, action, row, flavor=flavor, host=host, reason=reason, user_id=user_id)
    if action == "resize" and flavor is not None:
        check_quotas(connection, list(rows.values()), flavor)
    return begun


def _begin_end(connection: sa.Connection, action: str, row: InstanceRow, move: MoveRow | None) -> None:
    if move is None or move.status not in migrations.WAITING:
        raise ConflictError(f"Instance {row.uuid} has not been resized.")
    if action == "revertResize" and move.status == migrations.CONFIRMING:
        raise ConflictError(
            f"Instance {row.uuid} cannot be reverted: its resize was confirmed, and some of what it had before may be "
            "removed; confirm it once more"
        )
    two_hosts = move.source_host != move.dest_host
    if action == "revertResize" and two_hosts and (held := local_volume(connection, row.uuid)) is not None:
        raise ConflictError(
            f"Instance {row.uuid} has volume {held}, which is on {row.host} alone, and would go back to "
            f"{move.source_host}: detach it first, or confirm the resize"
        )
    status = migrations.CONFIRMING if action == "confirmResize" else migrations.REVERTING
    migrations.set_status(connection, [move.id], status)


def _check_flavor(row: InstanceRow, flavor: Flavor | None, own_root: bool) -> None:
    """Without a root disk of its `own_root`, a server's flavor says nothing of one, as in Nova."""
    if flavor is None:
        raise NovaliteError(f"'{row.name}': name the flavor to resize it to")
    old = row.flavor
    if flavor["name"] == old["name"] and all(flavor[size] == old[size] for size in _SIZES):
        raise NovaliteError("When resizing, instances must change flavor!")
    if own_root and flavor["root_gb"] == 0 and old["root_gb"] != 0:
        raise NovaliteError("Resize to zero disk flavor is not allowed.")
    for field in _DISKS if own_root else _DISKS[1:]:
        if 0 < flavor[field] < old[field] or (field == "ephemeral_gb" and flavor[field] < old[field]):
            raise NovaliteError(
                f"Cannot resize '{row.name}' to flavor '{flavor['name']}': its {field} would shrink from "
                f"{old[field]} to {flavor[field]} GiB, and a guest's file system does not shrink with its disk"
            )
    if disk_backend(flavor) != disk_backend(old):
        raise NovaliteError(
            f"Cannot resize '{row.name}' to flavor '{flavor['name']}': its disks are {disk_backend(old)} and cannot "
            f"become {disk_backend(flavor)}"
        )
    hardware.checked(flavor, row.image)
    size = 0 if is_iso(row.image) else row.image.get("virtual_size") or 0
    if own_root and 0 < flavor["root_gb"] << 30 < size:
        raise NovaliteError(f"Flavor's disk is too small for requested image: {flavor['root_gb']} GiB, {size} bytes")
    if flavor["memory_mb"] < (row.image.get("min_ram_mb") or 0):
        raise NovaliteError("Flavor's memory is too small for requested image.")


def _check_host(connection: sa.Connection, action: str, row: InstanceRow, host: str | None) -> None:
    if host is not None and host == row.host and action != "resize":
        raise NovaliteError(f"Cannot migrate instance {row.uuid} to its current host ({host})")
    if action in ("migrate", "live-migration", "evacuate") and (held := local_volume(connection, row.uuid)) is not None:
        raise NovaliteError(f"Instance {row.uuid} has volume {held}, which is on {row.host} alone: detach it first")
    if action == "evacuate" and _answered(connection, row.host or ""):
        raise NovaliteError(f"Compute service of {row.host} is still in use.")


def _answered(connection: sa.Connection, host: str) -> bool:
    """Tell whether the host was seen within the last minute, as far as that is known. The playbook then asks the host
    itself."""
    columns = (compute_host.c.up, compute_host.c.last_seen_at)
    row = connection.execute(sa.select(*columns).where(compute_host.c.name == host)).first()
    return row is not None and row.up and row.last_seen_at > clock.before(connection, SERVICE_DOWN_TIME)
