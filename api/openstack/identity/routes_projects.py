# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects, users, and the roles that users have in projects.

An admin makes and changes them; all users see themselves, and change their own passwords.
"""

from __future__ import annotations

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import projects as identity_projects
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import projects
from ansible_collections.novalite.cloud.plugins.module_utils._rules.passwords import hash_password

from ...web import services
from ...web.bodies import Answer, Body, Record
from ...web.context import current
from ...web.errors import BadRequestError, as_bad_request
from ...web.ledger import reading_ledger, writing_ledger
from ...web.services import reads, takes, writes
from . import authenticate, schemas, views
from .views import unknown

service = services.Service("identity_projects", "/identity/v3")


@service.get("/projects", "identity:projects:list", reads)
def list_projects(connection: Connection) -> Body:
    """All projects. Whose one has a role in are at /auth/projects."""
    rows = projects.projects(connection)
    wanted = request.args.get("name")
    enabled = _flag("enabled")
    shown = [row for row in rows if wanted in (None, row["name"]) and enabled in (None, row["enabled"])]
    return views.listing("projects", map(views.project, shown if _in_domain() else []))


@service.post("/projects", "identity:projects:create", takes(schemas.CREATE_PROJECT), writes)
def create_project(connection: Connection, asked: Record) -> Answer:
    _check_domain(asked)
    if projects.project_id_of(connection, asked["name"]) is not None:
        raise ConflictError(f"Conflict occurred attempting to store project - a project {asked['name']!r} exists.")
    with as_bad_request():
        made = identity_projects.write_projects(connection, [{"name": asked["name"], "quotas": None}])
        row = _update(connection, made["projects"][0]["id"], asked)
    return {"project": views.project(row)}, 201


@service.get("/projects/<project_id>", "identity:projects:show", reads)
def show_project(connection: Connection, project_id: str) -> Body:
    row = _find(connection, project_id)
    mine = {project["id"] for project in projects.projects_of_user(connection, current().user_id)}
    if not (current().is_admin or project_id in mine):
        raise unknown("project", project_id)
    return {"project": views.project(row)}


@service.patch("/projects/<project_id>", "identity:projects:update", takes(schemas.UPDATE_PROJECT), writes)
def update_project(connection: Connection, asked: Record, project_id: str) -> Body:
    _check_domain(asked)
    _find(connection, project_id)
    with as_bad_request():
        row = _update(connection, project_id, asked)
    return {"project": views.project(row)}


@service.delete("/projects/<project_id>", "identity:projects:delete", writes)
def delete_project(connection: Connection, project_id: str) -> Answer:
    row = _find(connection, project_id)
    identity_projects.remove_projects(connection, [{"name": row["name"]}])
    return "", 204


@service.get("/role_assignments", "identity:assignments:list", reads)
def list_assignments(connection: Connection) -> Body:
    args = request.args
    role = (views.role_name(args["role.id"]) or "none") if "role.id" in args else None
    assignments = users.list_roles(connection, args.get("user.id"), args.get("scope.project.id"), role)
    names = args.get("include_names", "false").lower() not in ("false", "0")
    return views.listing("role_assignments", [views.assignment(assignment, names) for assignment in assignments])


@service.get("/projects/<project_id>/users/<user_id>/roles", "identity:assignments:list", reads)
def list_roles_of(connection: Connection, project_id: str, user_id: str) -> Body:
    _find_both(connection, project_id, user_id)
    roles = users.roles_in(connection, user_id, project_id)
    return views.listing("roles", [views.role(name) for name in users.ROLES if name in roles])


@service.get("/projects/<project_id>/users/<user_id>/roles/<role_id>", "identity:assignments:check", reads)
def check_role(connection: Connection, project_id: str, user_id: str, role_id: str) -> Answer:
    """Check a role assignment, as clients do with HEAD. Raises NotFoundError if there is none."""
    _find_both(connection, project_id, user_id)
    if _role(role_id) not in users.roles_in(connection, user_id, project_id):
        raise unknown("role assignment with role", role_id)
    return "", 204


@service.put("/projects/<project_id>/users/<user_id>/roles/<role_id>", "identity:assignments:create", writes)
def grant_role(connection: Connection, project_id: str, user_id: str, role_id: str) -> Answer:
    _find_both(connection, project_id, user_id)
    users.grant_role(connection, user_id, project_id, _role(role_id))
    return "", 204


@service.delete("/projects/<project_id>/users/<user_id>/roles/<role_id>", "identity:assignments:delete", writes)
def revoke_role(connection: Connection, project_id: str, user_id: str, role_id: str) -> Answer:
    _find_both(connection, project_id, user_id)
    if not users.revoke_role(connection, user_id, project_id, _role(role_id)):
        raise unknown("role assignment with role", role_id)
    return "", 204


def _check_domain(asked: Record) -> None:
    """Raise NotFoundError for another domain than the only one, BadRequestError for another parent than that."""
    domain, parent = asked.get("domain_id"), asked.get("parent_id")
    if domain not in (None, "default"):
        raise unknown("domain", domain)
    if parent not in (None, "default"):
        raise BadRequestError(f"parent_id {parent[:64]!r}: above a project is the domain 'default' alone")


def _in_domain() -> bool:
    """Tell whether the query's domain is the only one that there is."""
    return request.args.get("domain_id", "default") == "default"


