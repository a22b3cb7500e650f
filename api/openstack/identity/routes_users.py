# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users. An admin makes and changes them; all users see themselves, and change their own passwords."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import users as user_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.users import UserRequest
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import projects, user_records
from ansible_collections.novalite.cloud.plugins.module_utils._rules.passwords import hash_password

from ...web import policy, services
from ...web.bodies import Answer, Body, Record
from ...web.context import current
from ...web.errors import BadRequestError, as_bad_request
from ...web.ledger import reading_ledger, writing_ledger
from ...web.services import reads, takes, writes
from ...work.calls import calling, proving
from . import authenticate, schemas, views
from .lists import described, extra, flag
from .views import unknown

service = services.Service("identity_users", "/identity/v3")


@service.get("/users", "identity:users:list", reads)
def list_users(connection: Connection) -> Body:
    rows = user_records.list_users(connection, request.args.get("name"), flag("enabled"), request.args.get("domain_id"))
    return views.listing("users", map(views.user, rows))


@service.post("/users", "identity:users:create", takes(schemas.CREATE_USER))
def create_user(body: Record) -> Answer:
    request = _request(body, schemas.CREATE_USER)
    with writing_ledger() as connection, as_bad_request():
        return {"user": views.user(user_operations.create(calling(connection), request))}, 201


@service.get("/users/<user_id>", "identity:users:show", reads)
def show_user(connection: Connection, user_id: str) -> Body:
    _check_mine(user_id)
    return {"user": views.user(user_records.find_user(connection, user_id))}


@service.patch("/users/<user_id>", "identity:users:update", takes(schemas.UPDATE_USER))
def update_user(body: Record, user_id: str) -> Body:
    if body.get("id", user_id) != user_id:
        raise BadRequestError("Cannot change user ID")
    request = _request(body, schemas.UPDATE_USER)
    with writing_ledger() as connection, as_bad_request():
        return {"user": views.user(user_operations.update(calling(connection), user_id, request))}


@service.delete("/users/<user_id>", "identity:users:delete", writes)
def delete_user(connection: Connection, user_id: str) -> Answer:
    user_operations.delete(calling(connection), user_id)
    return "", 204


@service.post("/users/<user_id>/password", "identity:users:password", takes(schemas.CHANGE_PASSWORD))
def change_password(body: Record, user_id: str) -> Answer:
    """Change a user's own password, even an expired one: as in Keystone, the old one is the proof, and not a token.

    All tokens of the user are void from then on.
    """
    with reading_ledger() as connection:
        row = user_records.user_by_id(connection, user_id)
        enabled = row is not None and authenticate.is_enabled(connection, row)
    attempt = authenticate.check_password(row, user_id[:64], body["original_password"], enabled)
    assert row is not None  # or the check had failed
    hashed = hash_password(body["password"])
    with writing_ledger() as connection:
        user_operations.change_password(proving(connection), attempt, row, hashed)
    return "", 204


@service.get("/users/<user_id>/projects", "identity:users:projects", reads)
def list_projects_of(connection: Connection, user_id: str) -> Body:
    _check_mine(user_id)
    user_records.find_user(connection, user_id)
    return views.listing("projects", map(views.project, projects.projects_of_user(connection, user_id)))


def _check_mine(user_id: str) -> None:
    """Raise NotFoundError for another user, unless the caller is an admin."""
    if not (user_id == current().user_id or policy.allowed("identity:users:others")):
        raise unknown("user", user_id)


def _request(body: Record, schema: schemas.Schema) -> UserRequest:
    """Return a user as the ledger takes one. To be made outside of a transaction: hashing takes its time."""
    values = described(body, "name", "enabled", "email", "default_project_id", "options", "domain_id")
    if "password" in body:
        values["password_hash"] = None if body["password"] is None else hash_password(body["password"])
    return t.cast("UserRequest", {**values, "extra": extra(body, schema)})
