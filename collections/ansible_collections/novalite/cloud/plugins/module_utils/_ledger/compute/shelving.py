# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shelving: a server gives its host's room back, and keeps its addresses, its volumes, and its disk as an image.

`shelve` shuts the guest down and makes the image, `shelveOffload` takes the instance from its host, which follows at
once (Nova's shelved_offload_time of 0), and `unshelve` launches it anew from the image. One that starts from a volume
needs none.
"""

from __future__ import annotations

import hashlib
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._model.rows import InstanceRow
from ..._plan.host_plan import Plan
from ..._rules.build_states import OFFLOADED, SHELVED, UNSHELVE, build_of
from ..._scheduling.rows import unpinned as without_host
from ..catalog import image_snapshots
from ..catalog.image_records import delete_images
from ..db import clock, tables
from ..db.tables import compute_host, image, vif
from ..instances import actions
from ..network.addresses import release_host_address
from ..placement import departures
from ..placement.claims import release_claims
from ..queries import lookups
from ..queries.catalog import image_views
from ..queries.compute.views import image_of
from ..queries.counts import is_any
from ..queries.placement.zones import in_zone
from ..queries.volumes import volume_views

SHELVE, OFFLOAD = "shelve", "shelveOffload"
FOLLOWED_BY = {SHELVE: (SHELVE, OFFLOAD)}  # what a job of this kind may be at
SHUTDOWN = 4  # Nova's power state
SUFFIX = "-shelved"  # of the image's name
MAX_NAME = 255
KEEPERS = 2


# --- effects on the records: see server_actions ---------------------------------------------------------------------


def begun_shelve(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    """Record the image that is going to be made, unless the instance starts from a volume."""
    if not volume_views.from_volumes(connection, [row.uuid]):
        name = (row.display_name or row.name)[: MAX_NAME - len(SUFFIX)].strip() + SUFFIX
        details.update(image_views.details_of(name, user_id=details.get("user_id")))
        image_snapshots.begun(connection, row, details)
    return {}


def ended_shelve(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, host_result: JsonMapping
) -> JsonObject:
    """The offload begins in the same transaction. `host_result` has `untouched` where the host failed before it came to
    the guest; otherwise that is off, and has lost nothing."""
    image_snapshots.ended(connection, row, details, error, host_result)
    if error is not None:
        return {} if host_result.get("untouched") else {"vm_state": "stopped", "power_state": SHUTDOWN}
    now, kept = clock.seconds(connection), None
    if "image_id" in details:
        try:
            kept = image_of(lookups.image_by_id(connection, details["image_id"], row.project_id))
        except NotFoundError:  # its owner deleted it while it was being made
            fault = {"code": 404, "message": f"image {details['image_id']} was deleted", "created": now}
            return {"vm_state": "stopped", "fault": fault}
    actions.start(connection, OFFLOAD, {row.uuid: {}}, None, now, project_id=row.project_id)
    return {"task_state": "shelving_offloading", "disk_image": kept}


def ended_offload(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, host_result: JsonMapping
) -> JsonObject:
    """Return what an offload changes: after an error nothing, as the instance stays shelved on its host for now."""
    return {} if error is not None else {"host": None}


def left(connection: sa.Connection, hosts: t.Mapping[str, str | None], now: int) -> None:
    """Record that these instances (UUIDs) left their `hosts`, whose room and addresses for them are free again."""
    release_claims(connection, hosts)
    departures.leave_all(connection, hosts, departures.SHELVED, now)
    query = sa.select(vif.c.instance_uuid, vif.c.network_id).where(vif.c.instance_uuid.in_(sorted(hosts)))
    for network_id, host in sorted({(row.network_id, hosts[row.instance_uuid]) for row in connection.execute(query)}):
        release_host_address(connection, network_id, host or "", now)


def begun_unshelve(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    """`details` may have `availability_zone` (None: any) and `host`. Raises ConflictError for an instance that has not
    left its host, NotFoundError for a zone or host that there is none of."""
    zone, host = details.get("availability_zone"), details.get("host")
    if (zone or host) and row.vm_state == SHELVED:
        raise ConflictError(f"Cannot 'unshelve' instance {row.uuid} to a place while it is in vm_state {SHELVED}")
    if zone is not None and not is_any(connection, in_zone(connection, zone)):
        raise NotFoundError(f"The requested availability zone is not available: {zone}")
    if host is not None and not is_any(connection, compute_host.c.name == host):
        raise NotFoundError(f"Compute host {host} could not be found.")
    return {"attempts": [], **({"availability_zone": zone} if "availability_zone" in details else {})}


def forget(connection: sa.Connection, rows: t.Iterable[InstanceRow]) -> None:
    """Delete the images of these instances, which run again, or are deleted. The file of one whose disk stands on it
    stays in the store: a host that the instance moves to needs it."""
    ids = [row.disk_image["id"] for row in rows if row.disk_image is not None]
    if ids:
        delete_images(connection, image.c.id.in_(sorted(ids)))


def keepers(connection: sa.Connection, uuids: t.Iterable[str] | None = None) -> dict[str, list[str]]:
    """{host: those of these offloaded instances (None: all) whose records it keeps}: they are on no host, and all that
    knows of them besides the ledger are two hosts of each, which their UUID chooses."""
    i = tables.instance.c
    query = sa.select(i.uuid).where(i.vm_state == OFFLOADED, i.host.is_(None), i.deleted == 0).order_by(i.id)
    if uuids is not None:
        query = query.where(i.uuid.in_(sorted(set(uuids))))
    names = list(connection.execute(sa.select(compute_host.c.name)).scalars())
    uuids_by_host: dict[str, list[str]] = {}
    for uuid in connection.execute(query).scalars():
        by_turn = sorted(names, key=lambda name: hashlib.sha256(f"{uuid} {name}".encode()).digest())
        for name in by_turn[:KEEPERS]:
            uuids_by_host.setdefault(name, []).append(uuid)
    return uuids_by_host


# --- what hosts are given, and the scheduler ------------------------------------------------------------------------


def add_snapshots(connection: sa.Connection, hosts: t.Mapping[str, Plan]) -> None:
    """Give each host's plan the images to make of its instances, and what is to be recorded of a success."""
    details = actions.open_details(connection, SHELVE, [uuid for plan in hosts.values() for uuid in plan["uuids"]])
    images = {
        uuid: shelve_details["image_id"] for uuid, shelve_details in details.items() if "image_id" in shelve_details
    }
    for plan in hosts.values():
        plan["results"] = [{"uuid": uuid} for uuid in plan["uuids"]]
        plan["snapshots"] = [{"uuid": uuid, "image_id": images[uuid]} for uuid in plan["uuids"] if uuid in images]


def placed_anew(connection: sa.Connection, instances: t.Sequence[Instance]) -> list[Instance]:
    """The same, as the scheduler takes them: one that is being unshelved goes anywhere, or to the host that was asked
    for just now, not to the one of its launch."""
    uuids = [server["uuid"] for server in instances if build_of(server["vm_state"], server["task_state"]) is UNSHELVE]
    details = actions.open_details(connection, UNSHELVE.action, uuids) if uuids else {}
    return [
        without_host(server, (details.get(server["uuid"]) or {}).get("host")) if server["uuid"] in uuids else server
        for server in instances
    ]
