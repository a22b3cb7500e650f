# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ages of servers' newest backups, beside the policies that they follow. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...._rules import backup_policies as rules
from ...._rules.backup_policies import Policy
from ...db import clock
from ...db.tables import instance
from ...db.tables_images import backup_policy as table
from ...db.tables_images import server_backup
from .server_backup_rows import AVAILABLE


def policies(connection: sa.Connection) -> list[Policy]:
    """List the policies, by their names."""
    return [Policy(**row) for row in connection.execute(sa.select(table).order_by(table.c.name)).mappings()]


class Ages(t.NamedTuple):
    """Times when the newest backup of a server was taken, the newest one that was found whole, and the newest one that
    was booted as well (0: there is none), the policy that it follows, and what is late by that."""

    uuid: str
    name: str
    newest: int
    whole: int
    proven: int
    policy: Policy | None
    late: str | None


def ages(
    connection: sa.Connection,
    project_id: str | None = None,
    everyone: bool = False,
    *,
    server: str | None = None,
    marker: str | None = None,
    limit: int | None = None,
) -> list[Ages]:
    """List the servers (of a project; this one; None: of all) that have backups or a policy, or `everyone`: at most
    `limit` of them, those after the server `marker`. One query has the times of all of them."""
    known, now = policies(connection), clock.seconds(connection)
    own, times = server_backup.c, server_backup.c.created_at
    whole = sa.and_(own.verified_at.is_not(None), own.complaint.is_(None))
    newest_of = {"newest": times, "whole": sa.case((whole, times))}
    newest_of["proven"] = sa.case((sa.and_(whole, own.proven_at.is_not(None)), times))
    columns = [
        sa.select(sa.func.max(value))
        .where(own.instance_uuid == instance.c.uuid, own.status == AVAILABLE)
        .correlate(instance)
        .scalar_subquery()
        .label(name)
        for name, value in newest_of.items()
    ]
    query = (
        sa.select(*(instance.c[name] for name in ("uuid", "name", "project_id", "flavor", "created_at")), *columns)
        .where(instance.c.deleted == 0, instance.c.adopted.is_(None))
        .order_by(instance.c.id)
    )
    for column, value in ((instance.c.project_id, project_id), (instance.c.uuid, server)):
        query = query if value is None else query.where(column == value)
    if marker is not None:
        query = query.where(instance.c.id > sa.select(instance.c.id).where(instance.c.uuid == marker).scalar_subquery())
    if not (known or everyone):  # else any server may follow one
        query = query.where(instance.c.uuid.in_(sa.select(server_backup.c.instance_uuid)))
    listed = []
    for row in connection.execute(query if limit is None else query.limit(limit)):
        about = {"server": row.uuid, "project": row.project_id, "flavor": str(row.flavor.get("id"))}
        policy = rules.policy_of(known, about)
        if row.newest is None and policy is None and not everyone:
            continue
        newest_times = row.newest or 0, row.whole or 0, row.proven or 0
        late = None if policy is None else rules.late_of(policy, row.created_at, *newest_times, now)
        listed.append(Ages(row.uuid, row.name, *newest_times, policy, late))
    return listed


def late(connection: sa.Connection, project_id: str | None) -> list[Ages]:
    """List the servers (of a project; None: of all) whose backups are late by their policies. Without a policy there
    are none, and nothing is read."""
    if not policies(connection):
        return []
    return [each for each in ages(connection, project_id) if each.late is not None]
