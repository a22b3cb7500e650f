# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes and their snapshots: list, show, make, change, delete; what is said about them in metadata."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import volumes as volume_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import volume_listing, volume_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Snapshot,
    Stored,
    Volume,
    snapshots_by,
    volumes_by,
)

from ...web import validation
from ...web.bodies import Answer, Record
from ...web.context import current
from ...web.errors import BadRequestError, in_words
from ...web.ledger import reading_ledger, writing_ledger
from ...web.maps import Change, Map, Texts
from ...web.schemas import ACTION, an_object
from ...web.services import reads, takes
from ...work.calls import calling
from . import listing, schemas, views
from .blueprint import cinder_writes, in_cinders_words, speaks, volume, whose

VOLUMES: listing.Kind[Volume] = listing.Kind(
    "volumes", volume_listing.VOLUMES, lambda connection, ids: volumes_by(connection, ids=ids)
)
SNAPSHOTS: listing.Kind[Snapshot] = listing.Kind(
    "snapshots", volume_listing.SNAPSHOTS, lambda connection, ids: snapshots_by(connection, ids=ids)
)


# "/volumes/" is a volume without an id, which there is none of
@volume.get("/<project>/volumes", "volume:read", strict_slashes=True, defaults={"shown": views.brief_volume})
@volume.get("/<project>/volumes/detail", "volume:read", reads, defaults={"shown": views.volume})
def list_volumes(connection: Connection, shown: listing.View) -> Answer:
    return listing.page_of(connection, VOLUMES, shown), 200


@volume.get("/<project>/volumes/summary", "volume:read", reads)
def summarize(connection: Connection) -> Answer:
    rows = volumes_by(connection, project_id=listing.listed_project())
    body: Record = {"total_size": sum(row.size_gb for row in rows), "total_count": len(rows)}
    if speaks(36):
        values: dict[str, set[str]] = {}
        for key, value in (pair for row in rows for pair in row.metadata.items()):
            values.setdefault(key, set()).add(value)
        body["metadata"] = {key: sorted(values) for key, values in values.items()}
    return {"volume-summary": body}, 200


@volume.get("/<project>/volumes/<volume_id>", "volume:read", reads)
def show_volume(connection: Connection, volume_id: str) -> Answer:
    return {"volume": views.volume(volume_views.one_volume(connection, volume_id, whose()))}, 200


@volume.post("/<project>/volumes", "volume:write", takes(schemas.VOLUME), cinder_writes, strict_slashes=True)
def create_volume(connection: Connection, body: Record) -> Answer:
    return {"volume": views.new_volume(create(connection, body))}, 202


def create(connection: Connection, body: Record) -> Volume:
    """Record the volume that `body` asks for, and have it made."""
    if schemas.truth(body.get("multiattach")):
        raise BadRequestError("Invalid input received: a volume is attached to one server at a time here.")
    return volume_operations.create(calling(connection), _volume_values(connection, body))


def _volume_values(connection: Connection, body: Record) -> Record:
    image = None
    if body.get("imageRef"):
        unknown = BadRequestError("Invalid image identifier or unable to access requested image.")
        with in_words({NotFoundError: lambda _message: unknown}):
            image = lookups.image_by_id(connection, body["imageRef"], current().project)
    size = body.get("size")
    return {
        "size_gb": None if size is None else int(size),
        "name": body.get("name") or body.get("display_name"),
        "description": body.get("description") or body.get("display_description"),
        "type": body.get("volume_type") or None,
        "image": image,
        "snapshot_id": body.get("snapshot_id"),
        "source_volume_id": body.get("source_volid"),
        "availability_zone": body.get("availability_zone"),
        "metadata": body.get("metadata") or {},
    }


@volume.put("/<project>/volumes/<volume_id>", "volume:write", takes(schemas.VOLUME_CHANGES), cinder_writes)
def update_volume(connection: Connection, body: Record, volume_id: str) -> Answer:
    row = volume_operations.update(calling(connection), volume_id, changes(body), project_id=whose())
    return {"volume": views.new_volume(row)}, 200


def changes(body: Record) -> volume_operations.Changes:
    """Return a client's changes of a volume or a snapshot, as the ledger takes them."""
    values = {key: body[name] for key in ("name", "description") for name in (key, f"display_{key}") if name in body}
    metadata = {} if body.get("metadata") is None else {"metadata": body["metadata"]}
    return t.cast("volume_operations.Changes", {**values, **metadata})  # as the schemas say


