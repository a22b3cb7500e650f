# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers: made, listed, shown, changed, deleted."""

from __future__ import annotations

import contextlib
import typing as t

from flask import Response

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import new_servers, server_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.pool_claims import AddressInUseError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ....web import policy
from ....web.bodies import Answer, Body, Record
from ....web.context import Caller, current, signature
from ....web.errors import STATUS, BadRequestError, in_words
from ....web.host_names import veil_faults
from ....web.listing import body
from ....web.schemas import Schema
from ....web.services import reads, takes, writes
from ....work.servers import delete, tell
from ..blueprint import CLEAN, compute, known, microversion
from . import queries as query_servers
from . import requests as server_requests
from . import schemas as schemas_servers
from . import views as views_servers
from .requests import ServerRequest
from .views import RenderContext, render_context


@contextlib.contextmanager
def refusals_as_bad_requests() -> t.Iterator[None]:
    """Turn errors about what a body names, or about what the ledger finds wrong with it, into bad requests."""
    try:
        yield
    except (NotFoundError, AddressInUseError) as error:
        raise BadRequestError(str(error)) from error
    except NovaliteError as error:
        of_volumes = str(error).startswith(("Invalid volume", "Block Device Mapping"))  # as Nova answers it
        if isinstance(error, tuple(STATUS)) and not of_volumes:
            raise
        raise BadRequestError(str(error)) from error


def _creating() -> Schema:
    return schemas_servers.create(microversion())


def _server_request(request_body: Record) -> ServerRequest:
    """Read the body of a request for servers. Raises ForbiddenError for what the caller may not ask for."""
    server_request = server_requests.parse(request_body)
    if server_request.forced_host is not None:
        policy.check("compute:servers:create:forced_host")
    policy.check_hints(server_request.create_request.name, server_request.create_request.hints)
    return server_request


def _updating() -> Schema:
    return schemas_servers.update(microversion())


@compute.post("/servers", "compute:servers:create", takes(_creating, _server_request), writes)
def create_server(connection: Connection, server_request: ServerRequest) -> tuple[Body, int, dict[str, str]] | Answer:
    caller = current()
    with refusals_as_bad_requests():
        made = new_servers.create(
            connection,
            caller.project,
            server_request.create_request,
            private=policy.allowed("compute:servers:create:private"),
            **signature(),
        )
    tell(connection, "launch", made.uuids, caller.project)
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
    caller = current()
    row = server_listing.instance_row(connection, server_id, caller.reach)
    return {"server": shown(connection, row, caller)}, 200


def shown(
    connection: Connection,
    row: InstanceRow,
    caller: Caller,
    view: t.Callable[[Record, RenderContext], Body] = views_servers.detail,
) -> Body:
    """The server as it is now."""
    context = render_context()
    (record,) = server_listing.load(connection, [row.id], context.shows_user_data)
    veil_faults(connection, caller.reach, [record])
    shown_body = view(record, context)
    if microversion() >= (2, 71):
        shown_body["server_groups"] = server_changes.groups_of(connection, row.uuid)
    return shown_body


@compute.put("/servers/<server_id>", "compute:servers:update", takes(_updating, server_requests.column_values), writes)
def update_server(connection: Connection, values: Record, server_id: str) -> Answer:
    caller = current()
    row = server_listing.instance_row(connection, server_id, caller.reach)
    if values:
        with refusals_as_bad_requests():
            server_changes.change(connection, row, values)
    return {"server": shown(connection, row, caller, views_servers.changed)}, 200


@compute.delete("/servers/<server_id>", "compute:servers:delete", writes)
def delete_server(connection: Connection, server_id: str) -> Response:
    delete(connection, server_listing.instance_row(connection, server_id, current().reach))
    return Response(status=204)
