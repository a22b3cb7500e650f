# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Server groups as the scheduler sees them: read, held, and checked once more after the claim."""

from __future__ import annotations

import collections
import typing as t

import sqlalchemy as sa

from ...._scheduling.rows import Group
from ...db import tables
from ...db.tables_migrations import OPEN, REVERTING, migration

Instance = t.Mapping[str, t.Any]


def lock_groups(connection: sa.Connection, instances: t.Iterable[Instance]) -> None:
    """Let no other run place members of these instances' groups until this transaction ends.

    Before any host is locked, and in the order of the ids, so that no two runs wait for each other. On SQLite
    transactions exclude each other as a whole.
    """
    ids = sorted(set(_groups_of(connection, instances).values()))
    if ids:
        c = tables.server_group.c
        connection.execute(sa.select(c.id).where(c.id.in_(ids)).order_by(c.id).with_for_update(key_share=True)).all()


def groups_of(connection: sa.Connection, instances: t.Iterable[Instance]) -> dict[str, Group]:
    """The server group of each instance that has one, by UUID, with those members that have a host already: one that
    moves, which has two, is a member on the host that it comes to."""
    group_of = _groups_of(connection, instances)
    if not group_of:
        return {}
    table, member, claim = tables.server_group, tables.server_group_member, tables.allocation
    ids = sorted(set(group_of.values()))
    held: dict[str, dict[str, list[str]]] = {group_id: collections.defaultdict(list) for group_id in ids}
    query = (
        sa.select(member.c.group_id, member.c.instance_uuid, tables.compute_host.c.name)
        .join(claim, claim.c.instance_uuid == member.c.instance_uuid)
        .join(tables.compute_host, tables.compute_host.c.id == claim.c.compute_host_id)
        .where(member.c.group_id.in_(ids))
        .order_by(member.c.instance_uuid, tables.compute_host.c.id)
    )
    for group_id, uuid, host in connection.execute(query):
        held[group_id][uuid].append(host)
    goals = _goals(connection, [uuid for of_group in held.values() for uuid in of_group if len(of_group[uuid]) > 1])
    groups = {}
    for row in connection.execute(sa.select(table).where(table.c.id.in_(ids))):
        members: dict[str, str] = {}
        also_on: dict[str, str] = {}
        for uuid, hosts in held[row.id].items():
            members[uuid] = next((host for host in hosts if host == goals.get(uuid)), hosts[-1])
            also_on.update((uuid, host) for host in hosts if host != members[uuid])
        groups[row.id] = Group(row.id, row.policy, row.max_server_per_host, members, also_on)
    return {uuid: groups[group_id] for uuid, group_id in group_of.items() if group_id in groups}


def violated(connection: sa.Connection, placed: t.Mapping[str, tuple[Group, str]]) -> bool:
    """Tell whether `placed` (UUID -> group and host), claimed in this transaction, break a hard policy after all.

    Nova's late check (compute/manager.py `_validate_instance_group_policy`), in the transaction of the claim: counted
    from the claims as they are now, whatever the choice was made on.
    """
    now = groups_of(
        connection, [{"uuid": uuid, "request": {"group": record.id}} for uuid, (record, _host) in placed.items()]
    )
    for uuid, (before, host) in placed.items():
        group = now.get(uuid)
        if group is None:
            continue
        if group.policy == "anti-affinity" and group.claims_on[host] > group.max_server_per_host:
            return True
        if group.policy == "affinity" and len(set(group.members.values()) | {host}) > max(
            1, len(set(before.members.values()))
        ):
            return True
    return False


def _goals(connection: sa.Connection, uuids: t.Collection[str]) -> dict[str, str | None]:
    """The host that each of these instances, as far as it moves, comes to or goes back to, by UUID."""
    c = migration.c
    if not uuids:
        return {}
    query = sa.select(c.instance_uuid, c.source_host, c.dest_host, c.status).where(
        c.instance_uuid.in_(sorted(uuids)), c.status.in_(OPEN)
    )
    return {
        row.instance_uuid: row.source_host if row.status == REVERTING else row.dest_host
        for row in connection.execute(query.order_by(c.id))
    }


def _groups_of(connection: sa.Connection, instances: t.Iterable[Instance]) -> dict[str, str]:
    """Group ids by the instances' UUIDs: as recorded, and for an instance that is not (check mode) as hinted."""
    hinted = {
        instance["uuid"]: instance["request"]["group"]
        for instance in instances
        if (instance.get("request") or {}).get("group") is not None
    }
    if not hinted:
        return {}
    table, member = tables.instance, tables.server_group_member
    query = (
        sa.select(table.c.uuid, member.c.group_id)
        .outerjoin(member, member.c.instance_uuid == table.c.uuid)
        .where(table.c.uuid.in_(sorted(hinted)))
    )
    recorded = {row.uuid: row.group_id for row in connection.execute(query)}
    return {uuid: group for uuid, group in {**hinted, **recorded}.items() if group is not None}
