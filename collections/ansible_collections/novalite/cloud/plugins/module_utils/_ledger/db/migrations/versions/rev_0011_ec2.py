# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Client tokens of EC2's requests, and attributes that only EC2 has."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TABLES = ("ec2_tag", "ec2_keypair", "ec2_instance", "ec2_request")


def upgrade() -> None:
    op.create_table(
        "ec2_request",
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("request_hash", sa.String(64), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_ec2_request_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "action", "token", name=op.f("pk_ec2_request")),
    )
    op.create_index(op.f("ix_ec2_request_created_at"), "ec2_request", ["created_at"], unique=False)
    op.create_table(
        "ec2_instance",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("client_token", sa.String(64), server_default="", nullable=False),
        sa.Column("launch_index", sa.Integer(), server_default="0", nullable=False),
        sa.Column("disable_api_termination", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("disable_api_stop", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.ForeignKeyConstraint(
            ["instance_uuid"], ["instance.uuid"], name=op.f("fk_ec2_instance_instance_uuid"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("instance_uuid", name=op.f("pk_ec2_instance")),
    )
    op.create_table(
        "ec2_keypair",
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id", "name"],
            ["keypair.project_id", "keypair.name"],
            name=op.f("fk_ec2_keypair_project_id_name"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("project_id", "name", name=op.f("pk_ec2_keypair")),
    )
    op.create_table(
        "ec2_tag",
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("resource", sa.String(40), nullable=False),
        sa.Column("key", sa.String(128), nullable=False),
        sa.Column("value", sa.String(255), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_ec2_tag_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project_id", "resource", "key", name=op.f("pk_ec2_tag")),
    )


def downgrade() -> None:
    for name in TABLES:
        op.drop_table(name)
