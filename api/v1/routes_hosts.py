# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts, what they have left, and why an instance is where it is."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import status

from ..web.context import current
from ..web.host_names import veil
from ..web.ledger import reading_ledger
from . import views
from .operations import operation


@operation("GET", "/hosts", "compute:hypervisors:read", "Compute hosts and their capacity", {200: "Hosts"})
def list_hosts() -> t.Any:
    with reading_ledger() as connection:
        hosts = [views.host(host, current().is_admin) for host in status.hosts(connection)]
        return veil(connection, current().reach).over({"hosts": hosts})


@operation("GET", "/hosts/{name}", "compute:hypervisors:read", "A compute host and its capacity", {200: "Host"})
def show_host(name: str) -> t.Any:
    with reading_ledger() as connection:
        hidden = veil(connection, current().reach)
        host = status.host(connection, hidden.lift(name))
        return hidden.over({"host": views.host(host, current().is_admin)})


@operation(
    "GET",
    "/instances/{uuid}/placement",
    "compute:servers:placement",
    "Why an instance is where it is",
    {200: "Placement"},
)
def show_placement(uuid: str) -> t.Any:
    with reading_ledger() as connection:
        placement = status.placement(connection, uuid, current().reach)
        return veil(connection, current().reach).over({"placement": views.placement(placement)})
