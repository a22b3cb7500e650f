# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens, and what one may do with them."""

from __future__ import annotations

import typing as t

from flask import Blueprint, Response, jsonify, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.tokens import revoke_token
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.projects import projects_of_user

from ...web import policy, validation
from ...web.context import MAX_TOKEN, Caller, current, find_caller
from ...web.errors import ForbiddenError
from ...web.ledger import reading_ledger, writing_ledger
from . import catalog, proof, schemas, views

Body = dict[str, t.Any]


blueprint = Blueprint("identity_tokens", __name__, url_prefix="/identity/v3/auth")
blueprint.before_request(policy.guard)

SUBJECT = "X-Subject-Token"


@blueprint.post("/tokens")
@policy.allows("identity:tokens:create")
def create_token() -> Response:
    asked = validation.body(schemas.AUTHENTICATE)["auth"]
    token, caller, credential = proof.issue(proof.prove(asked["identity"]), asked.get("scope"))
    return _rendered(caller, credential, token.text, 201)


@blueprint.get("/tokens")
@policy.allows("identity:tokens:show")
def show_token() -> Response:
    text = request.headers.get(SUBJECT, "")
    with reading_ledger() as connection:
        caller = _subject(connection, text)
        credential = proof.credential_of(connection, caller)
    return _rendered(caller, credential, text, 200)


@blueprint.delete("/tokens")
@policy.allows("identity:tokens:delete")
def delete_token() -> tuple[str, int]:
    text = request.headers.get(SUBJECT, "")
    with writing_ledger() as connection:
        _subject(connection, text)
        revoke_token(connection, text)
    return "", 204


def _subject(connection: Connection, text: str) -> Caller:
    """Whose token `text` is. Raises NotFoundError: for another user's, too, unless the caller is an admin."""
    caller = find_caller(connection, text) if 1 <= len(text) <= MAX_TOKEN else None
    if caller is None or not (caller.user_id == current().user_id or current().is_admin):
        raise NotFoundError("Could not find token.")
    return caller


def _rendered(caller: Caller, credential: t.Mapping[str, t.Any] | None, text: str, status: int) -> Response:
    with_catalog = "nocatalog" not in request.args
    response = jsonify(views.token(caller, catalog.base_url(), credential, with_catalog))
    response.status_code = status
    response.headers[SUBJECT] = text
    response.headers["Vary"] = "X-Auth-Token"
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.get("/catalog")
@policy.allows("identity:auth:catalog")
def show_catalog() -> Body:
    project_id = current().project_id
    if project_id is None:
        raise ForbiddenError("A token that is not scoped to a project has no catalog.")
    base = catalog.base_url()
    return {"catalog": catalog.catalog(base, project_id), "links": {"self": f"{base}/identity/v3/auth/catalog"}}


@blueprint.get("/projects")
@policy.allows("identity:auth:projects")
def list_projects() -> Body:
    """The projects that one can have a token for."""
    base = catalog.base_url()
    with reading_ledger() as connection:
        projects = projects_of_user(connection, current().user_id)
    return views.listing(
        "projects", [views.project(project, base) for project in projects], f"{base}/identity/v3/auth/projects"
    )


@blueprint.get("/domains")
@policy.allows("identity:auth:domains")
def list_domains() -> Body:
    """The domains that one can have a token for: roles are had in projects only."""
    return views.listing("domains", [], f"{catalog.base_url()}/identity/v3/auth/domains")
