# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The beginning of moves: what is asked for is checked, recorded, the instance taken for it, and given a place."""

from __future__ import annotations

import time
import typing as t

import sqlalchemy as sa

from ..._domain.guest import disk_backend
from ..._errors import ConflictError, NovaliteError
from ..._json import JsonMapping
from ..._model.instance import Flavor, Instance, Move
from ..._model.rows import InstanceRow, MoveRow
from ..compute import migrations, server_actions, server_requests
from ..db.tables import compute_host, instance
from ..db.tables_migrations import migration
from ..db.tables_volumes import volume, volume_attachment
from ..identity import quotas
from ..placement import migration_claims
from ..placement.compute_hosts import SERVICE_DOWN_TIME
from ..queries import lookups
from ..queries.instance_rows import instance_rows
from ..queries.usage import usage
from ..queries.views import instances_by

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
    ignore_lock: bool = False,
) -> list[Instance]:
    """Begin `action` (of migrations.ACTIONS) on all of `uuids`, or on none; returns them as they are then.

    `flavor` is the new size of a resize (as views.flavor_of makes it), `host` the destination that was asked for.
    Raises NovaliteError for what can never be, QuotaError, and ConflictError as server_actions.begin() does.
    """
    wanted = sorted(set(uuids))
    if host is not None:
        lookups.check_compute_hosts(connection, [host])
    rows = {row.uuid: row for row in instance_rows(connection, instance.c.uuid.in_(wanted))}
    details = {"flavor": flavor["name"]} if flavor else {}
    begun = server_actions.begin(
        connection,
        action,
        wanted,
        request_id=request_id,
        user_id=user_id,
        details={**details, **({"host": host} if host else {})},
        ignore_lock=ignore_lock,
    )
    found = migrations.open_moves(connection, wanted)
    for server in begun:
        row = rows[server["uuid"]]
        if action in migrations.ENDS:
            _begin_end(connection, action, row, found.get(row.uuid))
            continue
        if row.uuid in found:
            # the hosts know how it ended, and nobody has asked them yet
            raise ConflictError(
                f"Instance {row.uuid} has a {found[row.uuid].type} that was cut off: run playbooks/reconcile.yml"
            )
        if action == "resize":
            _check_flavor(row, flavor, own_root=server_actions.one_from_volume(connection, [row.uuid]) is None)
        _check_host(connection, action, row, host)
        migrations.insert(connection, action, row, flavor=flavor, host=host, reason=reason, user_id=user_id)
    if action == "resize" and flavor is not None:
        _check_quotas(connection, list(rows.values()), flavor)
    return begun


def _begin_end(connection: sa.Connection, action: str, row: InstanceRow, move: MoveRow | None) -> None:
    if move is None or move.status != migrations.FINISHED:
        raise ConflictError(f"Instance {row.uuid} has not been resized.")
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
    size = row.image.get("virtual_size") or 0
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


def local_volume(connection: sa.Connection, uuid: str) -> str | None:
    """The name of a volume of the instance that no other host has."""
    query = (
        sa.select(volume.c.name)
        .join(volume_attachment, volume_attachment.c.volume_id == volume.c.id)
        .where(volume_attachment.c.instance_uuid == uuid, volume.c.host.is_not(None))
    )
    return connection.execute(query.limit(1)).scalar()


def _answered(connection: sa.Connection, host: str) -> bool:
    """Whether the host was seen within the last minute. The playbook then asks the host itself."""
    columns = (compute_host.c.up, compute_host.c.last_seen_at)
    row = connection.execute(sa.select(*columns).where(compute_host.c.name == host)).first()
    return row is not None and row.up and time.time() - row.last_seen_at < SERVICE_DOWN_TIME


def _check_quotas(connection: sa.Connection, rows: t.Sequence[InstanceRow], flavor: Flavor) -> None:
    """What they will take more than now must be within their projects' quotas."""
    for project_id in sorted({row.project_id for row in rows}):
        lookups.lock_project(connection, project_id)
        theirs = [row.flavor for row in rows if row.project_id == project_id]
        more = {
            "cores": sum(max(0, flavor["vcpus"] - record["vcpus"]) for record in theirs),
            "ram": sum(max(0, flavor["memory_mb"] - record["memory_mb"]) for record in theirs),
        }
        limits = quotas.quota_limits(connection, project_id)
        server_requests.check_quota(more, usage(connection, project_id, ("cores", "ram")), limits)


