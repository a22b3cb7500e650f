# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks that carry nothing, and the project that made a network, also of one that is shared."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("network", sa.Column("admin_state_up", sa.Boolean, nullable=False, server_default=sa.true()))
    op.add_column("network", sa.Column("made_by", sa.String(32), nullable=False, server_default=""))
    op.execute("UPDATE network SET made_by = owner WHERE tenant")


def downgrade() -> None:
    op.drop_column("network", "made_by")
    op.drop_column("network", "admin_state_up")
