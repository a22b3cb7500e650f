# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans of launches: what a request for servers would come to, found out by doing it in a transaction that is rolled
back. It runs the operation that records servers and the steps that place them, so that it cannot say otherwise."""

from __future__ import annotations

import typing as t

from flask import current_app

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import host_states, status
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.fixed_ip import fixed_ip
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.scheduler import scheduler
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_requests import CreateRequest

from ..v1 import views
from ..web import policy
from ..web.context import current
from ..web.host_names import host_name_mask
from ..web.ledger import Ledger
from .calls import calling


class LaunchPlan(t.NamedTuple):
    """Outcome of a launch, as its caller may see it. `outcome` is as /v1 answers a plan; `addresses` are those
    of each server's interfaces by its name; `quotas` are the project's with the servers counted in."""

    outcome: JsonObject
    addresses: dict[str, list[str]]
    quotas: list[status.Usage]


def plan(request: CreateRequest) -> LaunchPlan:
    """Find out what servers.create() of this request would come to. Raises as it does."""
    ledger: Ledger = current_app.extensions["ledger"]
    caller = current()
    with transaction(ledger.engine, check_mode=True) as connection:
        made = servers.create(calling(connection), request)
        to_build = instances_by(connection, uuids=made.uuids)
        choice = {"all_or_nothing": True, "service_down_time": host_states.EVER}
        placed = scheduler(connection, {"instances": to_build, **choice})
        addressed = fixed_ip(connection, {"instances": placed["instances"]})
        reasons = policy.may(caller, "compute:hypervisors:read")
        outcome = views.plan({"existing": []}, placed, reasons)
        return LaunchPlan(
            host_name_mask(connection, caller.reach).over(outcome),
            {server["name"]: _addresses(server) for server in addressed["instances"]},
            status.usage(connection, caller.project),
        )


def _addresses(server: JsonObject) -> list[str]:
    return [address for nic in server["nics"] for address in (nic["ip"], nic.get("ipv6")) if address]
