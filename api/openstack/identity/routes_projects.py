# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects, those above and below them, and their tags. An admin makes and changes them; users see their own."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    domains as domain_operations,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import (
    projects as project_operations,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.projects import ProjectRequest
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import projects
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.projects import find_project

from ...web import policy, services
from ...web.bodies import Answer, Body, Record
from ...web.context import current
from ...web.errors import BadRequestError
from ...web.services import reads, takes, writes, writes_checked
from ...work.calls import calling
from . import catalog, schemas, views
from .lists import acknowledged, described, domain_request, extra, flag, sees_domain
from .views import unknown

service = services.Service("identity_projects", "/identity/v3")


@service.get("/projects", "identity:projects:list", reads)
def list_projects(connection: Connection) -> Body:
    """List all projects. Those that the caller has a role in are at /auth/projects."""
    args = request.args
    if flag("is_domain"):
        rows = projects.list_domains(connection, args.get("name"), flag("enabled"))
        return views.listing("projects", map(views.domain_as_project, rows))
    conditions = {"shown_name": args.get("name"), "domain_id": args.get("domain_id"), "enabled": flag("enabled")}
    shown = [
        row
        for row in projects.projects(connection)
        if all(value in (None, row[key]) for key, value in conditions.items())
        and args.get("parent_id") in (None, row["parent_id"] or row["domain_id"])
        and _is_tagged(set(row["tags"]))
    ]
    return views.listing("projects", map(views.project, shown))


def _is_tagged(tags: set[str]) -> bool:
    """Tell whether the query's filters let a project with these tags through."""
    tests: dict[str, t.Callable[[set[str]], bool]] = {
        "tags": lambda requested_tags: requested_tags <= tags,
        "tags-any": lambda requested_tags: bool(requested_tags & tags),
        "not-tags": lambda requested_tags: not requested_tags <= tags,
        "not-tags-any": lambda requested_tags: not requested_tags & tags,
    }
    return all(test(set(request.args[name].split(","))) for name, test in tests.items() if name in request.args)


@service.post("/projects", "identity:projects:create", takes(schemas.CREATE_PROJECT), writes_checked)
def create_project(connection: Connection, body: Record) -> Answer:
    if body.get("is_domain"):
        if body.get("parent_id") is not None or body.get("domain_id") is not None:
            raise BadRequestError("only root projects are allowed to act as domains.")
        domain = domain_operations.create(calling(connection), domain_request(body))
        return {"project": views.domain_as_project(domain)}, 201
    row = project_operations.create(calling(connection), _request(body, schemas.CREATE_PROJECT))
    return {"project": views.project(row)}, 201


@service.get("/projects/<project_id>", "identity:projects:show", reads)
def show_project(connection: Connection, project_id: str) -> Body:
    domain = projects.domain_by_id(connection, project_id)
    if domain is not None and sees_domain(project_id):
        return {"project": views.domain_as_project(domain)}
    if project_id == catalog.CLOUD and policy.allowed("identity:projects:others"):
        return {"project": views.cloud_as_project()}
    row = _find_visible(connection, project_id)
    return {"project": {**views.project(row), **_relatives(connection, row)}}


def _relatives(connection: Connection, row: Record) -> Body:
    """Return what the query asks for of the projects above and below; others than admins see those of their own."""
    if flag("parents_as_list") and flag("parents_as_ids"):
        raise BadRequestError("Cannot use parents_as_list and parents_as_ids query params at the same time.")
    if flag("subtree_as_list") and flag("subtree_as_ids"):
        raise BadRequestError("Cannot use subtree_as_list and subtree_as_ids query params at the same time.")
    body: Body = {}
    mine = None if policy.allowed("identity:projects:others") else _own(connection)
    if flag("parents_as_list") or flag("parents_as_ids"):
        above = projects.projects_above(connection, row["id"])
        listed = [{"project": views.project(record)} for record in above if mine is None or record["id"] in mine]
        ids: Body | None = {row["domain_id"]: None}
        for record in reversed(above):
            ids = {record["id"]: ids}
        body["parents"] = ids if flag("parents_as_ids") else listed
    if flag("subtree_as_list") or flag("subtree_as_ids"):
        below = projects.projects_below(connection, row["id"])
        listed = [{"project": views.project(record)} for record in below if mine is None or record["id"] in mine]
        body["subtree"] = _tree(below, row["id"]) if flag("subtree_as_ids") else listed
    return body


