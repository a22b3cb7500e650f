# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of instances' disks on second hosts: listed, asked for and ended. Jobs of the kind `replicate` take them."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import server_replicas
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.server_listing import instance_row
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance

from ..web.bodies import Record
from ..web.context import current
from ..web.errors import as_bad_request
from ..web.host_names import host_name_mask
from ..web.services import reads, writes
from ..work.calls import calling
from . import schemas_backups, views
from .operations import Operation


def _server(connection: Connection, uuid: str) -> Instance:
    """Return a server that the caller reaches. Raises NotFoundError."""
    (server,) = instances_by(connection, uuids=[instance_row(connection, uuid, current().reach).uuid])
    return server


def _listed(connection: Connection) -> ResponseReturnValue:
    mask = host_name_mask(connection, current().reach)
    return {"replicas": [views.replica(each, mask) for each in server_replicas.listed(calling(connection))]}


@Operation(
    "GET",
    "/replicas",
    server_replicas.READ,
    "The copies of instances' disks on second hosts",
    {200: "Replicas"},
    description="A job of the kind `replicate` takes one. When its host is dead, an instance runs from the newest one.",
    ledger=reads,
)
def list_replicas(connection: Connection) -> ResponseReturnValue:
    return _listed(connection)


@Operation(
    "PUT",
    "/instances/{uuid}/replica",
    server_replicas.WRITE,
    "Have an instance's disks copied to a second host",
    {200: "Replicas"},
    description="To `host`, or one that the scheduler chooses, where room for them is claimed.",
    body=schemas_backups.NEW_REPLICA,
    conflicts=True,
    ledger=writes,
)
def have_replica(connection: Connection, uuid: str, body: Record) -> ResponseReturnValue:
    server = _server(connection, uuid)
    with as_bad_request():
        server_replicas.ensure(calling(connection), server, body.get("every", "hourly"), body.get("host"))
    return _listed(connection)


@Operation(
    "DELETE",
    "/instances/{uuid}/replica",
    server_replicas.WRITE,
    "Have an instance's disks copied no more",
    {200: "Replicas"},
    description="The copy is removed by the next run of what is due.",
    ledger=writes,
)
def delete_replica(connection: Connection, uuid: str) -> ResponseReturnValue:
    server = _server(connection, uuid)
    with as_bad_request():
        server_replicas.remove(calling(connection), server)
    return _listed(connection)
