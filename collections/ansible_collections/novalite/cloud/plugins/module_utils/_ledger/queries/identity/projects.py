# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects and their domains: which there are, and whose. Reads only.

A project's `name` is the handle that playbooks know it by; in another domain than the default one it differs from
`shown_name`, which Identity shows.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...._addressing.pools import to_text
from ...._errors import NotFoundError
from ...._json import JsonObject
from ...._rules.ha_wishes import HaWishes
from ...db import tables, tables_identity
from ...db.tables import project
from ...db.tables_identity import domain, project_tag
from ...db.tables_images import server_backup
from ...db.tables_networking import address_scope, port, router, subnet_pool
from ...db.tables_volumes import volume, volume_backup, volume_snapshot, volume_transfer
from ..counts import equal
from .assignments import ancestry, projects_with_roles

Record = JsonObject
Domain = JsonObject
Project = JsonObject
DEFAULT_DOMAIN = tables_identity.DEFAULT_DOMAIN
FLOATING_IP = "floating IP"

SHOWN: sa.ColumnElement[str] = sa.func.coalesce(project.c.display_name, project.c.name)
LOAD: dict[str, sa.Select[t.Any]] = {
    "all_projects": sa.select(project, SHOWN.label("shown_name")).order_by(SHOWN, project.c.id),
    "project_tags": sa.select(project_tag).order_by(project_tag.c.project_id, project_tag.c.tag),
}


def projects(connection: sa.Connection) -> list[Record]:
    """Return all projects, by name."""
    return _rows(connection, sa.true())


def project_by_id(connection: sa.Connection, project_id: str) -> Record | None:
    """Return the project's record; None where there is none of this id."""
    rows = _rows(connection, project.c.id == project_id)
    return rows[0] if rows else None


def project_name(connection: sa.Connection, project_id: str) -> str | None:
    """Return the handle of the project of this id; None where there is none."""
    return connection.execute(sa.select(project.c.name).where(project.c.id == project_id)).scalar()


def project_id_of(connection: sa.Connection, name: str, domain_id: str = DEFAULT_DOMAIN) -> str | None:
    """Return the id of the project that the domain has under this name; None where there is none."""
    shown = sa.or_(project.c.display_name == name, sa.and_(project.c.display_name.is_(None), project.c.name == name))
    return connection.execute(sa.select(project.c.id).where(shown, project.c.domain_id == domain_id)).scalar()


def projects_of_user(connection: sa.Connection, user_id: str) -> list[Record]:
    """Return the enabled projects, of enabled domains, that the user has a role in, by name."""
    enabled = sa.select(domain.c.id).where(domain.c.enabled)
    held = projects_with_roles(connection, user_id)
    return _rows(connection, sa.and_(project.c.id.in_(held), project.c.enabled, project.c.domain_id.in_(enabled)))


def projects_below(connection: sa.Connection, project_id: str) -> list[Record]:
    """Return all projects below this one, by name."""
    below = [number for number, over in ancestry(connection).items() if project_id in over]
    return _rows(connection, project.c.id.in_(below))


def projects_above(connection: sa.Connection, project_id: str) -> list[Record]:
    """Return the projects above this one, the nearest first."""
    over = ancestry(connection)[project_id]
    return sorted(_rows(connection, project.c.id.in_(over)), key=lambda row: over.index(row["id"]))


def _rows(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> list[Record]:
    query = LOAD["all_projects"].where(condition)
    rows: list[Record] = [{**row, "tags": []} for row in connection.execute(query).mappings()]
    by_id = {row["id"]: row for row in rows}
    tags = LOAD["project_tags"]
    if len(rows) == 1:
        tags = tags.where(project_tag.c.project_id == rows[0]["id"])
    for tag in connection.execute(tags) if rows else ():
        if tag.project_id in by_id:
            by_id[tag.project_id]["tags"].append(tag.tag)
    return rows


def project_wishes(connection: sa.Connection, project_id: str) -> HaWishes:
    """Return what new servers of the project are to do when their host dies."""
    c = project.c
    row = connection.execute(sa.select(c.ha, c.ha_priority, c.ha_rebuild).where(c.id == project_id)).first()
    return HaWishes() if row is None else HaWishes(*row)


def find_project(connection: sa.Connection, project_id: str) -> Project:
    """Return the record of the project of this id. Raises NotFoundError."""
    record = project_by_id(connection, project_id)
    if record is None:
        raise NotFoundError(f"Could not find project: {project_id[:64]}.")
    return record


def left_in(connection: sa.Connection, project_id: str) -> list[tuple[str, int, str]]:
    """Return what keeps a project from being removed: of each kind the number, and the first one's name."""
    instances, floating = tables.instance, tables.floating_ip
    own_servers = sa.select(instances.c.uuid).where(instances.c.project_id == project_id)
    of_servers = sa.select(tables.vif.c.id).where(tables.vif.c.instance_uuid.in_(own_servers))
    left = []
    for column, mine, kind in (
        (instances.c.name, sa.and_(instances.c.project_id == project_id, instances.c.deleted == 0), "instance"),
        (_name(router), router.c.project_id == project_id, "router"),
        # one of a server goes with that
        (_name(port), sa.and_(port.c.project_id == project_id, port.c.vif_id.not_in(of_servers)), "port"),
        (tables.network.c.name, tables.network.c.owner == project_id, "network"),
        (_name(tables.image), tables.image.c.owner == project_id, "image"),
        (_name(volume_transfer), volume_transfer.c.project_id == project_id, "volume transfer"),
        # snapshots may stay behind when their volume is given away
        (_name(volume_snapshot), volume_snapshot.c.project_id == project_id, "volume snapshot"),
        (volume.c.name, volume.c.project_id == project_id, "volume"),
        (server_backup.c.name, server_backup.c.project_id == project_id, "backup"),
        (volume_backup.c.id, volume_backup.c.project_id == project_id, "volume backup"),
        (_name(subnet_pool), subnet_pool.c.project_id == project_id, "subnet pool"),
        (_name(address_scope), address_scope.c.project_id == project_id, "address scope"),
        (floating.c.address, floating.c.project_id == project_id, FLOATING_IP),
    ):
        number, first = connection.execute(sa.select(sa.func.count(), sa.func.min(column)).where(mine)).one()
        if number:
            left.append((kind, int(number), to_text(first) if kind == FLOATING_IP else str(first)))
    return left


def _name(table: sa.Table) -> sa.ColumnElement[str]:
    """Return the name of a row; its id where it has none."""
    (key,) = table.primary_key
    return sa.func.coalesce(sa.func.nullif(table.c.name, ""), key)


def domain_by_id(connection: sa.Connection, domain_id: str) -> Domain | None:
    """Return the domain of this id; None where there is none."""
    row = connection.execute(sa.select(domain).where(domain.c.id == domain_id)).mappings().first()
    return None if row is None else dict(row)


def find_domain(connection: sa.Connection, domain_id: str) -> Domain:
    """Return the domain of this id. Raises NotFoundError."""
    record = domain_by_id(connection, domain_id)
    if record is None:
        raise NotFoundError(f"Could not find domain: {domain_id[:64]}.")
    return record


def list_domains(connection: sa.Connection, name: str | None = None, enabled: bool | None = None) -> list[Domain]:
    """Return all domains, by name; or those of this name, or that are enabled or not."""
    key = None if name is None else domain_key(name)
    query = sa.select(domain).where(*equal({domain.c.name_key: key, domain.c.enabled: enabled})).order_by(domain.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]


def domain_key(name: str) -> str:
    """Return the form in which names of domains are compared, as Keystone's usual database does."""
    return name.casefold()[:128]
