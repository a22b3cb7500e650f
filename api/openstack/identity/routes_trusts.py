# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trusts (OS-TRUST): a user's, who lets another one act with some of its roles. Both of them see one."""

from __future__ import annotations

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import trusts as operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.trusts import TrustRequest
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import assignments

from ...web import services
from ...web.bodies import Answer, Body, Record
from ...web.errors import BadRequestError
from ...web.services import reads, takes, writes, writes_checked
from ...work.calls import calling
from . import schemas, views
from .routes_credentials import end_of, role_choices
from .views import unknown

service = services.Service("identity_trusts", "/identity/v3/OS-TRUST/trusts")


@service.get("", "identity:trusts:list", reads, strict_slashes=False)
def list_trusts(connection: Connection) -> Body:
    """List the caller's own trusts, as `trustor_user_id` or `trustee_user_id`; an administrator lists those of all."""
    trustor, trustee = request.args.get("trustor_user_id"), request.args.get("trustee_user_id")
    rows = operations.list_trusts(calling(connection), trustor, trustee)
    return views.listing("trusts", map(views.trust, rows))


@service.post("", "identity:trusts:create", takes(schemas.CREATE_TRUST), writes_checked, strict_slashes=False)
def create_trust(connection: Connection, body: Record) -> Answer:
    if body.get("allow_redelegation"):
        raise BadRequestError("allow_redelegation: a trust cannot be handed on; leave it out")
    requested = TrustRequest(
        body["trustor_user_id"],
        body["trustee_user_id"],
        body.get("project_id"),
        role_choices(body),
        body["impersonation"],
        end_of(body.get("expires_at")),
        body.get("remaining_uses"),
    )
    row = operations.create(calling(connection), requested)
    return {"trust": views.trust(row, _roles(connection, row))}, 201


@service.get("/<trust_id>", "identity:trusts:show", reads)
def show_trust(connection: Connection, trust_id: str) -> Body:
    row = operations.find(calling(connection), trust_id)
    return {"trust": views.trust(row, _roles(connection, row))}


@service.delete("/<trust_id>", "identity:trusts:delete", writes)
def delete_trust(connection: Connection, trust_id: str) -> Answer:
    operations.delete(calling(connection), trust_id)
    return "", 204


@service.get("/<trust_id>/roles", "identity:trusts:show", reads)
def list_roles(connection: Connection, trust_id: str) -> Body:
    return views.listing("roles", map(views.role, _roles(connection, operations.find(calling(connection), trust_id))))


@service.get("/<trust_id>/roles/<role_id>", "identity:trusts:show", reads)
def show_role(connection: Connection, trust_id: str, role_id: str) -> Body:
    for role in _roles(connection, operations.find(calling(connection), trust_id)):
        if views.role_id(role["id"]) == role_id:
            return {"role": views.role(role)}
    raise unknown("role", role_id)


def _roles(connection: Connection, row: Record) -> list[Record]:
    """Return the records of a trust's roles; of those that were deleted meanwhile there is none."""
    there = assignments.named_roles(connection, row["roles"])
    return [assignments.find_role(connection, role_id) for role_id in row["roles"] if role_id in there]
