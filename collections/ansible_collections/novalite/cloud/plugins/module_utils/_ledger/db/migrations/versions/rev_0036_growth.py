# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Indexes by which a name, what is busy, and what is kept out of a pool are found, however large the cloud is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_instance_hostname", "instance", ["project_id", "hostname"])
    busy, reserved = sa.text("task_state IS NOT NULL"), sa.text("reserved IS NOT NULL")
    op.create_index("ix_instance_busy", "instance", ["task_state"], sqlite_where=busy, postgresql_where=busy)
    op.create_index(
        "ix_fixed_ip_reserved", "fixed_ip", ["network_id", "ip"], sqlite_where=reserved, postgresql_where=reserved
    )
    pairs = sa.text("allowed_address_pairs IS NOT NULL")
    op.create_index("ix_vif_pairs", "vif", ["instance_uuid"], sqlite_where=pairs, postgresql_where=pairs)
    remote, naming = "remote_group_id", sa.text("remote_group_id IS NOT NULL")
    op.create_index(
        "ix_security_group_rule_remote", "security_group_rule", [remote], sqlite_where=naming, postgresql_where=naming
    )


def downgrade() -> None:
    op.drop_index("ix_security_group_rule_remote", "security_group_rule")
    op.drop_index("ix_vif_pairs", "vif")
    op.drop_index("ix_fixed_ip_reserved", "fixed_ip")
    op.drop_index("ix_instance_busy", "instance")
    op.drop_index("ix_instance_hostname", "instance")
