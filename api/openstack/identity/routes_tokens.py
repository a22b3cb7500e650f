# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens, and what one may do with them."""

from __future__ import annotations

from flask import Response, jsonify, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.tokens import revoke_token
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.projects import projects_of_user

from ...web import services
from ...web.bodies import Answer, Body, Record
from ...web.context import MAX_TOKEN, Caller, current, find_caller
from ...web.errors import ForbiddenError
from ...web.services import reads, takes, writes
from . import authenticate, catalog, schemas, views

service = services.Service("identity_tokens", "/identity/v3/auth")

SUBJECT = "X-Subject-Token"


@service.post("/tokens", "identity:tokens:create", takes(schemas.AUTHENTICATE))
def create_token(asked: Record) -> Response:
    token, caller, credential = authenticate.issue(authenticate.prove(asked["identity"]), asked.get("scope"))
    return _rendered(caller, credential, token.text, 201)


@service.get("/tokens", "identity:tokens:show", reads)
def show_token(connection: Connection) -> Response:
    text = request.headers.get(SUBJECT, "")
    caller = _subject(connection, text)
    credential = authenticate.credential_of(connection, caller)
    return _rendered(caller, credential, text, 200)


@service.delete("/tokens", "identity:tokens:delete", writes)
def delete_token(connection: Connection) -> Answer:
    text = request.headers.get(SUBJECT, "")
    _subject(connection, text)
    revoke_token(connection, text)
    return "", 204


def _subject(connection: Connection, text: str) -> Caller:
    """Whose token `text` is. Raises NotFoundError: for another user's, too, unless the caller is an admin."""
    caller = find_caller(connection, text) if 1 <= len(text) <= MAX_TOKEN else None
    if caller is None or not (caller.user_id == current().user_id or current().is_admin):
        raise NotFoundError("Could not find token.")
    return caller


def _rendered(caller: Caller, credential: Record | None, text: str, status: int) -> Response:
    response = jsonify(views.token(caller, credential, "nocatalog" not in request.args))
    response.status_code = status
    response.headers.update({SUBJECT: text, "Vary": "X-Auth-Token", "Cache-Control": "no-store"})
    return response


@service.get("/catalog", "identity:auth:catalog")
def show_catalog() -> Body:
    project_id = current().project_id
    if project_id is None:
        raise ForbiddenError("A token that is not scoped to a project has no catalog.")
    return {"catalog": catalog.catalog(project_id), "links": {"self": catalog.url("auth/catalog")}}


@service.get("/projects", "identity:auth:projects", reads)
def list_projects(connection: Connection) -> Body:
    """The projects that one can have a token for."""
    return views.listing("projects", map(views.project, projects_of_user(connection, current().user_id)))


@service.get("/domains", "identity:auth:domains")
def list_domains() -> Body:
    """The domains that one can have a token for: roles are had in projects only."""
    return views.listing("domains", [])
