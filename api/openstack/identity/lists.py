# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Common parts of requests to Identity and its answers: flags, filters, domains, attributes of the clients' own."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.domains import DomainRequest

from ...web import policy
from ...web.bodies import Answer, Record
from ...web.context import current
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


def sees_domain(domain_id: str | None) -> bool:
    """Tell whether the caller may know of the domain: an admin of all, others of their own and their project's."""
    caller = current()
    mine = (None, caller.domain_id, caller.shown.get("user_domain_id"), caller.shown.get("project_domain_id"))
    return policy.allowed("identity:domains:others") or domain_id in mine
