# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What there is to see of a server beside itself: addresses, groups, interfaces, what was done to it."""

from __future__ import annotations

import time

from flask import Response, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import server_history, server_listing

from ....web.bodies import Answer, Body, Record
from ....web.context import current
from ....web.errors import BadRequestError, in_words
from ....web.host_names import host_name_mask
from ....web.ledger import reading_ledger
from ....web.listing import href
from ..blueprint import compute
from ..microversions import microversion
from ..paging import NOVA
from . import queries as query_servers
from . import views as views_servers
from . import views_parts

ACTIVE = "active"


def _record(server_id: str, deleted: bool = False) -> Record:
    with reading_ledger() as connection:
        row = server_listing.one(connection, server_id, current().reach, deleted=deleted)
        return server_listing.load(connection, [row.id])[0]


@compute.get("/servers/<server_id>/ips", "compute:server-parts:read")
def list_ips(server_id: str) -> Answer:
    return {"addresses": views_servers.addresses(_record(server_id)["nics"], extended=False)}, 200


@compute.get("/servers/<server_id>/ips/<network>", "compute:server-parts:read")
def show_ips(server_id: str, network: str) -> Answer:
    addresses = views_servers.addresses(_record(server_id)["nics"], extended=False)
    if network not in addresses:
        raise NotFoundError("Instance is not a member of specified network")
    return {network: addresses[network]}, 200


@compute.get("/servers/<server_id>/os-security-groups", "compute:server-parts:read")
def list_groups_of_server(server_id: str) -> Answer:
    with reading_ledger() as connection:
        row = server_listing.one(connection, server_id, current().reach)
        groups = server_history.groups_with_rules(connection, row.id)
    return {"security_groups": [views_parts.security_group(group) for group in groups]}, 200


# --- what was done


@compute.get("/servers/<server_id>/os-instance-actions", "compute:server-parts:read")
def list_actions(server_id: str) -> Answer:
    version = microversion()
    paged = version >= (2, 58)
    limit = NOVA.limit() if paged else None
    since_, before = query_servers.moment("changes-since"), query_servers.moment("changes-before")
    with reading_ledger() as connection:
        # the record of a server stays when it goes
        row = server_listing.one(connection, server_id, current().reach, deleted=version >= (2, 21))
        with in_words({NotFoundError: BadRequestError}):  # the marker
            actions = server_history.actions_of(
                connection,
                row.uuid,
                limit=limit,
                marker=request.args.get("marker") if paged else None,
                since=since_ if paged else None,
                before=before if version >= (2, 66) else None,
            )
    body: Body = {"instanceActions": [views_parts.action(action, row) for action in actions]}
    if limit and len(actions) == limit:
        body["links"] = [{"rel": "next", "href": href(actions[-1]["request_id"])}]
    return body, 200


@compute.get("/servers/<server_id>/os-instance-actions/<asked_id>", "compute:server-parts:read")
def show_action(server_id: str, asked_id: str) -> Answer:
    version, caller = microversion(), current()
    with reading_ledger() as connection:
        row = server_listing.one(connection, server_id, caller.reach, deleted=version >= (2, 21))
        action = server_history.action_of(connection, row.uuid, asked_id)
        hidden = host_name_mask(connection, caller.reach)
    body = views_parts.action(action, row)
    if caller.is_admin or version >= (2, 51):
        events = [{**event, "message": hidden.over(event["message"])} for event in action["events"]]
        body["events"] = [views_parts.event(event, row, caller.is_admin) for event in events]
    return {"instanceAction": body}, 200


# --- the rest


@compute.get("/servers/<server_id>/diagnostics", "compute:server-diagnostics")
def show_diagnostics(server_id: str) -> Answer:
    record = _record(server_id)
    if record["vm_state"] != ACTIVE:
        raise ConflictError(
            f"Cannot 'get_diagnostics' instance {server_id} while it is in vm_state {record['vm_state']}"
        )
    return views_parts.diagnostics(record, int(time.time())), 200


@compute.get("/servers/<server_id>/os-server-password", "compute:server-parts:read")
def show_password(server_id: str) -> Answer:
    """What the guest encrypted and left here: none does."""
    _record(server_id)
    return {"password": ""}, 200


@compute.delete("/servers/<server_id>/os-server-password", "compute:server-parts:write")
def clear_password(server_id: str) -> Response:
    _record(server_id)
    return Response(status=204)
