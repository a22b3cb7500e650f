# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Application credentials with their access rules, and EC2 credentials, of one's own."""

from __future__ import annotations

import secrets
import time

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    application_credentials as operations,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import ec2_credentials
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.roles import RoleChoice
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import (
    assignments,
    credential_records,
)
from ansible_collections.novalite.cloud.plugins.module_utils._rules.passwords import hash_password

from ...web import services
from ...web.bodies import Answer, Body, Record
from ...web.context import current
from ...web.errors import BadRequestError, as_bad_request
from ...web.ledger import credentials_seal, reading_ledger, writing_ledger
from ...web.services import reads, takes, writes
from ...web.times import parse
from ...work.calls import calling
from . import schemas, views
from .views import unknown

service = services.Service("identity_credentials", "/identity/v3/users/<user_id>")


@service.blueprint.before_request
def _check_own() -> None:
    """Credentials are their owner's alone: an admin has none of others."""
    user_id = (request.view_args or {})["user_id"]
    if user_id != current().user_id:
        raise unknown("user", user_id)


@service.get("/application_credentials", "identity:application_credentials:list", reads)
def list_application_credentials(connection: Connection, user_id: str) -> Body:
    rows = credential_records.list_application_credentials(connection, user_id, request.args.get("name"))
    return views.listing("application_credentials", [_shown(connection, row) for row in rows])


@service.post(
    "/application_credentials", "identity:application_credentials:create", takes(schemas.CREATE_APPLICATION_CREDENTIAL)
)
def create_application_credential(credential_body: Record, user_id: str) -> Answer:
    secret = credential_body.get("secret") or secrets.token_urlsafe(48)
    end = end_of(credential_body.get("expires_at"))
    requested = operations.CredentialRequest(
        credential_body["name"],
        hash_password(secret),
        credential_body.get("description") or "",
        credential_body.get("project_id"),
        role_choices(credential_body),
        bool(credential_body.get("unrestricted")),
        end,
        credential_body.get("access_rules") or (),
    )
    with writing_ledger() as connection, as_bad_request():
        row = operations.create(calling(connection), requested)
        body = _shown(connection, row)
    return {"application_credential": {**body, "secret": secret}}, 201


@service.get("/application_credentials/<credential_id>", "identity:application_credentials:show", reads)
def show_application_credential(connection: Connection, user_id: str, credential_id: str) -> Body:
    row = credential_records.find_application_credential(connection, user_id, credential_id)
    return {"application_credential": _shown(connection, row)}


@service.delete("/application_credentials/<credential_id>", "identity:application_credentials:delete", writes)
def delete_application_credential(connection: Connection, user_id: str, credential_id: str) -> Answer:
    operations.delete(calling(connection), credential_id)
    return "", 204


def _shown(connection: Connection, row: Record) -> Body:
    return views.application_credential(row, assignments.named_roles(connection, row["roles"]))


def role_choices(body: Record) -> list[RoleChoice]:
    """Return the roles that a body names."""
    return [
        RoleChoice(
            views.role_number(role["id"]) if "id" in role else None,
            role.get("name"),
            str(role.get("id") or role.get("name")),
        )
        for role in body.get("roles") or ()
    ]


def end_of(text: str | None) -> float | None:
    """Seconds since the epoch of an ISO 8601 time; without a zone it is UTC, as Keystone reads it."""
    if text is None:
        return None
    try:
        end = parse(text).timestamp()
    except (ValueError, OverflowError):
        raise BadRequestError(f"expires_at {text!r} is not a time: write 2030-01-31T12:00:00Z") from None
    if end <= time.time():
        raise BadRequestError(f"expires_at {text!r} has passed already")
    return end


# --- Access rules -----------------------------------------------------------------------------------------------------


@service.get("/access_rules", "identity:access_rules:list", reads)
def list_access_rules(connection: Connection, user_id: str) -> Body:
    conditions = {name: request.args[name] for name in credential_records.FIELDS if name in request.args}
    rows = [
        row for row in credential_records.list_access_rules(connection, user_id) if conditions.items() <= row.items()
    ]
    return views.listing("access_rules", [views.access_rule(row, user_id) for row in rows])


@service.get("/access_rules/<rule_id>", "identity:access_rules:show", reads)
def show_access_rule(connection: Connection, user_id: str, rule_id: str) -> Body:
    row = credential_records.find_access_rule(connection, user_id, rule_id)
    return {"access_rule": views.access_rule(row, user_id)}


@service.delete("/access_rules/<rule_id>", "identity:access_rules:delete", writes)
def delete_access_rule(connection: Connection, user_id: str, rule_id: str) -> Answer:
    operations.delete_access_rule(calling(connection), rule_id)
    return "", 204


# --- EC2 ------------------------------------------------------------------------------------------------------------


@service.get("/credentials/OS-EC2", "identity:ec2_credentials:list")
def list_ec2_credentials(user_id: str) -> Body:
    seal = credentials_seal()
    with reading_ledger() as connection:
        return views.listing(
            "credentials", map(views.ec2_credential, ec2_credentials.list_pairs(calling(connection), seal, user_id))
        )


@service.post("/credentials/OS-EC2", "identity:ec2_credentials:create", takes(schemas.CREATE_EC2_CREDENTIAL))
def create_ec2_credential(project_id: str, user_id: str) -> Answer:
    seal = credentials_seal()
    with writing_ledger() as connection:
        row = ec2_credentials.create(calling(connection), seal, user_id, project_id)
    return {"credential": views.ec2_credential(row)}, 201


@service.get("/credentials/OS-EC2/<access>", "identity:ec2_credentials:show")
def show_ec2_credential(user_id: str, access: str) -> Body:
    seal = credentials_seal()
    with reading_ledger() as connection:
        return {"credential": views.ec2_credential(ec2_credentials.find(calling(connection), seal, user_id, access))}


@service.delete("/credentials/OS-EC2/<access>", "identity:ec2_credentials:delete", writes)
def delete_ec2_credential(connection: Connection, user_id: str, access: str) -> Answer:
    ec2_credentials.delete(calling(connection), user_id, access)
    return "", 204
