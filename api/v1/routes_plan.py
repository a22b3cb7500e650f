# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts, what they have left, why an instance is where it is, and what a launch would do.

The transaction that finds out the last is rolled back, as in a playbook's check mode. It runs what a launch's tasks
run, the operations `server` and `scheduler` themselves, so that it cannot say otherwise.
"""

from __future__ import annotations

from flask import current_app
from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import reserve, servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import host_states, status
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.scheduler import scheduler
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.server import server

from ..web import policy
from ..web.context import current
from ..web.errors import BadRequestError
from ..web.host_names import host_name_mask
from ..web.ledger import Ledger
from ..web.services import reads
from ..work.calls import calling
from . import schemas, views
from .operations import Operation


@Operation(
    "GET", "/hosts", "compute:hypervisors:read", "Compute hosts and their capacity", {200: "Hosts"}, ledger=reads
)
def list_hosts(connection: Connection) -> ResponseReturnValue:
    hosts = [views.host(host, policy.allowed("compute:hypervisors:details")) for host in status.hosts(connection)]
    return host_name_mask(connection, current().reach).over({"hosts": hosts})


@Operation(
    "GET", "/hosts/{name}", "compute:hypervisors:read", "A compute host and its capacity", {200: "Host"}, ledger=reads
)
def show_host(connection: Connection, name: str) -> ResponseReturnValue:
    hidden = host_name_mask(connection, current().reach)
    host = status.host(connection, hidden.lift(name))
    return hidden.over({"host": views.host(host, policy.allowed("compute:hypervisors:details"))})


@Operation(
    "GET",
    "/reserve",
    "compute:hypervisors:details",
    "Whether the other hosts have room for the instances of a host that dies",
    {200: "Reserve"},
    ledger=reads,
)
def show_reserve(connection: Connection) -> ResponseReturnValue:
    return {"reserve": reserve.losses(connection)}


@Operation(
    "GET",
    "/instances/{uuid}/placement",
    "compute:servers:placement",
    "Why an instance is where it is",
    {200: "Placement"},
    ledger=reads,
)
def show_placement(connection: Connection, uuid: str) -> ResponseReturnValue:
    placement = status.placement(connection, uuid, current().reach)
    return host_name_mask(connection, current().reach).over({"placement": views.placement(placement)})


MAX_SERVERS = 200  # in one plan: others wait for the ledger meanwhile


@Operation(
    "POST",
    "/plan",
    "compute:servers:plan",
    "What a launch would do, without doing it",
    {200: "Plan"},
    description="Answers from what hosts last reported. A job of the kind `plan` asks them anew.",
    body=schemas.PLAN_REQUEST,
    conflicts=True,
)
def plan(body: JsonObject) -> ResponseReturnValue:
    caller = current()
    assert caller.project  # or the token has none, and may not
    ledger: Ledger = current_app.extensions["ledger"]
    server_count = sum(server.get("count", 1) for server in body["servers"])
    if server_count > MAX_SERVERS:
        raise BadRequestError(f"{server_count} servers in one plan: ask for at most {MAX_SERVERS}")
    with transaction(ledger.engine, check_mode=True) as connection:
        try:
            servers.check_choices(calling(connection), body["servers"])
            requested_servers = server(connection, {"project": caller.project_name, "servers": body["servers"]})
            placed = scheduler(
                connection,
                {
                    "instances": requested_servers["to_build"],
                    "choice": body.get("scheduler"),
                    "all_or_nothing": body.get("all_or_nothing", True),
                    "service_down_time": host_states.EVER,
                },
            )
        except NovaliteError as error:
            if type(error) is NovaliteError:
                raise BadRequestError(str(error)) from None
            raise
        shown = views.plan(requested_servers, placed, reasons=policy.may(caller, "compute:hypervisors:read"))
        return host_name_mask(connection, caller.reach).over({"plan": shown})
