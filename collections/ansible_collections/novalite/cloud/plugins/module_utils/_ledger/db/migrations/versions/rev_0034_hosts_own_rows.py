# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Indexes by which one host's instances, claims and moves are found."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_instance_host", "instance", ["host", "deleted"])
    op.create_index(op.f("ix_allocation_compute_host_id"), "allocation", ["compute_host_id"])
    op.create_index(op.f("ix_migration_status"), "migration", ["status"])
    adopted = sa.text("adopted IS NOT NULL")
    op.create_index("ix_instance_adopted", "instance", ["uuid"], sqlite_where=adopted, postgresql_where=adopted)


def downgrade() -> None:
    op.drop_index("ix_instance_adopted", "instance")
    op.drop_index(op.f("ix_migration_status"), "migration")
    op.drop_index(op.f("ix_allocation_compute_host_id"), "allocation")
    op.drop_index("ix_instance_host", "instance")
