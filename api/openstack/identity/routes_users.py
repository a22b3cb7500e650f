# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users. An admin makes and changes them; everybody sees oneself, and changes one's own password."""

from __future__ import annotations

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.projects import (
    project_name,
    projects_of_user,
)
from ansible_collections.novalite.cloud.plugins.module_utils._rules.passwords import hash_password

from ...web import services, validation
from ...web.bodies import Answer, Body, Record
from ...web.context import current
from ...web.errors import BadRequestError, as_bad_request
from ...web.ledger import reading_ledger, writing_ledger
from ...web.services import reads, writes
from . import authenticate, schemas, views
from .routes_projects import check_domain, flag

service = services.Service("identity_users", "/identity/v3/users")


@service.get("/", "identity:users:list", reads)
def list_users(connection: Connection) -> Body:
    rows = users.list_users(connection, request.args.get("name"), flag("enabled"))
    if request.args.get("domain_id", "default") != "default":
        rows = []
    return views.listing("users", map(views.user, rows))


@service.post("/", "identity:users:create")
def create_user() -> Answer:
    values = _values(validation.body(schemas.CREATE_USER)["user"])
    with writing_ledger() as connection:
        _check_project(connection, values)
        with as_bad_request():
            row = users.insert_user(connection, values)
    return {"user": views.user(row)}, 201


@service.get("/<user_id>", "identity:users:show")
def show_user(user_id: str) -> Body:
    check_mine(user_id)
    with reading_ledger() as connection:
        row = users.find_user(connection, user_id)
    return {"user": views.user(row)}


@service.patch("/<user_id>", "identity:users:update")
def update_user(user_id: str) -> Body:
    asked = validation.body(schemas.UPDATE_USER)["user"]
    if asked.get("id", user_id) != user_id:
        raise BadRequestError("Cannot change user ID")
    values = _values(asked)
    with writing_ledger() as connection:
        users.find_user(connection, user_id)
        _check_project(connection, values)
        with as_bad_request():
            row = users.update_user(connection, user_id, values)
    return {"user": views.user(row)}


@service.delete("/<user_id>", "identity:users:delete", writes)
def delete_user(connection: Connection, user_id: str) -> Answer:
    users.delete_user(connection, user_id)
    return "", 204


@service.post("/<user_id>/password", "identity:users:password")
def change_password(user_id: str) -> Answer:
    """One's own password, with the old one as the proof. All tokens of the user are void from then on."""
    asked = validation.body(schemas.CHANGE_PASSWORD)["user"]
    if user_id != current().user_id:
        raise NotFoundError(f"Could not find user: {user_id[:64]}.")
    with reading_ledger() as connection:
        row = users.find_user(connection, user_id)
    attempt = authenticate.check_password(row, row["name"], asked["original_password"])
    hashed = hash_password(asked["password"])
    with writing_ledger() as connection:
        attempt.succeed(connection)
        if users.find_user(connection, user_id)["password_hash"] != row["password_hash"]:
            # it was changed meanwhile: what was proved is the old one
            raise authenticate.UnauthorizedError(authenticate.REFUSED)
        users.update_user(connection, user_id, {"password_hash": hashed})
    return "", 204


@service.get("/<user_id>/projects", "identity:users:projects")
def list_projects_of(user_id: str) -> Body:
    check_mine(user_id)
    with reading_ledger() as connection:
        users.find_user(connection, user_id)
        projects = projects_of_user(connection, user_id)
    shown = map(views.project, projects)
    return views.listing("projects", shown)


def check_mine(user_id: str) -> None:
    """Raise NotFoundError for another user, unless the caller is an admin."""
    if not (user_id == current().user_id or current().is_admin):
        raise NotFoundError(f"Could not find user: {user_id[:64]}.")


def _values(asked: Record) -> Record:
    check_domain(asked)
    values: Record = {key: asked[key] for key in ("name", "enabled", "email", "default_project_id") if key in asked}
    if "description" in asked:
        values["description"] = asked["description"] or ""
    if "password" in asked:
        values["password_hash"] = None if asked["password"] is None else hash_password(asked["password"])
    return values


def _check_project(connection: Connection, values: Record) -> None:
    wanted = values.get("default_project_id")
    if wanted is None:
        return
    if project_name(connection, wanted) is None:
        raise BadRequestError(f"default_project_id {wanted!r} is no project's")
