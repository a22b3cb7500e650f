# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on projects and their tags, for every door."""

from __future__ import annotations

import typing as t

from ...._errors import ForbiddenError, NotFoundError, NovaliteError
from ...._json import JsonMapping, JsonObject
from ...._rules import ha_wishes
from ...._rules.records import Changes, checked_names
from ...identity import projects
from ...identity import quotas as quota_records
from ...queries.identity.projects import Project, domain_by_id, find_project, project_by_id, project_wishes
from ...queries.identity.quota_records import quota_limits
from ...queries.lookups import DEFAULT_PROJECT
from ..call import Call
from . import quotas
from .attributes import MOST, Attributes, keep_domain, merged
from .domains import place_for


class ProjectRequest(t.TypedDict, total=False):
    """Values of a project. `extra` are changes, in which None removes an attribute. `parent_id` is a project or, for
    the top, a domain; a project that names neither that nor `domain_id` is made in the caller's domain."""

    name: str
    enabled: bool
    description: str
    tags: t.Sequence[str]
    extra: Attributes
    domain_id: str | None
    parent_id: str | None


def create(call: Call, request: ProjectRequest) -> Project:
    """Make a project. Raises NotFoundError for a domain or a parent that is not there, ConflictError for a name that is
    taken, NovaliteError and ForbiddenError for a parent that cannot be."""
    parent_id = request.get("parent_id") or None
    parent = None if parent_id is None else project_by_id(call.connection, parent_id)
    domain_id = request.get("domain_id") or (parent_id if parent is None else parent["domain_id"])
    if parent is None and parent_id is not None:
        # the top of a domain is the domain, as a project that acts as one
        if domain_by_id(call.connection, parent_id) is None:
            raise NotFoundError(f"Could not find project: {parent_id[:64]}.")
        if parent_id != domain_id:
            raise NovaliteError(f"parent_id {parent_id} is another domain than domain_id {domain_id}")
        parent_id = None
    place = place_for(call, domain_id)
    extra = merged({}, request.get("extra", {}), MOST)
    values = {**request, "extra": extra, "domain_id": place, "parent_id": parent_id}
    return find_project(call.connection, projects.create_project(call.connection, values))


def update(call: Call, project_id: str, request: ProjectRequest) -> Project:
    """Change a project; to disable it ends its tokens. Raises NotFoundError, ConflictError for a name that is taken,
    NovaliteError for another domain, ForbiddenError for another parent and for a state that does not fit the projects
    above and below."""
    before = find_project(call.connection, project_id)
    keep_domain(before["domain_id"], request.get("domain_id", before["domain_id"]))
    parent_id = before["parent_id"] or before["domain_id"]
    if request.get("parent_id", parent_id) != parent_id:
        raise ForbiddenError("Update of `parent_id` is not allowed.")
    extra = {"extra": merged(before["extra"], request["extra"], MOST)} if "extra" in request else {}
    projects.update_project(call.connection, project_id, {**request, **extra})
    return find_project(call.connection, project_id)


def delete(call: Call, project_id: str) -> None:
    """Remove a project. Raises NotFoundError, ConflictError while something is in it, ForbiddenError while there are
    projects below it."""
    projects.delete_project(call.connection, project_id)


def replace_tags(call: Call, project_id: str, tags: t.Collection[str]) -> Project:
    """Let a project have these tags and no others. Raises NotFoundError, NovaliteError for tags that cannot be."""
    find_project(call.connection, project_id)
    projects.replace_tags(call.connection, project_id, tags)
    return find_project(call.connection, project_id)


def add_tag(call: Call, project_id: str, tag: str) -> None:
    """Let a project have a tag as well. Raises NotFoundError, NovaliteError for a tag that cannot be."""
    find_project(call.connection, project_id)
    projects.add_tag(call.connection, project_id, tag)


def remove_tag(call: Call, project_id: str, tag: str) -> None:
    """Take a tag off a project. Raises NotFoundError, for a tag that it has not as well."""
    find_project(call.connection, project_id)
    if not projects.remove_tag(call.connection, project_id, tag):
        raise NotFoundError(f"Could not find project tag: {tag[:64]}.")


def write(call: Call, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Make or change the projects that a playbook names, {"name", "quotas"}; return `projects`, `changed` and `diff`.

    Quotas that are not named stay as they are, the others may be below what there is. The project in which playbooks
    act where none is named is the operator's own: a new one of which no quotas are said has no limits.
    """
    names = checked_names("project", items, projects.NAME_LENGTH)
    changes, records = Changes(), []
    ids = projects.ids_by_name(call.connection, names)
    for item, name in zip(items, names):
        project_id, wishes = ids.get(name), ha_wishes.of_entry(name, item)
        before = None if project_id is None else _shown(call, project_id)
        is_own = before is None and name == DEFAULT_PROJECT
        limits = quota_records.checked_quotas(item["quotas"] or (quota_records.EVERYTHING if is_own else {}))
        if project_id is None:
            project_id = str(create(call, {"name": name})["id"])
        quotas.set_limits(call, project_id, limits, force=True)
        projects.set_wishes(call.connection, project_id, wishes)
        after = _shown(call, project_id)
        changes.note(name, before, after)
        records.append({"id": project_id, "name": name, **after})
    return changes.result("projects", records)


def remove(call: Call, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Remove the projects that a playbook names, and that are there. Raises as delete()."""
    changes = Changes()
    names = checked_names("project", items, projects.NAME_LENGTH)
    ids = projects.ids_by_name(call.connection, names)
    for name in names:
        if name in ids:
            changes.note(name, {"quotas": quota_limits(call.connection, ids[name])}, None)
            delete(call, ids[name])
    return changes.result("projects", [])


def _shown(call: Call, project_id: str) -> JsonObject:
    """Return what a module shows of a project: its quotas, and what it wishes for its servers if it says so."""
    wishes = project_wishes(call.connection, project_id)
    return {"quotas": quota_limits(call.connection, project_id), **wishes.said()}
