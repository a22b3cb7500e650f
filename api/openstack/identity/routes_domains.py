# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Domains, and groups of users with their members: an admin makes and changes them."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    domains as domain_operations,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    groups as group_operations,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.groups import GroupRequest
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import projects, user_records

from ...web import policy, services
from ...web.bodies import Answer, Body, Record
from ...web.context import current
from ...web.services import reads, takes, writes, writes_checked
from ...work.calls import calling
from . import schemas, views
from .lists import acknowledged, described, domain_request, extra, flag, sees_domain
from .views import unknown

service = services.Service("identity_domains", "/identity/v3")


@service.get("/domains", "identity:domains:read", reads)
def list_domains(connection: Connection) -> Body:
    rows = projects.list_domains(connection, request.args.get("name"), flag("enabled"))
    return views.listing("domains", [views.domain(row) for row in rows if sees_domain(row["id"])])


@service.post("/domains", "identity:domains:create", takes(schemas.CREATE_DOMAIN), writes_checked)
def create_domain(connection: Connection, body: Record) -> Answer:
    return {"domain": views.domain(domain_operations.create(calling(connection), domain_request(body)))}, 201


@service.get("/domains/<domain_id>", "identity:domains:read", reads)
def show_domain(connection: Connection, domain_id: str) -> Body:
    row = projects.find_domain(connection, domain_id)
    if not sees_domain(domain_id):
        raise unknown("domain", domain_id)
    return {"domain": views.domain(row)}


@service.patch("/domains/<domain_id>", "identity:domains:update", takes(schemas.UPDATE_DOMAIN), writes_checked)
def update_domain(connection: Connection, body: Record, domain_id: str) -> Body:
    row = domain_operations.update(calling(connection), domain_id, domain_request(body))
    return {"domain": views.domain(row)}


@service.delete("/domains/<domain_id>", "identity:domains:delete", writes)
def delete_domain(connection: Connection, domain_id: str) -> Answer:
    domain_operations.delete(calling(connection), domain_id)
    return "", 204


# --- Groups -----------------------------------------------------------------------------------------------------------


@service.get("/groups", "identity:groups:list", reads)
def list_groups(connection: Connection) -> Body:
    rows = user_records.list_groups(connection, request.args.get("name"), request.args.get("domain_id"))
    return views.listing("groups", map(views.group, rows))


@service.post("/groups", "identity:groups:create", takes(schemas.CREATE_GROUP), writes_checked)
def create_group(connection: Connection, body: Record) -> Answer:
    row = group_operations.create(calling(connection), _request(body, schemas.CREATE_GROUP))
    return {"group": views.group(row)}, 201


@service.get("/groups/<group_id>", "identity:groups:show", reads)
def show_group(connection: Connection, group_id: str) -> Body:
    return {"group": views.group(user_records.find_group(connection, group_id))}


@service.patch("/groups/<group_id>", "identity:groups:update", takes(schemas.UPDATE_GROUP), writes_checked)
def update_group(connection: Connection, body: Record, group_id: str) -> Body:
    row = group_operations.update(calling(connection), group_id, _request(body, schemas.UPDATE_GROUP))
    return {"group": views.group(row)}


@service.delete("/groups/<group_id>", "identity:groups:delete", writes)
def delete_group(connection: Connection, group_id: str) -> Answer:
    group_operations.delete(calling(connection), group_id)
    return "", 204


@service.get("/groups/<group_id>/users", "identity:groups:members", reads)
def list_members(connection: Connection, group_id: str) -> Body:
    user_records.find_group(connection, group_id)
    members = set(user_records.members_of(connection, group_id))
    rows = user_records.list_users(connection, request.args.get("name"), flag("enabled"))
    return views.listing("users", [views.user(row) for row in rows if row["id"] in members])


@service.get("/groups/<group_id>/users/<user_id>", "identity:groups:members", reads)
def check_member(connection: Connection, group_id: str, user_id: str) -> Answer:
    """Check a membership, as clients do with HEAD. Raises NotFoundError where there is none."""
    user_records.find_group(connection, group_id)
    user_records.find_user(connection, user_id)
    return acknowledged(user_records.is_member(connection, group_id, user_id), "user in the group", user_id)


@service.put("/groups/<group_id>/users/<user_id>", "identity:groups:add_member", writes)
def add_member(connection: Connection, group_id: str, user_id: str) -> Answer:
    group_operations.add_member(calling(connection), group_id, user_id)
    return "", 204


@service.delete("/groups/<group_id>/users/<user_id>", "identity:groups:remove_member", writes)
def remove_member(connection: Connection, group_id: str, user_id: str) -> Answer:
    group_operations.remove_member(calling(connection), group_id, user_id)
    return "", 204


@service.get("/users/<user_id>/groups", "identity:users:groups", reads)
def list_groups_of(connection: Connection, user_id: str) -> Body:
    if not (user_id == current().user_id or policy.allowed("identity:users:others")):
        raise unknown("user", user_id)
    user_records.find_user(connection, user_id)
    rows = user_records.list_groups(connection, request.args.get("name"), user_id=user_id)
    return views.listing("groups", map(views.group, rows))


def _request(body: Record, schema: schemas.Schema) -> GroupRequest:
    return t.cast("GroupRequest", {**described(body, "name", "domain_id"), "extra": extra(body, schema)})
