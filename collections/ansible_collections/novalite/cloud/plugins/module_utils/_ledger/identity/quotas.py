# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Quotas: Nova's defaults, a project's own limits, and the check that every operation makes after its writes."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError, QuotaError
from ..._json import JsonMapping
from ..._rules.records import LARGEST
from ..db import tables
from ..queries.lookups import unknown

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

EVERYTHING = "unlimited"  # as quotas: how much a project may have
# what one request may bring and a project may have at work is bounded all the same
_BOUNDED = (
    *("metadata_items", "injected_files", "injected_file_content_bytes", "injected_file_path_length", "jobs"),
    "server_snapshots",
)

_DEFAULTS = tables.tables_networking.quota_default
# first the cloud's defaults, then what a project has of its own
_LIMITS = sa.union_all(
    sa.select(_DEFAULTS.c.resource, _DEFAULTS.c.hard_limit, sa.literal(0).label("own")),
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


def write_default_limits(connection: sa.Connection, limits: t.Mapping[str, int]) -> None:
    """Let these limits hold for all projects without their own."""
    connection.execute(sa.delete(_DEFAULTS).where(_DEFAULTS.c.resource.in_(list(limits))))
    _insert(connection, _DEFAULTS, limits, DEFAULTS)


def reset_quotas(connection: sa.Connection, project_id: str, resources: t.Collection[str]) -> None:
    """Let the project follow the defaults of these resources again."""
    table = tables.quota
    mine = sa.and_(table.c.project_id == project_id, table.c.resource.in_(list(resources)))
    connection.execute(sa.delete(table).where(mine))


def check_quota(connection: sa.Connection, project_id: str, resource: str, used: int, what: str = "") -> None:
    """Raise QuotaError if `used`, counted after the writes of this transaction, exceeds the limit of `resource`."""
    limit = quota_limits(connection, project_id)[resource]
    if limit != UNLIMITED and used > limit:
        raise QuotaError(
            f"quota exceeded for {resource}{f' of {what}' if what else ''}: {used} wanted, {limit} allowed; "
            f"remove some, or raise the quota of the project with novalite.cloud.project"
        )


def checked_quotas(quotas: JsonMapping | str) -> dict[str, int]:
    """Limits as a user wrote them, by resource, or the word `unlimited` for all of which a project may have some.

    Raises NotFoundError for an unknown resource, NovaliteError for a bad limit.
    """
    if quotas == EVERYTHING:
        return {name: UNLIMITED for name, limit in DEFAULTS.items() if limit and name not in _BOUNDED}
    if not isinstance(quotas, t.Mapping):
        raise NovaliteError(f"quotas {quotas!r}: give limits by resource, or {EVERYTHING!r}")
    checked = {}
    for resource, limit in quotas.items():
        if resource not in DEFAULTS:
            raise unknown("quota", resource, DEFAULTS)
        try:
            number = int(str(limit))
        except ValueError:
            number = UNLIMITED - 1
        if not UNLIMITED <= number <= LARGEST:
            raise NovaliteError(
                f"quota {resource}: {limit!r} is not a limit: give a number of at least 0, or {UNLIMITED} for unlimited"
            )
        checked[resource] = number
    return checked


def write_quotas(connection: sa.Connection, project_id: str, quotas: t.Mapping[str, int]) -> None:
    """Store the limits in `quotas`; those that equal the defaults take no row, and follow the defaults."""
    reset_quotas(connection, project_id, quotas)
    _insert(connection, tables.quota, quotas, default_limits(connection), project_id=project_id)


def _insert(
    connection: sa.Connection, table: sa.Table, limits: t.Mapping[str, int], known: t.Mapping[str, int], **of: str
) -> None:
    new = [{**of, "resource": name, "hard_limit": limit} for name, limit in limits.items() if limit != known[name]]
    if new:
        connection.execute(sa.insert(table), new)
