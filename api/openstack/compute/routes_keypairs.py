# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key pairs: the user's own, and beside them those that the operator shares with all of the project. Of two of one name
the user's own is meant; a manager removes shared ones.

An administrator who names a user means that user's own.
"""

from __future__ import annotations

import dataclasses
import zlib

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import keypairs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.keypair_records import (
    KeyPair,
    keypairs_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import user_records

from ...web import validation
from ...web.bodies import Answer, Body, same, the_one
from ...web.context import current
from ...web.errors import BadRequestError, ForbiddenError, as_bad_request
from ...web.ledger import reading_ledger, writing_ledger
from ...web.schemas import NAME, Schema, wrapped
from ...web.times import precise
from ...work import keys
from ...work.calls import calling
from .blueprint import CLEAN, compute, from_version, known, microversion, page


@dataclasses.dataclass(frozen=True)
class _Owner:
    user_id: str
    shared_in: str  # the project whose shared keys are meant, too; "": none's


@compute.get("/os-keypairs", "compute:keypairs:read", known(CLEAN, "user_id limit marker"))
def list_keypairs() -> Answer:
    with reading_ledger() as connection:
        owner = _owner(connection, request.args.get("user_id"))
        rows = keypairs_of(connection, owner.shared_in, owner.user_id)
    if microversion() < (2, 35):
        return {"keypairs": [{"keypair": _brief(row)} for row in rows]}, 200
    return page("keypairs", rows, lambda row: {"keypair": _brief(row)}, "name", "keypair"), 200


@compute.get("/os-keypairs/<name>", "compute:keypairs:read", known(CLEAN, "user_id"))
def show_keypair(name: str) -> Answer:
    with reading_ledger() as connection:
        owner = _owner(connection, request.args.get("user_id"))
        row = _row(connection, owner, name)
    return {
        "keypair": {
            **_brief(row),
            "user_id": row["user_id"],
            # Nova's are numbered; clients show it and do nothing else with it
            "id": zlib.crc32(f"{row['user_id'] or row['project_id']}/{row['name']}".encode()) & 0x7FFFFFFF,
            "created_at": precise(row["created_at"]),
            "deleted": False,
            "deleted_at": None,
            "updated_at": None,
        }
    }, 200


@compute.post("/os-keypairs", "compute:keypairs:write")
def create_keypair() -> Answer:
    body = validation.body(_schema())["keypair"]
    name = body["name"]
    if body.get("type", "ssh") != "ssh":
        raise BadRequestError("Invalid input for field/attribute type. Value: x509. There are keys for ssh alone.")
    with as_bad_request():
        keypairs.check_name(name)
    private = None
    if "public_key" in body:
        public = body["public_key"]
    else:
        _key, private, public = keys.new_rsa_key("generated-by-novalite")
    with writing_ledger() as connection, as_bad_request():
        owner = _owner(connection, body.get("user_id"))
        row = keypairs.create(calling(connection), owner.user_id, name, public)
    secret = {} if private is None else {"private_key": private}
    return {"keypair": {**_brief(row), "user_id": owner.user_id, **secret}}, 201 if microversion() >= (2, 2) else 200


@compute.delete("/os-keypairs/<name>", "compute:keypairs:write", known(CLEAN, "user_id"))
def delete_keypair(name: str) -> Answer:
    with writing_ledger() as connection:
        keypairs.delete(calling(connection), _owner(connection, request.args.get("user_id")).user_id, name)
    return "", 204 if microversion() >= (2, 2) else 202


def _schema() -> Schema:
    properties: Schema = {
        "name": NAME,
        "public_key": {**NAME, "maxLength": 16384},
        **from_version((2, 2), {"type": {"enum": ["ssh", "x509"]}}),
        **from_version((2, 10), {"user_id": NAME}),
    }
    return wrapped("keypair", properties, ["name", "public_key"] if microversion() >= (2, 92) else ["name"])


def _brief(row: KeyPair) -> Body:
    return {**same(row, "name", "public_key", "fingerprint"), **from_version((2, 2), {"type": row["type"]})}


def _row(connection: Connection, owner: _Owner, name: str) -> KeyPair:
    missing = NotFoundError(f"Keypair {name[:255]} not found for user {owner.user_id}")
    return the_one(keypairs_of(connection, owner.shared_in, owner.user_id), "name", name, missing)


def _owner(connection: Connection, user_id: str | None) -> _Owner:
    """Whose keys are meant: the caller's, unless an administrator names another user."""
    caller = current()
    if user_id is None or user_id == caller.user_id or microversion() < (2, 10):
        return _Owner(caller.user_id, caller.project)
    if not caller.is_admin:
        raise ForbiddenError("Policy doesn't allow os_compute_api:os-keypairs of another user to be performed.")
    return _Owner(user_records.find_user(connection, user_id)["id"], "")
