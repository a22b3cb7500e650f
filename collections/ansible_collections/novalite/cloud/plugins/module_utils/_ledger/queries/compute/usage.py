# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Use of a project's quota by instances, counted from the rows: a table of sums would drift, as Nova's did."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...db.tables import fixed_ip, instance, vif

COUNTED = ("instances", "cores", "ram", "fixed_ips")

_OWN = sa.and_(instance.c.project_id == sa.bindparam("project_id"), instance.c.deleted == 0)
_SUMS = (
    sa.func.count().label("instances"),
    sa.func.coalesce(sa.func.sum(instance.c.flavor["vcpus"].as_integer()), 0).label("cores"),
    sa.func.coalesce(sa.func.sum(instance.c.flavor["memory_mb"].as_integer()), 0).label("ram"),
)
_INSTANCES = sa.select(*_SUMS).where(_OWN)
LOAD = {
    "usage_of_projects": sa.select(instance.c.project_id, *_SUMS)
    .where(instance.c.deleted == 0)
    .group_by(instance.c.project_id)
}
_NICS = sa.select(sa.func.count()).select_from(vif.join(instance, instance.c.uuid == vif.c.instance_uuid)).where(_OWN)
_FURTHER = _NICS.join(fixed_ip, fixed_ip.c.further_of == vif.c.id).where(fixed_ip.c.further_of.is_not(None))


def usage(connection: sa.Connection, project_id: str, resources: t.Collection[str] = COUNTED) -> dict[str, int]:
    """Return the use of these `resources` (of COUNTED; `ram` in MiB) by the project's instances."""
    used: dict[str, int] = {}
    if {"instances", "cores", "ram"} & set(resources):
        row = connection.execute(_INSTANCES, {"project_id": project_id}).one()
        used = {"instances": row.instances, "cores": int(row.cores), "ram": int(row.ram)}
    if "fixed_ips" in resources:
        both = (connection.execute(query, {"project_id": project_id}).scalar_one() for query in (_NICS, _FURTHER))
        used["fixed_ips"] = sum(both)
    return used
