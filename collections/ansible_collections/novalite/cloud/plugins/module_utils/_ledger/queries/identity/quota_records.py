# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quotas: the limits of projects, and of the cloud. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...db import tables

UNLIMITED = -1
# nova.conf [quota]; `images` has no default in Nova's time
DEFAULTS: t.Mapping[str, int] = {
    "instances": 10,
    "cores": 20,
    "ram": 51200,  # MiB
    "metadata_items": 128,  # for each instance
    "injected_files": 5,  # for each instance
    "injected_file_content_bytes": 10240,
    "injected_file_path_length": 255,
    "key_pairs": 100,
    "server_snapshots": 5,  # of each instance
    "server_groups": 10,
    "server_group_members": 10,
    "fixed_ips": UNLIMITED,
    "floating_ips": 10,
    "networks": 100,  # these: Neutron's
    "subnets": 100,
    "subnet_pools": 100,  # Neutron counts none
    "ports": 500,  # those that projects make by themselves
    "routers": 10,
    "rbac_policies": UNLIMITED,  # there is none
    "images": 100,
    "image_size_total": 102400,  # MiB of images that were uploaded; Glance's name
    "security_groups": 10,
    "security_group_rules": 20,  # for each group
    # cinder.conf's
    "volumes": 10,
    "gigabytes": 1000,  # GiB of volumes and their snapshots
    "snapshots": 10,
    "per_volume_gigabytes": UNLIMITED,
    "backups": 10,  # of servers and volumes
    "backup_gigabytes": 1000,  # GiB of their disks, for each backup
    "groups": 0,  # there is none
    "jobs": 500,  # those that wait or run; those that take things away have as many again
}
OF_CLOUD = tables.tables_networking.quota_default
# first the cloud's defaults, then what a project has of its own
_LIMITS = sa.union_all(
    sa.select(OF_CLOUD.c.resource, OF_CLOUD.c.hard_limit, sa.literal(0).label("own")),
    sa.select(tables.quota.c.resource, tables.quota.c.hard_limit, sa.literal(1)).where(
        tables.quota.c.project_id == sa.bindparam("project_id")
    ),
).order_by("own")


def quota_limits(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """The limits of a project for every resource; -1 is unlimited."""
    rows = connection.execute(_LIMITS, {"project_id": project_id})
    return {**DEFAULTS, **{resource: limit for resource, limit, _own in rows if resource in DEFAULTS}}


def projects_with_quotas(connection: sa.Connection, resources: t.Sequence[str]) -> list[str]:
    """The ids of the projects that have limits of their own for some of `resources`, sorted."""
    table = tables.quota.c
    query = sa.select(table.project_id).where(table.resource.in_(resources)).distinct().order_by(table.project_id)
    return list(connection.execute(query).scalars())


def default_limits(connection: sa.Connection) -> dict[str, int]:
    """The limits of a project that has none of its own."""
    return quota_limits(connection, "")