def away_from(connection: sa.Connection, host: str) -> list[Instance]:
    """Those that left `host` for its maintenance, and have not moved since."""
    last: dict[str, MoveRow] = {}
    for row in connection.execute(sa.select(migration).order_by(migration.c.id)):
        if row.status not in (migrations.ERROR, migrations.REVERTED, "cancelled"):
            last[row.instance_uuid] = t.cast(MoveRow, row)
    gone = {
        uuid: row.dest_host
        for uuid, row in last.items()
        if (row.reason, row.source_host) == (migrations.MAINTENANCE, host)
        and row.status in (migrations.COMPLETED, migrations.CONFIRMED)
    }
    return [server for server in instances_by(connection, uuids=gone) if server["host"] == gone[server["uuid"]]]


def is_settled(connection: sa.Connection, action: str, one: Instance, flavor: str | None, host: str | None) -> bool:
    """Whether the instance is already what `action` would make it."""
    if one["task_state"] is not None:
        return False
    move = migrations.open_moves(connection, [one["uuid"]]).get(one["uuid"])
    waits = one["vm_state"] == "resized" and move is not None
    if action == "resize":
        return one["flavor"]["name"] == flavor and (waits or one["vm_state"] in ("active", "stopped"))
    if action == "migrate":
        return bool(waits and host in (None, one["host"])) or (host is not None and one["host"] == host)
    if action in ("live-migration", "evacuate"):
        return host is not None and one["host"] == host
    last = connection.execute(
        sa.select(migration.c.status)
        .where(migration.c.instance_uuid == one["uuid"], migration.c.type.in_(["resize", "migration"]))
        .order_by(migration.c.id.desc())
    ).scalar()
    return not waits and last == (migrations.CONFIRMED if action == "confirmResize" else migrations.REVERTED)


def place(connection: sa.Connection, one: Instance, move: MoveRow, params: JsonMapping) -> migration_claims.Place:
    """Find a host for it and claim it there; its reasons where there is none."""
    same_host = params.get("same_host") or ("allowed" if move.type == "resize" else "never")
    if move.type == "resize" and local_volume(connection, one["uuid"]) is not None:
        same_host = "only"
    limit_to = params.get("limit_to")
    try:
        if move.type == "live-migration":
            limit_to = _live_destinations(connection, one["host"] or "", move.dest_host, limit_to)
        found = migration_claims.place(
            connection,
            one,
            move.new_flavor,
            host=move.dest_host,
            same_host=same_host,
            options=params.get("options"),
            down_time=params.get("service_down_time"),
            limit_to=limit_to,
        )
    except NovaliteError as error:
        found = migration_claims.Place(None, str(error), ())
    if found.host is not None:
        status = migrations.RUNNING if move.type == "live-migration" else migrations.MIGRATING
        connection.execute(
            sa.update(migration)
            .where(migration.c.id == move.id)
            .values(status=status, dest_host=found.host, updated_at=migrations.now_())
        )
    return found


def _live_destinations(
    connection: sa.Connection, host: str, destination: str | None, limit_to: t.Collection[str] | None
) -> t.Collection[str] | None:
    """Those of the hosts `limit_to` (None: any) that a guest of `host` can go to while it runs.

    It takes the names of its files along: its QEMU has them open, and libvirt carries its definition over. Raises
    NovaliteError when the `destination` that was asked for, or every other host, keeps its files elsewhere.
    """
    rows = connection.execute(sa.select(compute_host.c.name, compute_host.c.state_dir))
    known = {row.name: row.state_dir for row in rows}
    here = known.get(host)
    alike = {name for name, directory in known.items() if directory == here}
    if alike == known.keys():
        return limit_to
    advice = "a guest that runs takes the names of its disks along; migrate it while it is off (migrate.yml)"
    if destination is not None and destination not in alike:
        raise NovaliteError(
            f"host {destination} keeps instances in {known.get(destination)}, {host} in {here}: {advice}"
        )
    if alike <= {host}:
        raise NovaliteError(f"no other host keeps instances in {here} as {host} does: {advice}")
    return sorted(alike if limit_to is None else alike & set(limit_to))


def move_of(action: str, one: Instance, move: MoveRow, why: list[str]) -> Move:
    """One move as the playbook passes it on: from where the guest is now to where it is to be afterwards."""
    back = action == "revertResize"
    ends = [(move.source_host, move.old_flavor), (move.dest_host or "", move.new_flavor)]
    (from_host, from_flavor), (to_host, to_flavor) = reversed(ends) if back else ends
    state = move.old_vm_state
    return {
        "uuid": one["uuid"],
        "name": one["name"],
        "domain_name": one["domain_name"],
        "id": move.uuid,
        "action": action,
        "from_host": from_host,
        "to_host": to_host,
        "from_flavor": from_flavor,
        "to_flavor": to_flavor,
        "same_host": move.source_host == move.dest_host,
        "starts": state in ("active", "paused", "error") if action == "evacuate" else state in ("active", "paused"),
        "why": why,
    }
