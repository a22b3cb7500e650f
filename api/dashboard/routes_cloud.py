# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cloud as a whole: hosts, networks, quotas, and a bit of everything on the first page."""

from __future__ import annotations

from flask import render_template

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import behind
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import job_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import status

from ..web import policy
from ..web.context import current
from ..web.services import reads
from .routes_jobs import masked
from .session import pages

RECENT = 5  # jobs on the first page


@pages.get("/", "cloud:overview", reads)
def overview(connection: Connection) -> str:
    caller = current()
    refusal = behind.refusal(connection)
    return render_template(
        "pages/overview.html",
        behind=refusal and (str(refusal) if policy.allowed("cloud:overview:behind") else refusal.for_tenants),
        hosts=status.hosts(connection) if policy.may(caller, "compute:hypervisors:read") else [],
        states=status.instance_states(connection, caller.project),
        quotas=status.usage(connection, caller.project),
        jobs=masked(connection, job_rows.list_jobs(connection, project_id=caller.project, limit=RECENT)),
    )


@pages.get("/hosts", "compute:hypervisors:read", reads)
def list_hosts(connection: Connection) -> str:
    return render_template("pages/hosts.html", hosts=status.hosts(connection))


@pages.get("/hosts/<name>", "compute:hypervisors:read", reads)
def show_host(connection: Connection, name: str) -> str:
    return render_template(
        "pages/host.html",
        host=status.host(connection, name),
        instances=status.instance_page(connection, current().reach, host=name)[0],
    )


@pages.get("/networks", "network:read", reads)
def list_networks(connection: Connection) -> str:
    return render_template("pages/networks.html", networks=status.networks(connection, current().reach))


@pages.get("/networks/<uuid>", "network:read", reads)
def show_network(connection: Connection, uuid: str) -> str:
    cells = status.address_map(connection, uuid, current().reach)
    names = {owner["address"]: owner for owner in cells["owners"]}
    return render_template("pages/network.html", network=cells, names=names)


@pages.get("/quotas", "compute:quotas:read", reads)
def show_quotas(connection: Connection) -> str:
    return render_template("pages/quotas.html", quotas=status.usage(connection, current().project))
