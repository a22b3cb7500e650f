# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects, and the roles that users have in them."""

from __future__ import annotations

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import projects as identity_projects
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import projects

from ...web import services
from ...web.bodies import Answer, Body, Record
from ...web.context import current
from ...web.errors import BadRequestError, as_bad_request
from ...web.ledger import reading_ledger
from ...web.services import reads, takes, writes
from . import schemas, views

service = services.Service("identity_projects", "/identity/v3")


@service.get("/projects", "identity:projects:list", reads)
def list_projects(connection: Connection) -> Body:
    """All projects. Whose one has a role in are at /auth/projects."""
    rows = projects.projects(connection)
    wanted = request.args.get("name")
    enabled = flag("enabled")
    shown = [
        views.project(project)
        for project in rows
        if wanted in (None, project["name"])
        and enabled in (None, project["enabled"])
        and request.args.get("domain_id", "default") == "default"
    ]
    return views.listing("projects", shown)


@service.post("/projects", "identity:projects:create", takes(schemas.CREATE_PROJECT), writes)
def create_project(connection: Connection, asked: Record) -> Answer:
    check_domain(asked)
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
        raise _unknown(project_id)
    return {"project": views.project(row)}


@service.patch("/projects/<project_id>", "identity:projects:update", takes(schemas.UPDATE_PROJECT), writes)
def update_project(connection: Connection, asked: Record, project_id: str) -> Body:
    check_domain(asked)
    _find(connection, project_id)
    with as_bad_request():
        row = _update(connection, project_id, asked)
    return {"project": views.project(row)}


@service.delete("/projects/<project_id>", "identity:projects:delete", writes)
def delete_project(connection: Connection, project_id: str) -> Answer:
    row = _find(connection, project_id)
    identity_projects.remove_projects(connection, [{"name": row["name"]}])
    return "", 204


@service.get("/role_assignments", "identity:assignments:list")
def list_assignments() -> Body:
    role = None
    if "role.id" in request.args:
        role = views.role_name(request.args["role.id"]) or "none"
    with reading_ledger() as connection:
        assignments = users.list_roles(
            connection, request.args.get("user.id"), request.args.get("scope.project.id"), role
        )
    names = request.args.get("include_names", "false").lower() not in ("false", "0")
    shown = [views.assignment(assignment, names) for assignment in assignments]
    return views.listing("role_assignments", shown)


@service.get("/projects/<project_id>/users/<user_id>/roles", "identity:assignments:list", reads)
def list_roles_of(connection: Connection, project_id: str, user_id: str) -> Body:
    _find_both(connection, project_id, user_id)
    roles = users.roles_in(connection, user_id, project_id)
    return views.listing("roles", [views.role(name) for name in users.ROLES if name in roles])


@service.get("/projects/<project_id>/users/<user_id>/roles/<role_id>", "identity:assignments:check", reads)
def check_role(connection: Connection, project_id: str, user_id: str, role_id: str) -> Answer:
    """What clients ask with HEAD."""
    _find_both(connection, project_id, user_id)
    if _role(role_id) not in users.roles_in(connection, user_id, project_id):
        raise NotFoundError(f"Could not find role assignment with role: {role_id[:64]}.")
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
        raise NotFoundError(f"Could not find role assignment with role: {role_id[:64]}.")
    return "", 204


def check_domain(asked: Record) -> None:
    """Raise NotFoundError for another domain than the only one, BadRequestError for another parent than that."""
    domain, parent = asked.get("domain_id"), asked.get("parent_id")
    if domain not in (None, "default"):
        raise NotFoundError(f"Could not find domain: {domain[:64]}.")
    if parent not in (None, "default"):
        raise BadRequestError(f"parent_id {parent[:64]!r}: above a project is the domain 'default' alone")


def flag(name: str) -> bool | None:
    """A query parameter that is yes or no, as Keystone reads them."""
    text = request.args.get(name)
    return None if text is None else text.lower() not in ("false", "0", "no", "off")


def _find(connection: Connection, project_id: str) -> Record:
    row = projects.project_by_id(connection, project_id)
    if row is None:
        raise _unknown(project_id)
    return row


def _find_both(connection: Connection, project_id: str, user_id: str) -> None:
    _find(connection, project_id)
    users.find_user(connection, user_id)


def _unknown(project_id: str) -> NotFoundError:
    return NotFoundError(f"Could not find project: {project_id[:64]}.")


def _role(role_id: str) -> str:
    name = views.role_name(role_id)
    if name is None:
        raise NotFoundError(f"Could not find role: {role_id[:64]}.")
    return name


def _update(connection: Connection, project_id: str, asked: Record) -> Record:
    values: Record = {key: asked[key] for key in ("name", "enabled") if key in asked}
    if "description" in asked:
        values["description"] = asked["description"] or ""
    identity_projects.update_project(connection, project_id, values)
    return _find(connection, project_id)
