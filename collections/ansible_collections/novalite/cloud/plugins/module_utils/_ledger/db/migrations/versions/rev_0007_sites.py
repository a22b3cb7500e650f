# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Records of what the declarative playbook has made."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "site_record",
        sa.Column("site", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("owner", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("reference", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("site", "kind", "owner", "name", name=op.f("pk_site_record")),
    )


def downgrade() -> None:
    op.drop_table("site_record")
