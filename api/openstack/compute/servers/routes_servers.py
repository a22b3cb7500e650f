# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers: made, listed, shown, changed, deleted."""

from __future__ import annotations

import contextlib
import typing as t

from flask import Response, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import (
    new_servers,
    recorded,
    server_changes,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.pool_claims import AddressInUseError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import server_listing

from ....jobs.queue import enqueue
from ....web import policy, validation
from ....web.context import Caller, current, request_id
from ....web.errors import STATUS, BadRequestError
from ....web.host_names import veil_faults
from ....web.ledger import reading_ledger, writing_ledger
from ..blueprint import Answer, compute
from ..microversions import microversion
from . import queries as query_servers
from . import requests as server_requests
from . import schemas as schemas_servers
from . import views as views_servers
from .views import Lens


def lens(caller: Caller) -> Lens:
    return Lens(microversion(), caller.is_admin, request.url_root)


@contextlib.contextmanager
def refusals_as_bad_requests() -> t.Iterator[None]:
    """What a body names and there is not, and what the ledger finds wrong with it, is a bad request."""
    try:
        yield
    except (NotFoundError, AddressInUseError) as error:
        raise BadRequestError(str(error)) from error
    except NovaliteError as error:
        of_volumes = str(error).startswith(("Invalid volume", "Block Device Mapping"))  # as Nova answers it
        if isinstance(error, tuple(STATUS)) and not of_volumes:
            raise
        raise BadRequestError(str(error)) from error


@compute.post("/servers")
@policy.allows("compute:servers:create")
def create_server() -> tuple[t.Any, int, dict[str, str]] | Answer:
    caller = current()
    asked = server_requests.parse(validation.body(schemas_servers.create(microversion())))
    if asked.forced_host is not None:
        policy.check("compute:servers:create:forced_host")
    with writing_ledger() as connection:
        with refusals_as_bad_requests():
            made = new_servers.create(
                connection,
                caller.project,
                asked.wanted,
                request_id=request_id(),
                user_id=caller.user_id,
                private=caller.is_admin,
            )
        enqueue(
            connection,
            "launch",
            instances=made.uuids,
            project_id=caller.project,
            user_id=caller.user_id,
            request_id=request_id(),
        )
    if asked.reservation_only:
        return {"reservation_id": made.reservation_id}, 202
    disk_config = asked.wanted.shown[2]
    body = views_servers.created(made.uuids[0], asked.group_names, asked.password, lens(caller), disk_config)
    return body, 202, {"Location": body["server"]["links"][0]["href"]}


@compute.get("/servers")
@policy.allows("compute:servers:index")
def list_servers() -> Answer:
    return _list(views_servers.brief)


@compute.get("/servers/detail")
@policy.allows("compute:servers:detail")
def list_servers_in_detail() -> Answer:
    return _list(views_servers.detail)


def _list(view: t.Callable[[views_servers.Record, Lens], views_servers.Body]) -> Answer:
    caller = current()
    query = query_servers.parse(caller, microversion())
    with reading_ledger() as connection:
        try:
            ids = server_listing.find(connection, query)
        except NotFoundError as error:
            raise BadRequestError(str(error)) from error  # the marker
        records = server_listing.load(connection, ids)
        veil_faults(connection, caller.reach, records)
    looking = lens(caller)
    body: dict[str, t.Any] = {"servers": [view(record, looking) for record in records]}
    if query.limit and len(ids) == query.limit and records:
        body["servers_links"] = query_servers.next_link(records[-1]["uuid"])
    return body, 200


@compute.get("/servers/<server_id>")
@policy.allows("compute:servers:show")
def show_server(server_id: str) -> Answer:
    caller = current()
    with reading_ledger() as connection:
        row = server_listing.one(connection, server_id, caller.reach)
        return {"server": shown(connection, row, caller)}, 200


def shown(
    connection: t.Any, row: t.Any, caller: Caller, view: t.Callable[..., dict[str, t.Any]] = views_servers.detail
) -> dict[str, t.Any]:
    """The server as it is now."""
    (record,) = server_listing.load(connection, [row.id])
    veil_faults(connection, caller.reach, [record])
    body = view(record, lens(caller))
    if microversion() >= (2, 71):
        body["server_groups"] = server_changes.groups_of(connection, row.uuid)
    return body


@compute.put("/servers/<server_id>")
@policy.allows("compute:servers:update")
def update_server(server_id: str) -> Answer:
    caller = current()
    asked = validation.body(schemas_servers.update(microversion()))["server"]
    values: dict[str, t.Any] = {}
    if "name" in asked:
        values["display_name"] = server_requests.shown_name(asked["name"])
    if "description" in asked:
        values["description"] = server_requests.text(asked["description"], "description")
    if "hostname" in asked:
        values["hostname"] = asked["hostname"].lower()
    addresses = server_requests.access_addresses(asked)
    values |= {
        f"access_ip_v{version}": addresses[f"access_ip_v{version}"]
        for version in (4, 6)
        if f"accessIPv{version}" in asked
    }
    if "OS-DCF:diskConfig" in asked:
        values["disk_config"] = asked["OS-DCF:diskConfig"]
    with writing_ledger() as connection:
        row = server_listing.one(connection, server_id, caller.reach)
        if values:
            server_changes.change(connection, row, values)
        return {"server": shown(connection, row, caller, views_servers.changed)}, 200


@compute.delete("/servers/<server_id>")
@policy.allows("compute:servers:delete")
def delete_server(server_id: str) -> Response:
    caller = current()
    with writing_ledger() as connection:
        delete(connection, server_listing.one(connection, server_id, caller.reach), caller)
    return Response(status=204)


def delete(connection: t.Any, row: t.Any, caller: Caller) -> None:
    """Mark the instance as going, and have it taken away, unless that is under way."""
    server_changes.refuse_locked(row, caller.is_admin)
    if row.task_state == "deleting" and server_changes.open_job(connection, row.uuid, "terminate") is not None:
        return
    recorded.mark(
        connection,
        [{"uuid": row.uuid, "task_state": row.task_state}],
        request_id(),
        user_id=caller.user_id,
        project_id=caller.project_id,
    )
    enqueue(
        connection,
        "terminate",
        instances=[row.uuid],
        project_id=row.project_id,
        user_id=caller.user_id,
        request_id=request_id(),
    )
