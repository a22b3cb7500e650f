# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Health of hosts, the watcher's lease and journal, and which servers are to run again after the death of a host."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None

WISHES = {"ha": sa.Boolean, "ha_priority": sa.Integer, "ha_rebuild": sa.Boolean}


def upgrade() -> None:
    op.create_table(
        "host_watch",
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("state", sa.String(16), nullable=False, server_default="up"),
        sa.Column("epoch", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("since", sa.Float, nullable=False, server_default="0"),
        sa.Column("missed", sa.Integer, nullable=False, server_default="0"),
        sa.Column("missed_in_term", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("silent_since", sa.Float),
        sa.Column("looked_at", sa.Float, nullable=False, server_default="0"),
        sa.Column("answered_at", sa.Float, nullable=False, server_default="0"),
        sa.Column("heard", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("boot_id", sa.String(64), nullable=False, server_default=""),
        sa.Column("stopping", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("switch_armed", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("attempted_at", sa.Float, nullable=False, server_default="0"),
        sa.Column("proof", sa.JSON),
        sa.Column("moved", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("note", sa.Text, nullable=False, server_default=""),
        sa.Column("ticks", sa.Float, nullable=False, server_default="0"),
        sa.Column("ticks_of", sa.String(64), nullable=False, server_default=""),
        sa.Column("fence", sa.JSON),
        sa.Column("armed", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("means", sa.JSON, nullable=False, server_default="[]"),
        sa.Column("confirmed_by", sa.String(255)),
        sa.Column("confirmed_heard", sa.BigInteger),
        sa.PrimaryKeyConstraint("host", name="pk_host_watch"),
    )
    op.create_table(
        "watch",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("armed", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("controller", sa.String(255)),
        sa.Column("expires", sa.Float, nullable=False, server_default="0"),
        sa.Column("term", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("round", sa.String(36)),
        sa.Column("round_until", sa.Float, nullable=False, server_default="0"),
        sa.PrimaryKeyConstraint("id", name="pk_watch"),
        sa.CheckConstraint("id = 1", name="single"),
    )
    op.create_table(
        "watch_event",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("event", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("actor", sa.String(255), nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("loud", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.PrimaryKeyConstraint("id", name="pk_watch_event"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_watch_event_host", "watch_event", ["host"])
    for name, kind in WISHES.items():
        default = "0" if kind is sa.Integer else sa.false()
        op.add_column("instance", sa.Column(name, kind, nullable=False, server_default=default))
        op.add_column("project", sa.Column(name, kind))
    op.add_column("instance", sa.Column("ha_reason", sa.Text))
    on_sqlite, on_postgresql = sa.text("ha = 1"), sa.text("ha = true")  # as queries have it there
    columns = ["ha", "deleted", "host", "ha_reason"]
    op.create_index("ix_instance_ha", "instance", columns, sqlite_where=on_sqlite, postgresql_where=on_postgresql)


def downgrade() -> None:
    op.drop_index("ix_instance_ha", "instance")
    op.drop_column("instance", "ha_reason")
    for table in ("project", "instance"):
        for name in reversed(WISHES):
            op.drop_column(table, name)
    for table in ("watch_event", "watch", "host_watch"):
        op.drop_table(table)
