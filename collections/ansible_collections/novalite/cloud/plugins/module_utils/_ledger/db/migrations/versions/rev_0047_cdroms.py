# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""CD drives of instances, and the images in them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("instance", sa.Column("cdroms", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("instance", "cdroms")
