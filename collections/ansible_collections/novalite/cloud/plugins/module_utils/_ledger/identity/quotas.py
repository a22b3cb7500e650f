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
from ..queries.identity.quota_records import DEFAULTS, OF_CLOUD, UNLIMITED, default_limits, quota_limits
from ..queries.lookups import lock_project, unknown

EVERYTHING = "unlimited"  # as quotas: how much a project may have
# what one request may bring and a project may have at work is bounded all the same
_BOUNDED = (
    *("metadata_items", "injected_files", "injected_file_content_bytes", "injected_file_path_length", "jobs"),
    "server_snapshots",
)


def write_default_limits(connection: sa.Connection, limits: t.Mapping[str, int]) -> None:
    """Let these limits hold for all projects without their own."""
    connection.execute(sa.delete(OF_CLOUD).where(OF_CLOUD.c.resource.in_(list(limits))))
    _insert(connection, OF_CLOUD, limits, DEFAULTS)


def reset_quotas(connection: sa.Connection, project_id: str, resources: t.Collection[str]) -> None:
    """Let the project follow the defaults of these resources again."""
    lock_project(connection, project_id)
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
