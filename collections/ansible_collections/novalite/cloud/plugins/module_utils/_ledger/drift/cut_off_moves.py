# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ways between hosts that moves which were cut off left open: a private key on the source, a line of authorized_keys, a
gate and what has arrived on the destination. Each host is judged for itself: the other one may be down."""

from __future__ import annotations

import sqlalchemy as sa

from ..._drift.report import Row, row
from ..._json import JsonObject
from ..._model.look import Look
from ..compute import migrations
from ..db.tables import instance
from ..db.tables_migrations import OPEN, migration

_USING = set(OPEN) - set(migrations.WAITING)  # statuses of moves that may have a way; one that waits needs none


def cut_off_moves(connection: sa.Connection, host: str, look: Look) -> dict[str, list[JsonObject] | list[Row]]:
    """`rows`, and `moves` as the step disk_move takes them: those that have something open on `host` and are not
    under way. One that this ledger does not know may be another one's, until what is open has expired."""
    ways = look.get("move_ways", [])
    ids, uuids = ({way[key] for way in ways} for key in ("id", "uuid"))
    c = migration.c
    query = (
        sa.select(c.uuid, c.instance_uuid, c.status, instance.c.name)
        .join(instance, instance.c.uuid == c.instance_uuid)
        .where(sa.or_(c.uuid.in_(sorted(ids)), c.instance_uuid.in_(sorted(uuids))))
    )
    known = connection.execute(query).all() if ways else []
    by_id = {move.uuid: move for move in known}
    busy = {move.instance_uuid for move in known if move.status in _USING}
    names = {move.instance_uuid: move.name for move in known}
    moves: list[JsonObject] = []
    rows: list[Row] = []
    for way in ways:
        move = by_id.get(way["id"])
        uuid = way["uuid"] or (move.instance_uuid if move else "")
        is_busy = move.status in _USING if move else uuid in busy
        if is_busy or not (uuid in names or way["expired"]):
            continue
        # what arrives for an instance may be another move's by now
        moves.append({"id": way["id"], "uuid": "" if uuid in busy else uuid})
        what = f"way of a move of {names.get(uuid, uuid or way['id'])}"
        rows.append(row(host, what, move.status if move else "not under way", ", ".join(way["what"]), "closed"))
    return {"moves": moves, "rows": rows}
