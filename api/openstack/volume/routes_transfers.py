# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transfers of volumes from project to project: os-volume-transfer, and volume-transfers from 3.55 on."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import volume_transfers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.transfer_records import (
    Transfer,
    one_transfer,
    transfers_of,
)

from ...web import validation
from ...web.bodies import Answer, Body
from ...web.ledger import writing_ledger
from ...web.services import reads
from ...work.calls import calling
from . import listing, schemas, views
from .blueprint import cinder_writes, in_cinders_words, since, speaks, volume, whose

BRIEF: dict[str, object] = {"shown": views.brief_transfer}
FULL: dict[str, object] = {"shown": views.transfer}


def list_transfers(connection: Connection, shown: listing.View[Transfer]) -> Answer:
    rows = transfers_of(connection, listing.listed_project())
    return listing.page("transfers", rows, views.transfer, shown), 200


def show_transfer(connection: Connection, transfer_id: str) -> Answer:
    return {"transfer": views.transfer(one_transfer(connection, transfer_id, whose()))}, 200


def create_transfer() -> Answer:
    request_body = validation.body(schemas.TRANSFER_355 if speaks(55) else schemas.TRANSFER)["transfer"]
    name = (request_body.get("name") or "").strip() or None
    no_snapshots = schemas.truth(request_body.get("no_snapshots"))
    with writing_ledger() as connection, in_cinders_words():
        row, key = volume_transfers.offer(
            calling(connection), request_body["volume_id"], name=name, no_snapshots=no_snapshots, project_id=whose()
        )
    body: Body = {**views.transfer(row), "auth_key": key}
    return {"transfer": body}, 202


def accept_transfer(transfer_id: str) -> Answer:
    key = str(validation.body(schemas.ACCEPT)["accept"]["auth_key"])
    with writing_ledger() as connection, in_cinders_words():
        row = volume_transfers.accept(calling(connection), transfer_id, key)
    return {"transfer": views.brief_transfer(row)}, 202


def delete_transfer(connection: Connection, transfer_id: str) -> Answer:
    volume_transfers.withdraw(calling(connection), transfer_id, project_id=whose())
    return "", 202


for _path, _layers in (("os-volume-transfer", ()), ("volume-transfers", (since(55),))):
    _all, _transfer_path = f"/<project>/{_path}", f"/<project>/{_path}/<transfer_id>"
    _end = _path.replace("-", "_")
    volume.get(_all, "volume:read", *_layers, reads, endpoint=f"list_{_end}", defaults=BRIEF)(list_transfers)
    volume.get(f"{_all}/detail", "volume:read", *_layers, reads, endpoint=f"detail_{_end}", defaults=FULL)(
        list_transfers
    )
    volume.get(_transfer_path, "volume:read", *_layers, reads, endpoint=f"show_{_end}")(show_transfer)
    volume.post(_all, "volume:write", *_layers, endpoint=f"create_{_end}")(create_transfer)
    volume.post(f"{_transfer_path}/accept", "volume:write", *_layers, endpoint=f"accept_{_end}")(accept_transfer)
    volume.delete(_transfer_path, "volume:write", *_layers, cinder_writes, endpoint=f"delete_{_end}")(delete_transfer)
