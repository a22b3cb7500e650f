# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on quotas, for every door."""

from __future__ import annotations

import typing as t

from ...._errors import NovaliteError
from ...identity import quotas
from ...queries import counts
from ...queries.identity import quota_records
from ..call import Call

# Entries of the policy for limits of one service alone; for those of several, and of none, a route's own is enough
ENTRIES: t.Mapping[str, str] = {
    **dict.fromkeys(
        ("networks", "subnets", "subnet_pools", "ports", "routers", "rbac_policies"), "network:quotas:update"
    ),
    **dict.fromkeys(
        (*("volumes", "snapshots", "gigabytes", "per_volume_gigabytes"), *("backups", "backup_gigabytes", "groups")),
        "volume:admin",
    ),
}


def set_limits(call: Call, project_id: str, limits: t.Mapping[str, int], *, force: bool = False) -> dict[str, int]:
    """Give a project limits of its own; return all that hold for it. Raises ForbiddenError for those of a service whose
    quotas the caller may not set, NovaliteError for a limit below what the project has, unless that is `force`d."""
    _check(call, limits)
    used = {} if force else counts.used(call.connection, project_id)
    for name, limit in limits.items():
        if -1 < limit < used.get(name, 0):
            raise NovaliteError(
                f"Quota limit {limit} for {name} must be greater than or equal to already used and reserved "
                f"{used[name]}."
            )
    quotas.write_quotas(call.connection, project_id, limits)
    return quota_records.quota_limits(call.connection, project_id)


def reset(call: Call, project_id: str, resources: t.Collection[str]) -> None:
    """Let a project follow the defaults of these resources again. Raises ForbiddenError as set_limits()."""
    _check(call, resources)
    quotas.reset_quotas(call.connection, project_id, resources)


def set_default_limits(call: Call, limits: t.Mapping[str, int]) -> dict[str, int]:
    """Let these limits hold for all projects without their own; return all that do. Raises ForbiddenError as
    set_limits()."""
    _check(call, limits)
    quotas.write_default_limits(call.connection, limits)
    return quota_records.default_limits(call.connection)


def _check(call: Call, resources: t.Iterable[str]) -> None:
    for entry in sorted({ENTRIES[name] for name in resources if name in ENTRIES}):
        call.check(entry)
