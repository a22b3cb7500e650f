# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of instances for whoever is going to change them."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._model.rows import InstanceRow, StateRow
from ...._rules.build_states import DELETING, Build
from ...db.tables import instance


def instance_rows(
    connection: sa.Connection, *conditions: sa.ColumnElement[bool], lock: bool = False
) -> list[InstanceRow]:
    """The rows that meet all `conditions`, in the order of their ids, as every writer takes them.

    With `lock` (where the database has row locks) nobody else changes them before this transaction ends.
    """
    query = sa.select(instance).where(*conditions).order_by(instance.c.id)
    return t.cast(
        "list[InstanceRow]", connection.execute(query.with_for_update(key_share=True) if lock else query).all()
    )


def instance_row(connection: sa.Connection, uuid: str) -> InstanceRow:
    """The row of an instance that there is."""
    (row,) = instance_rows(connection, instance.c.uuid == uuid, instance.c.deleted == 0)
    return row


def shown_names(connection: sa.Connection, uuids: t.Collection[str]) -> dict[str, str]:
    """Return the names by which people know these instances, by UUIDs."""
    query = sa.select(instance.c.uuid, instance.c.name, instance.c.display_name).where(instance.c.uuid.in_(uuids))
    return {row.uuid: row.display_name or row.name for row in connection.execute(query)}


def locked_rows(connection: sa.Connection, uuids: t.Iterable[str]) -> list[InstanceRow]:
    """The rows of these instances, which nobody else changes before this transaction ends. Raises NotFoundError for one
    that is not there."""
    distinct_uuids = sorted(set(uuids))
    rows = instance_rows(connection, instance.c.uuid.in_(distinct_uuids), instance.c.deleted == 0, lock=True)
    if missing := set(distinct_uuids) - {row.uuid for row in rows}:
        raise NotFoundError(f"Instance {min(missing)} could not be found.")
    return rows


def locked_row(connection: sa.Connection, uuid: str) -> InstanceRow:
    """The row of one instance, as locked_rows() gives it."""
    return locked_rows(connection, [uuid])[0]


def check_known(connection: sa.Connection, uuids: t.Iterable[str]) -> None:
    """Raise NotFoundError for UUIDs of which there never was an instance: a run reports to another ledger than the one
    that it began with, and nobody would ever know what became of them."""
    reported = set(uuids)
    there = sa.select(instance.c.uuid).where(instance.c.uuid.in_(sorted(reported)))
    unknown = sorted(reported - set(connection.execute(there).scalars()))
    if unknown:
        raise NotFoundError(
            f"the ledger knows no server {', '.join(unknown)}: it is not the one that this run began with, or was "
            "restored meanwhile. What the hosts have of these servers stays there: run ledger_rebuild.yml"
        )


def being_built(build: Build) -> sa.ColumnElement[bool]:
    """The condition under which an instance is being built this way: build_of(), for the database."""
    c = instance.c
    # a server whose deletion was asked for does not come back because its build ends just then
    tasks = c.task_state.is_distinct_from(DELETING)
    if build.task_states is not None:
        tasks = c.task_state.in_(sorted(build.task_states))
    return sa.and_(c.vm_state.in_(sorted(build.vm_states)), tasks)


def whereabouts(row: StateRow, name: str) -> str:
    """Tell where the instance `name` is, for a person who finds something of it elsewhere."""
    if row.deleted:
        return f"{name} is deleted"
    if row.host is None:
        return f"{name} is {row.vm_state}, on no host"
    return f"{name} is on {row.host}"