def _flag(name: str) -> bool | None:
    """A query parameter that is yes or no, as Keystone reads them."""
    text = request.args.get(name)
    return None if text is None else text.lower() not in ("false", "0", "no", "off")


def _find(connection: Connection, project_id: str) -> Record:
    row = projects.project_by_id(connection, project_id)
    if row is None:
        raise unknown("project", project_id)
    return row


def _find_both(connection: Connection, project_id: str, user_id: str) -> None:
    _find(connection, project_id)
    users.find_user(connection, user_id)


def _role(role_id: str) -> str:
    name = views.role_name(role_id)
    if name is None:
        raise unknown("role", role_id)
    return name


def _described(asked: Record, *names: str) -> Record:
    """Return the body's values under `names`, and its description, which is never null in the ledger."""
    values: Record = {key: asked[key] for key in names if key in asked}
    return {**values, "description": asked["description"] or ""} if "description" in asked else values


def _update(connection: Connection, project_id: str, asked: Record) -> Record:
    identity_projects.update_project(connection, project_id, _described(asked, "name", "enabled"))
    return _find(connection, project_id)


# --- Users ----------------------------------------------------------------------------------------------------------


@service.get("/users", "identity:users:list", reads)
def list_users(connection: Connection) -> Body:
    rows = users.list_users(connection, request.args.get("name"), _flag("enabled"))
    return views.listing("users", map(views.user, rows if _in_domain() else []))


@service.post("/users", "identity:users:create", takes(schemas.CREATE_USER))
def create_user(asked: Record) -> Answer:
    values = _values(asked)
    with writing_ledger() as connection:
        _check_project(connection, values)
        with as_bad_request():
            return {"user": views.user(users.insert_user(connection, values))}, 201


@service.get("/users/<user_id>", "identity:users:show", reads)
def show_user(connection: Connection, user_id: str) -> Body:
    _check_mine(user_id)
    return {"user": views.user(users.find_user(connection, user_id))}


@service.patch("/users/<user_id>", "identity:users:update", takes(schemas.UPDATE_USER))
def update_user(asked: Record, user_id: str) -> Body:
    if asked.get("id", user_id) != user_id:
        raise BadRequestError("Cannot change user ID")
    values = _values(asked)
    with writing_ledger() as connection:
        users.find_user(connection, user_id)
        _check_project(connection, values)
        with as_bad_request():
            return {"user": views.user(users.update_user(connection, user_id, values))}


@service.delete("/users/<user_id>", "identity:users:delete", writes)
def delete_user(connection: Connection, user_id: str) -> Answer:
    users.delete_user(connection, user_id)
    return "", 204


@service.post("/users/<user_id>/password", "identity:users:password", takes(schemas.CHANGE_PASSWORD))
def change_password(asked: Record, user_id: str) -> Answer:
    """One's own password, with the old one as the proof, and no token, as in Keystone: whose has expired may change it.

    All tokens of the user are void from then on.
    """
    with reading_ledger() as connection:
        row = users.user_by_id(connection, user_id)
    attempt = authenticate.check_password(row, user_id[:64], asked["original_password"])
    assert row is not None  # or the check had failed
    hashed = hash_password(asked["password"])
    with writing_ledger() as connection:
        attempt.succeed(connection)
        if users.find_user(connection, user_id)["password_hash"] != row["password_hash"]:
            # it was changed meanwhile: what was proved is the old one
            raise authenticate.UnauthorizedError(authenticate.REFUSED)
        users.update_user(connection, user_id, {"password_hash": hashed})
    return "", 204


@service.get("/users/<user_id>/projects", "identity:users:projects", reads)
def list_projects_of(connection: Connection, user_id: str) -> Body:
    _check_mine(user_id)
    users.find_user(connection, user_id)
    return views.listing("projects", map(views.project, projects.projects_of_user(connection, user_id)))


def _check_mine(user_id: str) -> None:
    """Raise NotFoundError for another user, unless the caller is an admin."""
    if not (user_id == current().user_id or current().is_admin):
        raise unknown("user", user_id)


def _values(asked: Record) -> Record:
    """A user as the ledger takes one. To be made outside of a transaction: hashing takes its time."""
    _check_domain(asked)
    values = _described(asked, "name", "enabled", "email", "default_project_id")
    if "password" in asked:
        values["password_hash"] = None if asked["password"] is None else hash_password(asked["password"])
    return values


def _check_project(connection: Connection, values: Record) -> None:
    wanted = values.get("default_project_id")
    if wanted is not None and projects.project_name(connection, wanted) is None:
        raise BadRequestError(f"default_project_id {wanted!r} is no project's")
