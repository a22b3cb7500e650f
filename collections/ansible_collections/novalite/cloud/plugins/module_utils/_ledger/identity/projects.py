# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects (Keystone's word for a tenant), those above and below them, and their tags."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, ForbiddenError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.ha_wishes import HaWishes
from ..._rules.records import check_text, checked_names
from ..db import clock, tables
from ..db.tables_identity import DEFAULT_DOMAIN, project_tag, token
from ..queries.counts import count, is_any
from ..queries.identity.projects import (
    FLOATING_IP,
    find_project,
    left_in,
    project_id_of,
    projects_above,
    projects_below,
)
from ..queries.lookups import lock_project
from .key_owners import remove_keys

NAME_LENGTH, MAX_DEPTH, MAX_TAGS = 64, 5, 80  # Keystone's
EDITABLE = ("name", "description", "enabled", "extra", "tags")


def ids_by_name(connection: sa.Connection, names: t.Collection[str]) -> dict[str, str]:
    """Return the ids of those projects that there are, by the names that playbooks know them by."""
    table = tables.project.c
    rows = connection.execute(sa.select(table.name, table.id).where(table.name.in_(names)))
    return {row.name: row.id for row in rows}


def set_wishes(connection: sa.Connection, project_id: str, wishes: HaWishes) -> None:
    """Write what is said of what new servers of a project do when their host dies; the rest stays."""
    if said := wishes.said():
        connection.execute(sa.update(tables.project).where(tables.project.c.id == project_id).values(**said))


def create_project(connection: sa.Connection, values: JsonMapping) -> str:
    """Make a project of `values` (see EDITABLE, `domain_id`, `parent_id`) and return its id.

    The domain must be there. Raises ConflictError for a name that it has already, NotFoundError for an unknown parent,
    NovaliteError for a parent that cannot be.
    """
    table = tables.project
    domain_id, parent_id = values["domain_id"], values.get("parent_id")
    if parent_id is not None:
        _check_parent(connection, parent_id, domain_id)
    (name,) = checked_names("project", [values], NAME_LENGTH)
    _refuse_taken(connection, name, domain_id)
    row: JsonObject = {"id": uuid.uuid4().hex, "name": name, "created_at": clock.seconds(connection)}
    if domain_id != DEFAULT_DOMAIN:
        # what playbooks know it by is one over all domains
        row |= {"name": f"{name[:31]}-{row['id']}", "display_name": name}
    connection.execute(sa.insert(table).values(**row, domain_id=domain_id, parent_id=parent_id))
    update_project(connection, row["id"], {key: values[key] for key in EDITABLE if key in values and key != "name"})
    return str(row["id"])


def _check_parent(connection: sa.Connection, parent_id: str, domain_id: str) -> None:
    """Raise an error unless the project can have others below it; it stays as long as the transaction lasts."""
    lock_project(connection, parent_id)
    parent = find_project(connection, parent_id)
    if parent["domain_id"] != domain_id:
        raise NovaliteError(
            f"Cannot create project, since it specifies its domain_id {domain_id}, but specifies a parent in a "
            f"different domain ({parent['domain_id']})."
        )
    above = [parent, *projects_above(connection, parent_id)]
    disabled = [row["id"] for row in above if not row["enabled"]]
    if disabled:
        raise NovaliteError(f"cannot create a project in a branch containing a disabled project: {disabled[0]}")
    if len(above) >= MAX_DEPTH:
        raise ForbiddenError(f"Max hierarchy depth reached for {parent_id} branch.")


def _refuse_taken(connection: sa.Connection, name: str, domain_id: str) -> None:
    if project_id_of(connection, name, domain_id) is not None:
        raise ConflictError(
            f"Conflict occurred attempting to store project - a project {name!r} exists in its domain already."
        )


