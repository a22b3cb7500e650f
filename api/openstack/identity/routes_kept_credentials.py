# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""/v3/credentials: what users keep there. A user has its own, an admin those of all."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    kept_credentials as operations,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.kept_credentials import (
    CredentialChange,
    CredentialRequest,
)

from ...web import services
from ...web.bodies import Answer, Body, Record
from ...web.errors import as_bad_request
from ...web.ledger import credentials_seal, reading_ledger, writing_ledger
from ...web.services import takes, writes
from ...work.calls import calling
from . import schemas, views

service = services.Service("identity_kept_credentials", "/identity/v3/credentials")


@service.get("", "identity:credentials:list", strict_slashes=False)
def list_credentials() -> Body:
    """List the caller's credentials, for an administrator those of all users; by `user_id` and `type`."""
    seal = credentials_seal()
    with reading_ledger() as connection:
        rows = operations.list_credentials(
            calling(connection), seal, request.args.get("user_id"), request.args.get("type")
        )
    return views.listing("credentials", map(views.credential, rows))


@service.post("", "identity:credentials:create", takes(schemas.CREATE_CREDENTIAL), strict_slashes=False)
def create_credential(body: Record) -> Answer:
    seal = credentials_seal()
    with writing_ledger() as connection, as_bad_request():
        row = operations.create(calling(connection), seal, t.cast("CredentialRequest", body))
    return {"credential": views.credential(row)}, 201


@service.get("/<credential_id>", "identity:credentials:show")
def show_credential(credential_id: str) -> Body:
    seal = credentials_seal()
    with reading_ledger() as connection:
        return {"credential": views.credential(operations.find(calling(connection), seal, credential_id))}


@service.patch("/<credential_id>", "identity:credentials:update", takes(schemas.UPDATE_CREDENTIAL))
def update_credential(body: Record, credential_id: str) -> Body:
    seal = credentials_seal()
    with writing_ledger() as connection, as_bad_request():
        row = operations.update(calling(connection), seal, credential_id, t.cast("CredentialChange", body))
    return {"credential": views.credential(row)}


@service.delete("/<credential_id>", "identity:credentials:delete", writes)
def delete_credential(connection: Connection, credential_id: str) -> Answer:
    operations.delete(calling(connection), credential_id)
    return "", 204
