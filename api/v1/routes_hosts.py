# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts, what they have left, and why an instance is where it is."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import status

from ..web.context import current
from ..web.host_names import host_name_mask
from ..web.ledger import reading_ledger
from . import views
from .operations import Operation


@Operation("GET", "/hosts", "compute:hypervisors:read", "Compute hosts and their capacity", {200: "Hosts"})
def list_hosts() -> ResponseReturnValue:
    with reading_ledger() as connection:
        hosts = [views.host(host, current().is_admin) for host in status.hosts(connection)]
        return host_name_mask(connection, current().reach).over({"hosts": hosts})


@Operation("GET", "/hosts/{name}", "compute:hypervisors:read", "A compute host and its capacity", {200: "Host"})
def show_host(name: str) -> ResponseReturnValue:
    with reading_ledger() as connection:
        hidden = host_name_mask(connection, current().reach)
        host = status.host(connection, hidden.lift(name))
        return hidden.over({"host": views.host(host, current().is_admin)})


@Operation(
    "GET",
    "/instances/{uuid}/placement",
    "compute:servers:placement",
    "Why an instance is where it is",
    {200: "Placement"},
)
def show_placement(uuid: str) -> ResponseReturnValue:
    with reading_ledger() as connection:
        placement = status.placement(connection, uuid, current().reach)
        return host_name_mask(connection, current().reach).over({"placement": views.placement(placement)})
