# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trusts (OS-TRUST): a user's, who lets another one act with some of its roles. Both of them see one."""

from __future__ import annotations

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import roles, trusts, users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import assignments, projects

from ...web import policy, services
from ...web.bodies import Answer, Body, Record
from ...web.context import current
from ...web.errors import BadRequestError, ForbiddenError
from ...web.services import reads, takes, writes
from . import schemas, views
from .routes_credentials import end_of, refuse_delegated
from .views import unknown

service = services.Service("identity_trusts", "/identity/v3/OS-TRUST/trusts")


@service.get("", "identity:trusts:list", reads, strict_slashes=False)
def list_trusts(connection: Connection) -> Body:
    """List the caller's own trusts, as `trustor_user_id` or `trustee_user_id`; an administrator lists those of all."""
    refuse_delegated("trusts")
    trustor, trustee = request.args.get("trustor_user_id"), request.args.get("trustee_user_id")
    if current().user_id not in (trustor, trustee) and not policy.allowed("identity:trusts:others"):
        raise ForbiddenError("You may list the trusts that you gave or were given: name yourself as one of the two.")
    return views.listing("trusts", map(views.trust, trusts.list_trusts(connection, trustor, trustee)))


@service.post("", "identity:trusts:create", takes(schemas.CREATE_TRUST), writes, strict_slashes=False)
def create_trust(connection: Connection, body: Record) -> Answer:
    refuse_delegated("trusts")
    if body["trustor_user_id"] != current().user_id:
        raise ForbiddenError("The authenticated user should match the trustor")
    if body.get("allow_redelegation"):
        raise BadRequestError("allow_redelegation: a trust cannot be handed on; leave it out")
    project_id = body.get("project_id")
    if project_id is None:
        raise BadRequestError("project_id: a trust is for roles in a project; give one")
    if not body.get("roles"):
        raise ForbiddenError("At least one role should be specified")
    users.find_user(connection, body["trustee_user_id"])
    if projects.project_by_id(connection, project_id) is None:
        raise unknown("project", project_id)
    held = assignments.roles_in_project(connection, current().user_id, project_id)
    row = trusts.create_trust(
        connection,
        trustor_user_id=current().user_id,
        trustee_user_id=body["trustee_user_id"],
        project_id=project_id,
        roles={_among(held, role) for role in body["roles"]},
        impersonation=body["impersonation"],
        expires_at=end_of(body.get("expires_at")),
        remaining_uses=body.get("remaining_uses"),
    )
    return {"trust": views.trust(row, _roles(connection, row))}, 201


def _among(held: assignments.Names, role_body: Record) -> str:
    """Return the ledger's id of a role that the trustor has now. Raises NotFoundError."""
    names = {role_id: held.get(role_id, role_id) for role_id in roles.implied(held)}
    for role_id, name in names.items():
        if views.role_id(role_id) == role_body.get("id") or ("id" not in role_body and name == role_body.get("name")):
            return role_id
    raise unknown("role", str(role_body.get("id") or role_body.get("name")))


@service.get("/<trust_id>", "identity:trusts:show", reads)
def show_trust(connection: Connection, trust_id: str) -> Body:
    row = _find(connection, trust_id)
    return {"trust": views.trust(row, _roles(connection, row))}


@service.delete("/<trust_id>", "identity:trusts:delete", writes)
def delete_trust(connection: Connection, trust_id: str) -> Answer:
    row = _find(connection, trust_id)
    if row["trustor_user_id"] != current().user_id and not policy.allowed("identity:trusts:others"):
        raise ForbiddenError("Only admin or trustor can delete a trust")
    trusts.delete_trust(connection, trust_id)
    return "", 204


@service.get("/<trust_id>/roles", "identity:trusts:show", reads)
def list_roles(connection: Connection, trust_id: str) -> Body:
    return views.listing("roles", map(views.role, _roles(connection, _find(connection, trust_id))))


@service.get("/<trust_id>/roles/<role_id>", "identity:trusts:show", reads)
def show_role(connection: Connection, trust_id: str, role_id: str) -> Body:
    for role in _roles(connection, _find(connection, trust_id)):
        if views.role_id(role["id"]) == role_id:
            return {"role": views.role(role)}
    raise unknown("role", role_id)


def _find(connection: Connection, trust_id: str) -> Record:
    refuse_delegated("trusts")
    row = trusts.find_trust(connection, trust_id)
    if current().user_id not in (row["trustor_user_id"], row["trustee_user_id"]) and not policy.allowed(
        "identity:trusts:others"
    ):
        raise unknown("trust", trust_id)
    return row


def _roles(connection: Connection, row: Record) -> list[Record]:
    """Return the records of a trust's roles; of those that were deleted meanwhile there is none."""
    there = roles.named_roles(connection, row["roles"])
    return [roles.find_role(connection, role_id) for role_id in row["roles"] if role_id in there]
