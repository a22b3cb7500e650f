# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens, and what one may do with them; version documents, and what is the same for everybody."""

from __future__ import annotations

import typing as t

from flask import Response, jsonify, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    tokens as token_operations,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import projects
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.assignments import (
    domains_with_roles,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.projects import projects_of_user

from ...web import policy, services
from ...web.bodies import Answer, Body, Record, the_one
from ...web.context import MAX_TOKEN, Caller, current, find_caller
from ...web.errors import ForbiddenError
from ...web.services import reads, takes, writes_while_behind
from ...work.calls import calling
from . import authenticate, catalog, schemas, views

service = services.Service("identity_tokens", "/identity/v3/auth")

SUBJECT = "X-Subject-Token"


@service.post("/tokens", "identity:tokens:create", takes(schemas.AUTHENTICATE))
def create_token(body: Record) -> Response:
    token, caller, credential = authenticate.issue(authenticate.prove(body["identity"]), body.get("scope"))
    return _rendered(caller, credential, token.text, 201)


@service.get("/tokens", "identity:tokens:show", reads)
def show_token(connection: Connection) -> Response:
    text = request.headers.get(SUBJECT, "")
    caller = _subject(connection, text)
    credential = authenticate.credential_of(connection, caller)
    return _rendered(caller, credential, text, 200)


@service.delete("/tokens", "identity:tokens:delete", writes_while_behind)
def delete_token(connection: Connection) -> Answer:
    token_operations.revoke(calling(connection), request.headers.get(SUBJECT, ""))
    return "", 204


def _subject(connection: Connection, text: str) -> Caller:
    """Whose token `text` is. Raises NotFoundError: for another user's, too, unless the caller is an admin."""
    caller = find_caller(connection, text) if 1 <= len(text) <= MAX_TOKEN else None
    if caller is None or not (caller.user_id == current().user_id or policy.allowed("identity:tokens:others")):
        raise NotFoundError("Could not find token.")
    return caller


def _rendered(caller: Caller, credential: Record | None, text: str, status: int) -> Response:
    response = jsonify(views.token(caller, credential, "nocatalog" not in request.args))
    response.status_code = status
    response.headers.update({SUBJECT: text, "Vary": "X-Auth-Token", "Cache-Control": "no-store"})
    return response


@service.get("/catalog", "identity:auth:catalog")
def show_catalog() -> Body:
    caller = current()
    if caller.project_id is None and caller.domain_id is None:
        raise ForbiddenError("A token that is scoped to no project or domain has no catalog.")
    return {"catalog": catalog.catalog(caller.project_id), "links": {"self": catalog.url("auth/catalog")}}


@service.get("/projects", "identity:auth:projects", reads)
def list_projects(connection: Connection) -> Body:
    """The projects that one can have a token for."""
    return views.listing("projects", map(views.project, projects_of_user(connection, current().user_id)))


@service.get("/domains", "identity:auth:domains", reads)
def list_domains(connection: Connection) -> Body:
    """The domains that one can have a token for."""
    ids = domains_with_roles(connection, current().user_id)
    rows = [row for row in projects.list_domains(connection) if row["id"] in ids]
    return views.listing("domains", map(views.domain, rows))


# --- Discovery --------------------------------------------------------------------------------------------------------

discovery = services.Service("identity", "/identity")


def _version() -> Body:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": catalog.url("")}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    }


@discovery.get("/", "identity:versions")
def versions() -> Answer:
    return {"versions": {"values": [_version()]}}, 300


@discovery.get("/v3", "identity:versions")
def version() -> Answer:
    return {"version": _version()}, 200


def _put_into(word: str, everything: t.Callable[[], t.Sequence[Body]], filters: t.Sequence[str] = ()) -> None:
    """The routes by which the clients list and show what is the same for everybody. A list can be filtered."""
    plural = f"{word}s"

    def linked() -> list[Body]:
        return [{**body, "links": {"self": catalog.url(f"{plural}/{body['id']}")}} for body in everything()]

    @discovery.get(f"/v3/{plural}", f"identity:{plural}", endpoint=f"list_{plural}")
    def list_all() -> Answer:
        conditions = {name: request.args[name] for name in filters if name in request.args}
        return views.listing(plural, [body for body in linked() if conditions.items() <= body.items()]), 200

    @discovery.get(f"/v3/{plural}/<resource_id>", f"identity:{plural}", endpoint=f"show_{word}")
    def show(resource_id: str) -> Answer:
        return {word: the_one(linked(), "id", resource_id, views.unknown(word, resource_id))}, 200


def _regions() -> list[Body]:
    return [{"id": catalog.REGION, "description": "", "parent_region_id": None}]


_put_into("region", _regions, ["parent_region_id"])
_put_into("service", catalog.services, ["type", "name"])
_put_into("endpoint", lambda: catalog.endpoints(None), ["interface", "service_id", "region_id"])
