# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of instances that were deleted long ago: out of the ledger, into a file beside its copies."""

from __future__ import annotations

import json
import os
import time
import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from . import clock
from .copies import DIRECTORY
from .engine import make_home, reading, transaction
from .tables import instance, instance_action, instance_action_event, metadata
from .tables_volumes import volume_attachment

_BATCH = 500  # instances: others write in between
_DAY = 86400
MOST_DAYS = 36500  # a hundred years, which no ledger has


def archive(engine: sa.Engine, home: str, days: int, check_mode: bool = False) -> tuple[int, str | None]:
    """Move what is recorded of instances that were deleted more than `days` ago to a new file of JSON lines; returns
    how many instances, and its path. They are in the file before they leave the ledger. Mode 0600.

    What was said of hosts that they have left stays: a departure is no part of an instance. Raises NovaliteError when
    the file cannot be written.
    """
    i = instance.c
    with reading(engine) as connection:
        before = clock.seconds(connection) - days * _DAY
        attached = sa.select(volume_attachment.c.instance_uuid)  # something is not done with it yet
        gone = sa.select(i.uuid).where(i.deleted != 0, i.updated_at < before, i.uuid.not_in(attached)).order_by(i.id)
        uuids = list(connection.execute(gone).scalars())
    if not uuids or check_mode:
        return len(uuids), None
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    path = os.path.join(home, DIRECTORY, f"deleted-{stamp}.jsonl")
    try:
        make_home(home)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w", encoding="utf-8") as handle:
            for begin in range(0, len(uuids), _BATCH):
                with transaction(engine) as connection:
                    _move(connection, uuids[begin : begin + _BATCH], handle)
    except OSError as error:
        raise NovaliteError(
            f"what was deleted cannot be archived: {error.filename}: {error.strerror}; make room there, or name "
            "another `home` (novalite_home)"
        ) from error
    return len(uuids), path


def _move(connection: sa.Connection, uuids: t.Sequence[str], handle: t.TextIO) -> None:
    mine = sa.and_(instance.c.uuid.in_(uuids), instance.c.deleted != 0)
    ids, names = (sa.select(column).where(mine) for column in (instance.c.id, instance.c.uuid))
    of_actions = instance_action.c.instance_uuid.in_(names)
    actions = sa.select(instance_action.c.id).where(of_actions)
    conditions: list[tuple[sa.Table, sa.ColumnElement[bool]]] = [(instance, mine), (instance_action, of_actions)]
    conditions.append((instance_action_event, instance_action_event.c.action_id.in_(actions)))
    # what goes with an instance, by the keys that the tables declare
    for table in metadata.sorted_tables:
        for key in table.foreign_keys:
            if key.column.table is instance and key.ondelete == "CASCADE":
                conditions.append((table, key.parent.in_(ids if key.column is instance.c.id else names)))
    for table, condition in conditions:
        for row in connection.execute(sa.select(table).where(condition)).mappings():
            handle.write(json.dumps({"table": table.name, "row": {str(name): row[name] for name in row}}) + "\n")
    handle.flush()
    os.fsync(handle.fileno())
    connection.execute(sa.delete(instance_action).where(of_actions))
    connection.execute(sa.delete(instance).where(mine))
