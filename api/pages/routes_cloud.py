# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cloud as a whole: hosts, networks, quotas, and a bit of everything on the first page."""

from __future__ import annotations

import typing as t

from flask import render_template

from ansible_collections.novalite.cloud.plugins.module_utils._ledger import status

from .. import policy
from ..context import current
from ..jobs import queue
from ..ledger import reading_ledger
from ..native.routes_jobs import scope
from .routes_jobs import veiled
from .session import pages

policy.grant(
    {
        "pages:overview": "reader",
        "pages:hosts": "admin",  # which hosts there are is no tenant's business
        "pages:networks": "reader",
        "pages:quotas": "reader",
    }
)

RECENT = 5  # jobs on the first page


@pages.get("/")
@policy.allows("pages:overview")
def overview() -> str:
    caller = current()
    with reading_ledger() as connection:
        return render_template(
            "pages/overview.html",
            hosts=status.hosts(connection) if caller.is_admin else [],
            states=status.instance_states(connection, caller.project),
            quotas=status.usage(connection, caller.project),
            jobs=veiled(connection, queue.list_jobs(connection, project_id=caller.project, limit=RECENT)),
        )


@pages.get("/hosts")
@policy.allows("pages:hosts")
def list_hosts() -> str:
    with reading_ledger() as connection:
        return render_template("pages/hosts.html", hosts=status.hosts(connection))


@pages.get("/hosts/<name>")
@policy.allows("pages:hosts")
def show_host(name: str) -> str:
    with reading_ledger() as connection:
        return render_template(
            "pages/host.html",
            host=status.host(connection, name),
            instances=status.instance_page(connection, scope(current()), host=name)[0],
        )


@pages.get("/networks")
@policy.allows("pages:networks")
def list_networks() -> str:
    with reading_ledger() as connection:
        return render_template("pages/networks.html", networks=status.networks(connection, scope(current())))


@pages.get("/networks/<uuid>")
@policy.allows("pages:networks")
def show_network(uuid: str) -> str:
    with reading_ledger() as connection:
        found = status.address_map(connection, uuid, scope(current()))
    names = {one["address"]: one for one in found["owners"]}
    return render_template("pages/network.html", network=found, names=names)


@pages.get("/quotas")
@policy.allows("pages:quotas")
def show_quotas() -> t.Any:
    with reading_ledger() as connection:
        return render_template("pages/quotas.html", quotas=status.usage(connection, current().project))
