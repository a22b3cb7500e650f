# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Identities and marks of compute hosts, ledgers that are behind their hosts, and departures of instances."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("compute_host", sa.Column("identity", sa.JSON(none_as_null=True)))
    op.add_column("compute_host", sa.Column("mark", sa.String(32)))
    op.add_column("compute_host", sa.Column("marks_sent", sa.JSON(), nullable=False, server_default="[]"))
    op.add_column("ledger_identity", sa.Column("behind", sa.Text()))
    op.add_column("ledger_identity", sa.Column("behind_since", sa.BigInteger()))
    op.create_table(
        "departure",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("left_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid", "host", name=op.f("pk_departure")),
    )


def downgrade() -> None:
    op.drop_table("departure")
    op.drop_column("ledger_identity", "behind_since")
    op.drop_column("ledger_identity", "behind")
    op.drop_column("compute_host", "marks_sent")
    op.drop_column("compute_host", "mark")
    op.drop_column("compute_host", "identity")
