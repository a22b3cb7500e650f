# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cloud as a whole: hosts, networks, quotas, and a bit of everything on the first page."""

from __future__ import annotations

import typing as t

from flask import render_template, request, url_for

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import behind
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import healing, reserve, server_backups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import instance_pages, status
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.backup_ages import late
from ansible_collections.novalite.cloud.plugins.module_utils._model.listed_hosts import Host
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import natural
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import HOST

from ..web import policy
from ..web.context import current
from ..web.host_names import veil_faults
from ..web.services import reads
from ..work.calls import calling
from . import attention, graphs, rendering
from .noun_forms import links
from .routes_jobs import recent
from .session import pages

RECENT = 5  # jobs and runs on the first page


@pages.get("/", "cloud:overview", reads)
def overview(connection: Connection) -> str:
    caller = current()
    refusal = behind.refusal(connection)
    hosts = by_name(status.hosts(connection)) if policy.may(caller, "compute:hypervisors:read") else []
    troubled = status.troubled(connection, caller.reach)
    veil_faults(connection, caller.reach, troubled)
    everywhere = "true" if caller.reach is None else None
    errors = url_for("pages.list_instances", status="error", all_projects=everywhere)
    return render_template(
        "pages/overview.html",
        behind=refusal and (str(refusal) if policy.allowed("cloud:overview:behind") else refusal.for_tenants),
        attention=[
            *(attention.of_healing(healing.status(connection)) if policy.allowed("cloud:ha:read") else ()),
            *attention.of_servers(troubled, errors),
            *attention.of_hosts(hosts),
            *(attention.of_backups(late(connection, caller.reach)) if policy.allowed(server_backups.READ) else ()),
        ],
        hosts=hosts,
        everywhere=everywhere,
        states=status.instance_states(connection, caller.reach),
        quotas=status.usage(connection, caller.project),
        jobs=recent(connection, caller.project, RECENT),
    )


@pages.get("/hosts", "compute:hypervisors:read", reads)
def list_hosts(connection: Connection) -> str:
    hosts = by_name(status.hosts(connection))
    order = request.args.get("sort", "name")
    if order == "fill":
        hosts.sort(key=rendering.fill, reverse=True)
    armed = not policy.allowed("cloud:ha:read") or healing.armed_everywhere(connection)
    return render_template("pages/hosts.html", hosts=hosts, order=order, armed=armed)


def by_name(hosts: t.Iterable[Host]) -> list[Host]:
    """Sort hosts: hv2 before hv10."""
    return sorted(hosts, key=lambda host: natural(host["name"]))


@pages.get("/hosts/<name>", "compute:hypervisors:read", reads)
def show_host(connection: Connection, name: str) -> str:
    host = status.host(connection, name)
    measured = policy.allowed("compute:hypervisors:samples")
    return render_template(
        "pages/host.html",
        host=host,
        use=graphs.use_of(HOST, name, graphs.limits_of_host(host)) if measured else None,
        watched=healing.of_host(connection, name) if policy.allowed("cloud:ha:read") else None,
        losses=reserve.losses(connection, name) if policy.allowed("compute:hypervisors:details") else [],
        instances=instance_pages.find(
            connection, instance_pages.Choice(current().reach, host=name, sort="name", rising=True)
        ).instances,
    )


@pages.get("/networks", "network:read", reads)
def list_networks(connection: Connection) -> str:
    networks = status.networks(connection, current().reach)
    return render_template("pages/networks.html", networks=networks, links=links(calling(connection), "networks"))


@pages.get("/networks/<uuid>", "network:read", reads)
def show_network(connection: Connection, uuid: str) -> str:
    cells = status.address_map(connection, uuid, current().reach)
    names = {owner["address"]: owner for owner in cells["owners"]}
    ways = links(calling(connection), "networks", uuid, cells)
    return render_template("pages/network.html", network=cells, names=names, links=ways)


@pages.get("/quotas", "compute:quotas:read", reads)
def show_quotas(connection: Connection) -> str:
    return render_template("pages/quotas.html", quotas=status.usage(connection, current().project))
