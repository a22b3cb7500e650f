# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tags on networks, subnets, ports, routers, security groups and floating IPs."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.resource_tags import replace_tags, tags_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import group_rules

from ...web import policy, validation
from ...web.context import current
from ...web.errors import as_bad_request
from ...web.ledger import reading_ledger, writing_ledger
from . import records, schemas
from .blueprint import Answer, NeutronError, network, not_found

TAGGED = "any(networks, subnets, ports, routers, 'security-groups', floatingips)"


@network.get(f"/<{TAGGED}:plural>/<number>/tags")
@policy.allows("network:tags:read")
def list_tags(plural: str, number: str) -> Answer:
    with reading_ledger() as connection:
        return {"tags": _tags(connection, plural, number)}, 200


@network.put(f"/<{TAGGED}:plural>/<number>/tags")
@policy.allows("network:tags:write")
def put_tags(plural: str, number: str) -> Answer:
    wanted = validation.body(schemas.TAGS)["tags"]
    with writing_ledger() as connection, as_bad_request():
        _tags(connection, plural, number, write=True)
        replace_tags(connection, number.lower(), wanted)
        return {"tags": _tags(connection, plural, number)}, 200


@network.delete(f"/<{TAGGED}:plural>/<number>/tags")
@policy.allows("network:tags:write")
def delete_tags(plural: str, number: str) -> Answer:
    with writing_ledger() as connection:
        _tags(connection, plural, number, write=True)
        replace_tags(connection, number.lower(), [])
    return "", 204


@network.get(f"/<{TAGGED}:plural>/<number>/tags/<tag>")
@policy.allows("network:tags:read")
def show_tag(plural: str, number: str, tag: str) -> Answer:
    with reading_ledger() as connection:
        _check(_tags(connection, plural, number), tag)
    return "", 204


@network.put(f"/<{TAGGED}:plural>/<number>/tags/<tag>")
@policy.allows("network:tags:write")
def put_tag(plural: str, number: str, tag: str) -> Answer:
    validation.check(tag, schemas.TAG)
    with writing_ledger() as connection, as_bad_request():
        replace_tags(connection, number.lower(), [*_tags(connection, plural, number, write=True), tag])
    return "", 201


@network.delete(f"/<{TAGGED}:plural>/<number>/tags/<tag>")
@policy.allows("network:tags:write")
def delete_tag(plural: str, number: str, tag: str) -> Answer:
    with writing_ledger() as connection:
        tags = _tags(connection, plural, number, write=True)
        _check(tags, tag)
        replace_tags(connection, number.lower(), [other for other in tags if other != tag])
    return "", 204


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


def _check(tags: list[str], tag: str) -> None:
    if tag not in tags:
        raise NeutronError(404, "TagNotFound", f"Tag {tag[:255]} could not be found.")
