# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's table of moves: resizes, migrations and evacuations; part of tables.py's metadata.
Beside it, the hosts that instances have left, and those of a rolling maintenance."""

from __future__ import annotations

import sqlalchemy as sa

from .schema import numbered, table

# the statuses of a move whose instance may have something on either host
OPEN = ("queued", "preparing", "migrating", "post-migrating", "finished", "confirming", "reverting", "running")
# of them, those of a move under way: the host that the instance comes to is prepared, though it is not there yet
UNDER_WAY = ("queued", "preparing", "migrating", "reverting", "running")

migration = numbered(  # Nova's name for a move; not a revision of this schema
    "migration",
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("instance_uuid", sa.ForeignKey("instance.uuid", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("type", sa.String(16), nullable=False),  # resize | migration | live-migration | evacuation
    # queued preparing migrating post-migrating finished confirming confirmed reverting reverted running completed done
    # error cancelled
    sa.Column("status", sa.String(32), nullable=False, index=True),
    sa.Column("source_host", sa.String(255)),
    sa.Column("dest_host", sa.String(255)),
    sa.Column("old_flavor", sa.JSON, nullable=False),  # as instance.flavor
    sa.Column("new_flavor", sa.JSON, nullable=False),
    sa.Column("old_vm_state", sa.String(16), nullable=False),  # what a revert leads back to
    sa.Column("reason", sa.String(32)),  # maintenance: host_restore.yml brings it back
    sa.Column("user_id", sa.String(32)),
    sa.Column("project_id", sa.String(32)),
    sa.Column("message", sa.Text),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.CheckConstraint("type IN ('resize', 'migration', 'live-migration', 'evacuation')", name="type"),
)

# Written in the transaction by which an instance leaves a host, and removed by the one by which it comes there again:
# what a host still has of it afterwards is a leftover. No key to instance: it outlives the instance's row.
departure = table(
    "departure",
    sa.Column("instance_uuid", sa.String(36), primary_key=True),
    sa.Column("host", sa.String(255), primary_key=True),
    sa.Column("reason", sa.String(32), nullable=False),  # deleted evacuated moved reverted retried shelved
    sa.Column("left_at", sa.BigInteger, nullable=False),
)

rolling_host = table(  # from the beginning of a rolling maintenance to its end
    "rolling_host",
    sa.Column("host", sa.String(255), primary_key=True),
    sa.Column("task", sa.String(255), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),  # waiting | under way | done
)
