# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""/v3/credentials: what users keep there. A user has its own, an admin those of all."""

from __future__ import annotations

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import kept_credentials, users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import assignments, projects

from ...web import policy, services
from ...web.bodies import Answer, Body, Record
from ...web.context import current
from ...web.errors import BadRequestError, as_bad_request
from ...web.ledger import credentials_seal, reading_ledger, writing_ledger
from ...web.services import takes
from . import schemas, views
from .routes_credentials import refuse_delegated
from .views import unknown

service = services.Service("identity_kept_credentials", "/identity/v3/credentials")


@service.blueprint.before_request
def _refuse_delegated() -> None:
    refuse_delegated("credentials")


@service.get("", "identity:credentials:list", strict_slashes=False)
def list_credentials() -> Body:
    """List the caller's credentials, for an administrator those of all users; by `user_id` and `type`."""
    requested_user_id = request.args.get("user_id")
    user_id = requested_user_id if policy.allowed("identity:credentials:others") else current().user_id
    rows: list[Record] = []
    if requested_user_id in (None, user_id):
        seal = credentials_seal()
        with reading_ledger() as connection:
            rows = kept_credentials.list_credentials(connection, seal, user_id, request.args.get("type"))
    return views.listing("credentials", map(views.credential, rows))


@service.post("", "identity:credentials:create", takes(schemas.CREATE_CREDENTIAL), strict_slashes=False)
def create_credential(body: Record) -> Answer:
    values = {"user_id": current().user_id, "project_id": None, **body}
    seal = credentials_seal()
    with writing_ledger() as connection:
        if values["user_id"] != current().user_id and not policy.allowed("identity:credentials:others"):
            raise unknown("user", values["user_id"])
        users.find_user(connection, values["user_id"])
        _check_project(connection, values)
        with as_bad_request():
            row = kept_credentials.create_credential(connection, seal, values)
    return {"credential": views.credential(row)}, 201


@service.get("/<credential_id>", "identity:credentials:show")
def show_credential(credential_id: str) -> Body:
    seal = credentials_seal()
    with reading_ledger() as connection:
        return {
            "credential": views.credential(kept_credentials.find_credential(connection, seal, credential_id, _own()))
        }


@service.patch("/<credential_id>", "identity:credentials:update", takes(schemas.UPDATE_CREDENTIAL))
def update_credential(body: Record, credential_id: str) -> Body:
    seal = credentials_seal()
    with writing_ledger() as connection:
        before = kept_credentials.find_credential(connection, seal, credential_id, _own())
        if (
            body.get("user_id", before["user_id"]) != before["user_id"]
            or body.get("id", credential_id) != credential_id
        ):
            raise BadRequestError("a credential stays its user's, and keeps its id: make a new one")
        _check_project(connection, {**before, **body})
        with as_bad_request():
            row = kept_credentials.update_credential(connection, seal, before, body)
    return {"credential": views.credential(row)}


@service.delete("/<credential_id>", "identity:credentials:delete")
def delete_credential(credential_id: str) -> Answer:
    seal = credentials_seal()
    with writing_ledger() as connection:
        record = kept_credentials.find_credential(connection, seal, credential_id, _own())
        kept_credentials.delete_credential(connection, record)
    return "", 204


def _own() -> str | None:
    """Return whose credentials the caller may name: None for those of all."""
    return None if policy.allowed("identity:credentials:others") else current().user_id


def _check_project(connection: Connection, values: Record) -> None:
    """Raise NotFoundError for a project that is not there, or in which the credential's user has no role."""
    project_id = values["project_id"]
    if project_id is None:
        return
    there = projects.project_by_id(connection, project_id) is not None
    if not there or not (
        policy.allowed("identity:credentials:others")
        or assignments.roles_in_project(connection, values["user_id"], project_id)
    ):
        raise unknown("project", project_id)
