# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of disks that a resize on an instance's own host made for its revert, and that a run which was cut off left.

Where the resize was taken back in the ledger and the guest is off, the copies are the instance's disks: the run died
before it put them in their places. Anywhere else they are of no use any more.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._disk.layout import KEPT
from ..._drift.report import Row, row
from ..._model.instance import Instance
from ..._model.look import Look
from ..compute import migrations
from ..db.tables_migrations import migration

OFF = ("shutoff", "missing", "crashed")


def resize_disk_backups(
    connection: sa.Connection, host: str, look: Look, instances: t.Iterable[Instance]
) -> dict[str, list[Row]]:
    """`rows`; `restore` and `forget`, as the step disk_move takes its `moves`. `look` as host_scan.scan() has it,
    `instances` those on `host` that nothing is being done to."""
    result: dict[str, list[Row]] = {"rows": [], "restore": [], "forget": []}
    left = {
        instance["uuid"]: instance
        for instance in instances
        if any(name.endswith((KEPT, f"{KEPT}.part")) for name in look["files"].get(instance["uuid"], ()))
    }
    waiting = migrations.open_moves(connection, left) if left else {}
    states = {domain["uuid"]: domain["state"] for domain in look["domains"]}
    for uuid, instance in sorted(left.items()):
        if uuid in waiting:
            continue
        reverted = _last(connection, uuid) == migrations.REVERTED
        if reverted and states.get(uuid, "missing") in OFF:
            result["restore"].append({"uuid": uuid, "id": uuid})
            result["rows"].append(
                row(host, f"disks of {instance['name']}", "reverted", "of the other size", "brought back")
            )
        else:
            result["forget"].append({"uuid": uuid, "id": uuid})
            what = f"copies of the disks of {instance['name']}"
            result["rows"].append(row(host, what, "no resize waits", "there", "removed"))
    return result


def _last(connection: sa.Connection, uuid: str) -> str | None:
    """Return the status of the instance's last resize."""
    query = (
        sa.select(migration.c.status)
        .where(migration.c.instance_uuid == uuid, migration.c.type == "resize")
        .order_by(migration.c.id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()