def _tree(below: t.Sequence[Record], parent_id: str) -> Body | None:
    children = [record["id"] for record in below if record["parent_id"] == parent_id]
    return {number: _tree(below, number) for number in children} or None


@service.patch("/projects/<project_id>", "identity:projects:update", takes(schemas.UPDATE_PROJECT), writes_checked)
def update_project(connection: Connection, body: Record, project_id: str) -> Body:
    if projects.domain_by_id(connection, project_id) is not None:
        domain = domain_operations.update(calling(connection), project_id, domain_request(body))
        return {"project": views.domain_as_project(domain)}
    row = project_operations.update(calling(connection), project_id, _request(body, schemas.UPDATE_PROJECT))
    if body.get("is_domain"):
        raise BadRequestError("Update of `is_domain` is not allowed.")
    return {"project": views.project(row)}


def _request(body: Record, schema: schemas.Schema) -> ProjectRequest:
    values = described(body, "name", "enabled", "tags", "domain_id", "parent_id")
    return t.cast("ProjectRequest", {**values, "extra": extra(body, schema)})


@service.delete("/projects/<project_id>", "identity:projects:delete", writes)
def delete_project(connection: Connection, project_id: str) -> Answer:
    if projects.domain_by_id(connection, project_id) is not None:
        domain_operations.delete(calling(connection), project_id)
    else:
        project_operations.delete(calling(connection), project_id)
    return "", 204


def _find_visible(connection: Connection, project_id: str) -> Record:
    row = find_project(connection, project_id)
    if not (policy.allowed("identity:projects:others") or project_id in _own(connection)):
        raise unknown("project", project_id)
    return row


def _own(connection: Connection) -> set[str]:
    return {project["id"] for project in projects.projects_of_user(connection, current().user_id)}


# --- Tags -------------------------------------------------------------------------------------------------------------


@service.get("/projects/<project_id>/tags", "identity:project_tags:read", reads)
def list_tags(connection: Connection, project_id: str) -> Body:
    return _tags(_find_visible(connection, project_id))


@service.put("/projects/<project_id>/tags", "identity:project_tags:write", takes(schemas.REPLACE_TAGS), writes_checked)
def replace_tags(connection: Connection, tags: list[str], project_id: str) -> Body:
    return _tags(project_operations.replace_tags(calling(connection), project_id, tags))


@service.delete("/projects/<project_id>/tags", "identity:project_tags:write", writes)
def delete_tags(connection: Connection, project_id: str) -> Answer:
    project_operations.replace_tags(calling(connection), project_id, ())
    return "", 204


@service.get("/projects/<project_id>/tags/<tag>", "identity:project_tags:read", reads)
def check_tag(connection: Connection, project_id: str, tag: str) -> Answer:
    """Check a tag, as clients do with HEAD. Raises NotFoundError if the project has it not."""
    return acknowledged(tag in _find_visible(connection, project_id)["tags"], "project tag", tag)


@service.put("/projects/<project_id>/tags/<tag>", "identity:project_tags:write", writes_checked)
def add_tag(connection: Connection, project_id: str, tag: str) -> Answer:
    project_operations.add_tag(calling(connection), project_id, tag)
    return "", 201


@service.delete("/projects/<project_id>/tags/<tag>", "identity:project_tags:write", writes)
def remove_tag(connection: Connection, project_id: str, tag: str) -> Answer:
    project_operations.remove_tag(calling(connection), project_id, tag)
    return "", 204


def _tags(row: Record) -> Body:
    links = {"self": catalog.url(f"projects/{row['id']}/tags"), "previous": None, "next": None}
    return {"tags": row["tags"], "links": links}
