# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tags on networks, subnets, ports, routers, security groups and floating IPs."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.resource_tags import replace_tags, tags_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import group_rules

from ...web.context import current
from ...web.maps import Tags, Update
from ...web.schemas import NAME
from . import records
from .blueprint import NeutronError, network, not_found

TAGGED = "any(networks, subnets, ports, routers, 'security-groups', floatingips)"


def _tags(connection: Connection, plural: str, number: str, write: bool = False) -> list[str]:
    """The tags of a resource that the asker sees, and to `write` may change. Raises NeutronError."""
    project = current().project
    if plural == "security-groups":
        if not group_rules.groups_of(connection, project, number):
            raise not_found("Security Group", number)
    elif plural == "floatingips":
        if not network_records.floating_ips_of(connection, current().reach, number):
            raise not_found("Floating IP", number)
    else:
        records.find(connection, plural, number)
        if write and plural == "networks":
            records.network_row(connection, number, write=True)
        if write and plural == "subnets":
            records.subnet_row(connection, number, write=True)
    return tags_of(connection, [number.lower()]).get(number.lower(), [])


def _write(connection: Connection, update: Update, plural: str, number: str) -> list[str]:
    replace_tags(connection, number.lower(), update(_tags(connection, plural, number, write=True)))
    return _tags(connection, plural, number)


Tags(
    name="tags",
    path=f"/<{TAGGED}:plural>/<resource_id>/tags",
    reads="network:tags:read",
    writes="network:tags:write",
    schema=NAME,
    most=50,
    find=_tags,
    write=_write,
    missing=lambda tag, _plural, _number: NeutronError(404, "TagNotFound", f"Tag {tag[:255]} could not be found."),
).put_into(network)
