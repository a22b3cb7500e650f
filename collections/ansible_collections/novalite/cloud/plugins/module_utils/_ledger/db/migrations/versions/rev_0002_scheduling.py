# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Server groups, host aggregates, and how often a host failed to build."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# SQLite only auto-increments INTEGER keys
BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
POLICIES = "policy IN ('affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity')"
BUILDING = "vm_state = 'building'"


def upgrade() -> None:
    # plain ADD COLUMN, which SQLite can do: to write the table anew would break the claims' keys to it
    op.add_column("compute_host", sa.Column("failed_builds", sa.Integer(), server_default="0", nullable=False))
    op.create_table(
        "aggregate",
        sa.Column("id", BIG_ID, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("zone", sa.String(255)),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_aggregate")),
        sa.UniqueConstraint("name", name=op.f("uq_aggregate_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "aggregate_host",
        sa.Column("aggregate_id", BIG_ID, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.ForeignKeyConstraint(
            ["aggregate_id"], ["aggregate.id"], name=op.f("fk_aggregate_host_aggregate_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("aggregate_id", "host", name=op.f("pk_aggregate_host")),
    )
    op.create_table(
        "server_group",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("policy", sa.String(32), nullable=False),
        sa.Column("max_server_per_host", sa.Integer(), server_default="1", nullable=False),
        sa.CheckConstraint(POLICIES, name=op.f("ck_server_group_policy")),
        sa.CheckConstraint("max_server_per_host >= 1", name=op.f("ck_server_group_max_server_per_host")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_server_group_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_server_group")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_server_group_project_id_name")),
    )
    op.create_table(
        "server_group_member",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("group_id", sa.String(36), nullable=False),
        sa.ForeignKeyConstraint(
            ["group_id"], ["server_group.id"], name=op.f("fk_server_group_member_group_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["instance_uuid"], ["instance.uuid"], name=op.f("fk_server_group_member_instance_uuid"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("instance_uuid", name=op.f("pk_server_group_member")),
    )
    op.create_index(op.f("ix_server_group_member_group_id"), "server_group_member", ["group_id"], unique=False)
    op.create_index(
        "ix_instance_building", "instance", ["host"], sqlite_where=sa.text(BUILDING), postgresql_where=sa.text(BUILDING)
    )


def downgrade() -> None:
    op.drop_index("ix_instance_building", table_name="instance")
    op.drop_table("server_group_member")
    op.drop_table("server_group")
    op.drop_table("aggregate_host")
    op.drop_table("aggregate")
    op.drop_column("compute_host", "failed_builds")
