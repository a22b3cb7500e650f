# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects (Keystone's word for a tenant) and their quotas."""

from __future__ import annotations

import time
import typing as t
import uuid

import sqlalchemy as sa

from ..._addressing.pools import to_text
from ..._errors import ConflictError
from ..._json import JsonMapping, JsonObject
from ..._rules.records import Changes, checked_names
from ..db import tables
from ..db.tables_networking import address_scope, subnet_pool
from ..db.tables_volumes import volume
from .quotas import checked_quotas, quota_limits, write_quotas

NAME_LENGTH = 64  # Keystone's


def write_projects(connection: sa.Connection, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Make or change these projects, {"name", "quotas"}: `projects`, `changed` and `diff`, as modules return them.

    Quotas that are not named stay as they are.
    """
    names = checked_names("project", items, NAME_LENGTH)
    ids = _ids(connection, names)
    table = tables.project
    changes = Changes()
    for item, name in zip(items, names):
        quotas = checked_quotas(item["quotas"] or {})
        before = {"quotas": quota_limits(connection, ids[name])} if name in ids else None
        if before is None:
            ids[name] = uuid.uuid4().hex
            connection.execute(sa.insert(table).values(id=ids[name], name=name, created_at=int(time.time())))
        write_quotas(connection, ids[name], quotas)
        changes.note(name, before, {"quotas": quota_limits(connection, ids[name])})
    return changes.result(
        "projects", [{"id": ids[name], "name": name, "quotas": quota_limits(connection, ids[name])} for name in names]
    )


def remove_projects(connection: sa.Connection, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Remove the projects that `items` name.

    Raises ConflictError for one that still has instances, networks, images, volumes, subnet pools, address scopes or
    floating IPs; the rest (keys, security groups, the history of deleted instances) goes with it.
    """
    names = checked_names("project", items, NAME_LENGTH)
    ids = _ids(connection, names)
    changes = Changes()
    for name in names:
        if name in ids:
            changes.note(name, {"quotas": quota_limits(connection, ids[name])}, None)
            _remove(connection, ids[name], name)
    return changes.result("projects", [])


def _ids(connection: sa.Connection, names: t.Sequence[str]) -> dict[str, str]:
    table = tables.project
    return {row.name: row.id for row in connection.execute(sa.select(table).where(table.c.name.in_(names)))}


def update_project(connection: sa.Connection, project_id: str, values: JsonMapping) -> None:
    """Set `name`, `enabled` or `description` of a project. Raises ConflictError for a name that another one has."""
    table = tables.project
    if "name" in values:
        (name,) = checked_names("project", [values], NAME_LENGTH)
        other = sa.select(table.c.id).where(table.c.name == name, table.c.id != project_id)
        if connection.execute(other).first():
            raise ConflictError(f"Conflict occurred attempting to store project - a project {name!r} exists.")
    if values:
        connection.execute(sa.update(table).where(table.c.id == project_id).values(**values))


def _remove(connection: sa.Connection, project_id: str, name: str) -> None:
    instances = tables.instance
    for table, mine, kind in (
        (instances, sa.and_(instances.c.project_id == project_id, instances.c.deleted == 0), "instance"),
        (tables.network, tables.network.c.owner == project_id, "network"),
        (tables.image, tables.image.c.owner == project_id, "image"),
        (volume, volume.c.project_id == project_id, "volume"),
        (subnet_pool, subnet_pool.c.project_id == project_id, "subnet pool"),
        (address_scope, address_scope.c.project_id == project_id, "address scope"),
    ):
        left = connection.execute(sa.select(table.c.name).where(mine).order_by(table.c.name)).scalars().first()
        if left is not None:
            raise ConflictError(f"project {name!r} still has the {kind} {left!r}: remove that first")
    floating = tables.floating_ip
    held = sa.select(floating.c.address).where(floating.c.project_id == project_id).order_by(floating.c.address)
    address = connection.execute(held.limit(1)).scalar()
    if address is not None:
        raise ConflictError(f"project {name!r} still has the floating IP {to_text(address)}: release it first")
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
    connection.execute(sa.delete(tables.project).where(tables.project.c.id == project_id))
