# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers: made, listed, shown, changed, deleted."""

from __future__ import annotations

import typing as t

from flask import Response

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ....web.bodies import Answer, Body, Record
from ....web.context import current
from ....web.errors import BadRequestError, in_words
from ....web.host_names import veil_faults
from ....web.listing import body
from ....web.schemas import Schema
from ....web.services import reads, takes, writes
from ....work.calls import calling
from ....work.refusals import refusals_as_bad_requests
from ..blueprint import CLEAN, compute, known, microversion
from . import queries as query_servers
from . import requests as server_requests
from . import schemas as schemas_servers
from . import views as views_servers
from .requests import ServerRequest
from .views import RenderContext, render_context


def _creating() -> Schema:
    return schemas_servers.create(microversion())


def _updating() -> Schema:
    return schemas_servers.update(microversion())


@compute.post("/servers", "compute:servers:create", takes(_creating, server_requests.parse), writes)
def create_server(connection: Connection, server_request: ServerRequest) -> tuple[Body, int, dict[str, str]] | Answer:
    with refusals_as_bad_requests():
        made = servers.create(calling(connection), server_request.create_request)
    if server_request.reservation_only:
        return {"reservation_id": made.reservation_id}, 202
    disk_config = server_request.create_request.labels.disk_config
    context = render_context()
    server = views_servers.created(
        made.uuids[0], server_request.group_names, server_request.password, context, disk_config
    )
    return server, 202, {"Location": context.href("servers", made.uuids[0])}


QUERY = known(CLEAN, query_servers.KNOWN)


@compute.get("/servers", "compute:servers:index", QUERY, reads)
def list_servers(connection: Connection) -> Answer:
    return _list(connection, views_servers.brief)


@compute.get("/servers/detail", "compute:servers:detail", QUERY, reads)
def list_servers_in_detail(connection: Connection) -> Answer:
    return _list(connection, views_servers.detail)


def _list(connection: Connection, view: t.Callable[[Record, RenderContext], Body]) -> Answer:
    caller = current()
    query = query_servers.parse(caller, microversion())
    context = render_context()
    user_data = view is views_servers.detail and context.shows_user_data
    with in_words({NotFoundError: BadRequestError}):  # the marker
        ids = server_listing.find(connection, query)
    records = server_listing.load(connection, ids, user_data)
    veil_faults(connection, caller.reach, records)
    more = query.limit and len(ids) == query.limit and records
    return body("servers", [view(record, context) for record in records], records[-1]["uuid"] if more else None), 200


@compute.get("/servers/<server_id>", "compute:servers:show", reads)
def show_server(connection: Connection, server_id: str) -> Answer:
    return {"server": shown(connection, server_listing.instance_row(connection, server_id, current().reach))}, 200


def shown(
    connection: Connection, row: InstanceRow, view: t.Callable[[Record, RenderContext], Body] = views_servers.detail
) -> Body:
    """The server as it is now."""
    context = render_context()
    (record,) = server_listing.load(connection, [row.id], context.shows_user_data)
    veil_faults(connection, current().reach, [record])
    shown_body = view(record, context)
    if microversion() >= (2, 71):
        shown_body["server_groups"] = server_listing.groups_of(connection, row.uuid)
    return shown_body


@compute.put("/servers/<server_id>", "compute:servers:update", takes(_updating, server_requests.column_values), writes)
def update_server(connection: Connection, values: Record, server_id: str) -> Answer:
    row = server_listing.instance_row(connection, server_id, current().reach)
    if values:
        with refusals_as_bad_requests():
            servers.update(calling(connection), row, values)
    return {"server": shown(connection, row, views_servers.changed)}, 200


@compute.delete("/servers/<server_id>", "compute:servers:delete", writes)
def delete_server(connection: Connection, server_id: str) -> Response:
    servers.delete(calling(connection), server_listing.instance_row(connection, server_id, current().reach))
    return Response(status=204)