def update_project(connection: sa.Connection, project_id: str, values: JsonMapping) -> None:
    """Set what of EDITABLE is in `values`. To disable a project ends its tokens.

    Raises ConflictError for a name that another one has, ForbiddenError for a state that does not fit the projects
    above and below.
    """
    table = tables.project
    before = find_project(connection, project_id)
    changed = {key: values[key] for key in ("description", "enabled", "extra") if key in values}
    if values.get("name", before["shown_name"]) != before["shown_name"]:
        (name,) = checked_names("project", [values], NAME_LENGTH)
        _refuse_taken(connection, name, before["domain_id"])
        changed["name" if before["display_name"] is None else "display_name"] = name
    if changed.get("enabled", before["enabled"]) != before["enabled"]:
        _check_branch(connection, project_id, changed["enabled"])
    if changed:
        connection.execute(sa.update(table).where(table.c.id == project_id).values(**changed))
    if changed.get("enabled") is False:
        connection.execute(sa.delete(token).where(token.c.project_id == project_id))
    if "tags" in values:
        replace_tags(connection, project_id, values["tags"])


def _check_branch(connection: sa.Connection, project_id: str, enabled: bool) -> None:
    if enabled and not all(row["enabled"] for row in projects_above(connection, project_id)):
        raise ForbiddenError(f"Cannot enable project {project_id} since it has disabled parents")
    if not enabled and any(row["enabled"] for row in projects_below(connection, project_id)):
        raise ForbiddenError(f"Cannot disable project {project_id} since its subtree contains enabled projects.")


def replace_tags(connection: sa.Connection, project_id: str, tags: t.Iterable[str]) -> None:
    """Let the project have these tags and no others."""
    connection.execute(sa.delete(project_tag).where(project_tag.c.project_id == project_id))
    for tag in sorted(set(tags)):
        add_tag(connection, project_id, tag)


def add_tag(connection: sa.Connection, project_id: str, tag: str) -> None:
    """Let the project have this tag as well. Raises NovaliteError for a tag that cannot be, and for too many."""
    if not tag or "/" in tag or "," in tag:
        raise NovaliteError(f"tag {tag[:60]!r} is empty or holds a comma or a slash: choose another one")
    values = {"project": project_id, "tag": check_text("tag", tag)}
    insert = "INSERT INTO project_tag (project_id, tag) VALUES (:project, :tag) ON CONFLICT DO NOTHING"
    connection.execute(sa.text(insert), values)
    if count(connection, project_tag.c.project_id == project_id) > MAX_TAGS:
        raise NovaliteError(f"a project has at most {MAX_TAGS} tags: remove some first")


def remove_tag(connection: sa.Connection, project_id: str, tag: str) -> bool:
    """Take a tag off the project; return whether it was there."""
    mine = (project_tag.c.project_id == project_id, project_tag.c.tag == tag)
    return connection.execute(sa.delete(project_tag).where(*mine)).rowcount > 0


def delete_project(connection: sa.Connection, project_id: str) -> None:
    """Remove a project.

    Raises NotFoundError, ForbiddenError while there are projects below it, and ConflictError for one that still has
    what left_in() names; the rest (keys, security groups, the history of deleted instances) goes with it.
    """
    name = find_project(connection, project_id)["shown_name"]
    lock_project(connection, project_id)
    if is_any(connection, tables.project.c.parent_id == project_id):
        raise ForbiddenError(f"Cannot delete the project {name!r} since it is not a leaf in the hierarchy.")
    for kind, _number, first in left_in(connection, project_id):
        verb, what = ("release it", first) if kind == FLOATING_IP else ("remove that", repr(first))
        raise ConflictError(f"project {name!r} still has the {kind} {what}: {verb} first")
    instances = tables.instance
    gone = sa.select(instances.c.uuid).where(instances.c.project_id == project_id)
    actions = tables.instance_action
    connection.execute(sa.delete(actions).where(actions.c.instance_uuid.in_(gone)))
    connection.execute(sa.delete(instances).where(instances.c.project_id == project_id))
    shared = tables.tables_images.image_member
    connection.execute(sa.delete(shared).where(shared.c.member == project_id))
    groups = tables.security_group
    rules = tables.security_group_rule
    # first: groups that name each other in their rules could not go one by one
    mine_too = sa.select(groups.c.id).where(groups.c.project_id == project_id)
    connection.execute(sa.delete(rules).where(rules.c.group_id.in_(mine_too)))
    remove_keys(connection, "project_id", [project_id])
    connection.execute(sa.delete(tables.project).where(tables.project.c.id == project_id))