@volume.delete("/<project>/volumes/<volume_id>", "volume:write", cinder_writes)
def delete_volume(connection: Connection, volume_id: str) -> Answer:
    force, cascade = (schemas.truth(request.args.get(name)) for name in ("force", "cascade"))
    volume_operations.delete(calling(connection), volume_id, project_id=whose(), force=force, with_snapshots=cascade)
    return "", 202


# --- Snapshots --------------------------------------------------------------------------------------------------------


@volume.get("/<project>/snapshots", "volume:read", strict_slashes=True, defaults={"shown": views.new_snapshot})
@volume.get("/<project>/snapshots/detail", "volume:read", reads, defaults={"shown": views.snapshot})
def list_snapshots(connection: Connection, shown: listing.View) -> Answer:
    return listing.page_of(connection, SNAPSHOTS, shown), 200


@volume.get("/<project>/snapshots/<snapshot_id>", "volume:read", reads)
def show_snapshot(connection: Connection, snapshot_id: str) -> Answer:
    return {"snapshot": views.snapshot(volume_views.one_snapshot(connection, snapshot_id, whose()))}, 200


@volume.post("/<project>/snapshots", "volume:write", takes(schemas.SNAPSHOT), cinder_writes, strict_slashes=True)
def create_snapshot(connection: Connection, body: Record) -> Answer:
    return {"snapshot": views.new_snapshot(record_snapshot(connection, body))}, 202


def record_snapshot(connection: Connection, body: Record) -> Snapshot:
    """Record the snapshot that `body` asks for, and have it taken."""
    snapshot_values = {
        **changes(body),
        "volume_id": body["volume_id"] or "",
        "force": schemas.truth(body.get("force")) or speaks(66),
    }
    return volume_operations.create_snapshot(calling(connection), snapshot_values)


@volume.put("/<project>/snapshots/<snapshot_id>", "volume:write", takes(schemas.SNAPSHOT_CHANGES), cinder_writes)
def update_snapshot(connection: Connection, body: Record, snapshot_id: str) -> Answer:
    row = volume_operations.update_snapshot(calling(connection), snapshot_id, changes(body), project_id=whose())
    return {"snapshot": views.new_snapshot(row)}, 200


@volume.delete("/<project>/snapshots/<snapshot_id>", "volume:write", cinder_writes)
def delete_snapshot(connection: Connection, snapshot_id: str) -> Answer:
    volume_operations.delete_snapshot(calling(connection), snapshot_id, project_id=whose())
    return "", 202


SNAPSHOT_STATUS = an_object({"status": {"enum": list(schemas.SNAPSHOT_STATES)}}, ["status"], more=True)


@volume.post("/<project>/snapshots/<snapshot_id>/action", "volume:write")
def act_on_snapshot(snapshot_id: str) -> Answer:
    ((name, body),) = validation.body(ACTION).items()
    with reading_ledger() as connection:
        volume_views.one_snapshot(connection, snapshot_id, whose())
    if name not in ("os-force_delete", "os-reset_status", "os-update_snapshot_status"):
        raise BadRequestError(f"There is no such action: {name[:60]}")
    if name != "os-force_delete":
        validation.check(body, SNAPSHOT_STATUS, f"value of {name}")
    with writing_ledger() as connection, in_cinders_words():
        if name == "os-force_delete":
            volume_operations.delete_snapshot(calling(connection), snapshot_id, project_id=whose(), force=True)
        else:
            volume_operations.reset_snapshot_status(
                calling(connection), snapshot_id, body["status"], project_id=whose()
            )
    return "", 202


# --- Metadata ---------------------------------------------------------------------------------------------------------


def _put_metadata(kind: str, find: t.Callable[..., Stored], update: t.Callable[..., Stored]) -> None:
    def write(connection: Connection, change: Change, before: Texts, number: str) -> Texts:
        return update(calling(connection), number, {"metadata": change.of(before)}, project_id=whose()).metadata

    Map(
        name=f"{kind}_metadata",
        path=f"/<project>/{kind}s/<number>/metadata",
        reads="volume:read",
        writes="volume:write",
        word="metadata",
        schema={**schemas.METADATA, "type": "object"},
        find=lambda connection, number: find(connection, number, whose()).metadata,
        write=write,
        words=in_cinders_words,
        missing="Metadata item {key} was not found.",
        deleted=200,
        more=True,
    ).put_into(volume)


_put_metadata("volume", volume_views.one_volume, volume_operations.update)
_put_metadata("snapshot", volume_views.one_snapshot, volume_operations.update_snapshot)
