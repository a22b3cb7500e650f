# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Common parts of requests to Identity and its answers: flags, filters, domains, attributes of the clients' own."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import domains
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.domains import DomainRequest

from ...web import policy
from ...web.bodies import Answer, Record
from ...web.context import current
from ...web.errors import BadRequestError
from . import schemas
from .views import unknown


def flag(name: str) -> bool | None:
    """Return a query parameter that is yes or no, as Keystone reads them; None where it is not there."""
    text = request.args.get(name)
    return None if text is None else text.lower() not in ("false", "0", "no", "off")


def described(body: Record, *names: str) -> Record:
    """Return the body's values under `names`, and its description, which is never null in the ledger."""
    values: Record = {key: body[key] for key in names if key in body}
    return {**values, "description": body["description"] or ""} if "description" in body else values


def domain_request(body: Record) -> DomainRequest:
    return t.cast("DomainRequest", described(body, "name", "enabled"))


def keeps_domain(body: Record, before: Record) -> None:
    """Raise BadRequestError where the body names another domain than the one that something is in."""
    if body.get("domain_id", before["domain_id"]) != before["domain_id"]:
        raise BadRequestError("Cannot change Domain ID")


def extra(body: Record, schema: schemas.Schema) -> Record:
    """Return the attributes of the client's own, of which null removes one."""
    (word,) = schema["required"]
    known = schema["properties"][word]["properties"]
    return {key: value for key, value in body.items() if key not in known}


def acknowledged(there: bool, what: str, identifier: str) -> Answer:
    """Answer without a body that something is, or was, there. Raises NotFoundError otherwise."""
    if not there:
        raise unknown(what, identifier)
    return "", 204


def own_domain() -> str:
    """Return the domain that the caller works in: of its token, or of the token's project."""
    caller = current()
    return caller.domain_id or caller.shown.get("project_domain_id") or domains.DEFAULT_DOMAIN


def domain_for(connection: Connection, domain_id: str | None) -> str:
    """Return the domain that something is to be made in, which stays until the transaction ends.

    Raises NotFoundError for one that is not there.
    """
    return str(domains.find_domain(connection, domain_id or own_domain(), lock=True)["id"])


def sees_domain(domain_id: str | None) -> bool:
    """Tell whether the caller may know of the domain: an admin of all, others of their own and their project's."""
    caller = current()
    mine = (None, caller.domain_id, caller.shown.get("user_domain_id"), caller.shown.get("project_domain_id"))
    return policy.allowed("identity:domains:others") or domain_id in mine
