# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks, security groups and floating IPs, as several doors look for them."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import security_groups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import projects
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.group_records import (
    DEFAULT_GROUP,
    groups_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import (
    FloatingIp,
    Network,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.pool_records import find_pool

from ..web.bodies import Record, the_one
from ..web.context import current
from ..web.dialects import NeutronError, not_found
from ..web.ledger import reading_ledger, writing_ledger
from .calls import calling


def project_name(connection: Connection, project_id: str) -> str:
    caller = current()
    if project_id == caller.project and caller.project_name is not None:
        return caller.project_name
    return str(projects.project_name(connection, project_id))


# --- Networks -------------------------------------------------------------------------------------------------------


def network_row(connection: Connection, number: str) -> Network:
    """The ledger's row of a network that the asker sees. Raises NeutronError."""
    for row in network_records.networks_seen(connection, current().reach, bare=True):
        if row.uuid == number.lower():
            return row
    if find_pool(connection, number.lower()) is not None:
        raise NeutronError(403, "PolicyNotAuthorized", f"network {number} is the cloud's operator's floating pool")
    raise not_found("Network", number)


# --- Security groups ------------------------------------------------------------------------------------------------


def groups_seen() -> list[Record]:
    """The caller's project's security groups. It has a default one from the first time that somebody looks."""
    project = current().project
    with reading_ledger() as connection:
        rows = groups_of(connection, project)
    if not any(row["name"] == DEFAULT_GROUP for row in rows):
        with writing_ledger() as connection:
            security_groups.ensure_default(calling(connection))
            rows = groups_of(connection, project)
    return rows


# --- Floating IPs ---------------------------------------------------------------------------------------------------


def floating_ip(connection: Connection, number: str) -> FloatingIp:
    """A floating IP that the caller may name by id. Raises NeutronError."""
    rows = network_records.floating_ips_of(connection, current().reach, number)
    return the_one(rows, "id", number, not_found("Floating IP", number))
