# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Roles, and their assignments to users and groups, in projects and domains, there or in the projects below."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    assignments as operations,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import roles as role_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.roles import RoleRequest
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import assignments, projects
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.assignments import Place

from ...web import services
from ...web.bodies import Answer, Body, Record
from ...web.errors import BadRequestError
from ...web.services import reads, takes, writes, writes_checked
from ...work.calls import calling
from . import catalog, schemas, views
from .lists import acknowledged, described, flag, sees_domain
from .views import unknown

service = services.Service("identity_roles", "/identity/v3")


@service.get("/roles", "identity:roles", reads)
def list_roles(connection: Connection) -> Body:
    """List the roles that hold for all domains; with `domain_id`, only the roles of that domain."""
    domain_id = request.args.get("domain_id")
    rows = assignments.list_roles(connection, domain_id, request.args.get("name")) if sees_domain(domain_id) else []
    return views.listing("roles", map(views.role, rows))


@service.post("/roles", "identity:roles:create", takes(schemas.CREATE_ROLE), writes_checked)
def create_role(connection: Connection, body: Record) -> Answer:
    return {"role": views.role(role_operations.create(calling(connection), body["name"], _request(body)))}, 201


@service.get("/roles/<role_id>", "identity:roles", reads)
def show_role(connection: Connection, role_id: str) -> Body:
    return {"role": views.role(_find(connection, role_id))}


@service.patch("/roles/<role_id>", "identity:roles:update", takes(schemas.UPDATE_ROLE), writes_checked)
def update_role(connection: Connection, body: Record, role_id: str) -> Body:
    number = _find(connection, role_id)["id"]
    return {"role": views.role(role_operations.update(calling(connection), number, _request(body)))}


def _request(body: Record) -> RoleRequest:
    return t.cast("RoleRequest", described(body, "name", "domain_id"))


@service.delete("/roles/<role_id>", "identity:roles:delete", writes)
def delete_role(connection: Connection, role_id: str) -> Answer:
    role_operations.delete(calling(connection), _find(connection, role_id)["id"])
    return "", 204


@service.get("/role_inferences", "identity:roles", reads)
def list_inferences(connection: Connection) -> Body:
    """The roles that those which come with the cloud imply; others imply nothing."""
    known = {row["id"]: views.role(row) for row in assignments.list_roles(connection)}
    pairs = zip(assignments.ROLES, assignments.ROLES[1:])
    rows: list[Body] = [{"prior_role": known[above], "implies": [known[below]]} for below, above in pairs]
    return {"role_inferences": rows, "links": {"self": catalog.url("role_inferences")}}


@service.get("/roles/<role_id>/implies", "identity:roles", reads)
def list_implied(connection: Connection, role_id: str) -> Body:
    prior = _find(connection, role_id)
    below = assignments.implied_ids(prior["id"])[:-1][-1:]
    implied = [views.role(assignments.find_role(connection, name)) for name in below]
    links = {"self": catalog.url(f"roles/{role_id}/implies")}
    return {"role_inference": {"prior_role": views.role(prior), "implies": implied}, "links": links}


def _find(connection: Connection, role_id: str) -> Record:
    """Return the role that clients know by this id. Raises NotFoundError, with the id as it was sent."""
    try:
        row = assignments.find_role(connection, views.role_number(role_id))
    except NotFoundError:
        raise unknown("role", role_id) from None
    if not sees_domain(row["domain_id"]):
        raise unknown("role", role_id)
    return row


# --- Assignments ------------------------------------------------------------------------------------------------------

_PLACE = "/<any(projects, domains):targets>/<target_id>/<any(users, groups):actors>/<actor_id>/roles"
_BELOW = f"/OS-INHERIT{_PLACE}"


def _place(ids: dict[str, str]) -> Place:
    """Return whose role it is, and where, by the variables of the path."""
    inherited = request.path.startswith("/identity/v3/OS-INHERIT/")
    of_target, of_actor = f"{ids['targets'][:-1]}_id", f"{ids['actors'][:-1]}_id"
    return Place(**{of_target: ids["target_id"], of_actor: ids["actor_id"]}, inherited=inherited)


def _roles_at(connection: Connection, ids: dict[str, str]) -> list[Record]:
    """Return the roles that were given there. Raises NotFoundError."""
    place = _place(ids)
    operations.check_place(calling(connection), place)
    return assignments.roles_at(connection, place)


@service.get(_PLACE, "identity:assignments:list")
@service.get(f"{_BELOW}/inherited_to_projects", "identity:assignments:list", reads, endpoint="list_inherited_roles")
def list_roles_of(connection: Connection, **ids: str) -> Body:
    return views.listing("roles", map(views.role, _roles_at(connection, ids)))


@service.get(f"{_PLACE}/<role_id>", "identity:assignments:check")
@service.get(
    f"{_BELOW}/<role_id>/inherited_to_projects", "identity:assignments:check", reads, endpoint="check_inherited"
)
def check_role(connection: Connection, role_id: str, **ids: str) -> Answer:
    """Check a role assignment, as clients do with HEAD. Raises NotFoundError if there is none."""
    there, role = _roles_at(connection, ids), _find(connection, role_id)
    return acknowledged(role["id"] in {row["id"] for row in there}, "role assignment with role", role_id)


@service.put(f"{_PLACE}/<role_id>", "identity:assignments:create")
@service.put(
    f"{_BELOW}/<role_id>/inherited_to_projects", "identity:assignments:create", writes, endpoint="grant_inherited"
)
def grant_role(connection: Connection, role_id: str, **ids: str) -> Answer:
    operations.grant(calling(connection), _place(ids), _find(connection, role_id)["id"])
    return "", 204


@service.delete(f"{_PLACE}/<role_id>", "identity:assignments:delete")
@service.delete(
    f"{_BELOW}/<role_id>/inherited_to_projects", "identity:assignments:delete", writes, endpoint="revoke_inherited"
)
def revoke_role(connection: Connection, role_id: str, **ids: str) -> Answer:
    there = operations.revoke(calling(connection), _place(ids), _find(connection, role_id)["id"])
    return acknowledged(there, "role assignment with role", role_id)


@service.get("/role_assignments", "identity:assignments:list", reads)
def list_assignments(connection: Connection) -> Body:
    args, effective = request.args, bool(flag("effective"))
    inherited = None
    if "scope.OS-INHERIT:inherited_to" in args:
        if args["scope.OS-INHERIT:inherited_to"] != "projects":
            raise BadRequestError("scope.OS-INHERIT:inherited_to can be projects alone")
        inherited = True
    if effective and "group.id" in args:
        raise BadRequestError("Combining effective and group filter will always result in an empty list.")
    if effective and inherited and "scope.domain.id" in args:
        raise BadRequestError("Combining effective, domain and inherited filters will always result in an empty list.")
    project_ids = None
    if "scope.project.id" in args:
        project_ids = {args["scope.project.id"]}
        if flag("include_subtree"):
            project_ids |= {row["id"] for row in projects.projects_below(connection, args["scope.project.id"])}
    rows = assignments.list_assignments(
        connection,
        user_id=args.get("user.id"),
        group_id=args.get("group.id"),
        role_id=views.role_number(args["role.id"]) if "role.id" in args else None,
        project_ids=project_ids,
        domain_id=args.get("scope.domain.id"),
        inherited=inherited,
        effective=effective,
    )
    shown = [] if "scope.system" in args else rows  # nobody has a role in the system as a whole
    names = bool(flag("include_names"))
    return views.listing("role_assignments", [views.assignment(row, names) for row in shown])
