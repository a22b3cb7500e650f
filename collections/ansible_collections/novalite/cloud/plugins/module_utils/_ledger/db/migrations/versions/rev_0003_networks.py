# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network managers, floating IPs, and what a guest is told: user data, config drive, files, password."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # plain ADD COLUMN, which SQLite can do: to write the tables anew would break the keys to them
    for column in (
        sa.Column("manager", sa.String(16), server_default="flat_dhcp", nullable=False),
        sa.Column("vni", sa.Integer()),
        sa.Column("isolated", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("snat", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("ntp", sa.JSON(), server_default="[]", nullable=False),
        sa.Column("ipv6_mode", sa.String(16), server_default="eui64", nullable=False),
    ):
        op.add_column("network", column)
    op.execute("UPDATE network SET manager = 'vlan' WHERE vlan IS NOT NULL")
    op.execute(sa.text("UPDATE network SET manager = 'flat' WHERE dhcp = :no").bindparams(no=False))
    op.create_index("uq_network_vni", "network", ["vni"], unique=True)
    for column in (
        sa.Column("user_data", sa.Text()),
        sa.Column("config_drive", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("files", sa.JSON()),
        sa.Column("password_hash", sa.Text()),
    ):
        op.add_column("instance", column)
    op.add_column("vif", sa.Column("allowed_address_pairs", sa.JSON()))
    op.create_table(
        "floating_pool",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("cidr", sa.String(18), nullable=False),
        sa.Column("interface", sa.String(15), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_floating_pool")),
    )
    op.create_table(
        "floating_ip",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("pool", sa.String(64), nullable=False),
        sa.Column("address", sa.BigInteger(), nullable=False),
        sa.Column("project_id", sa.String(32)),
        sa.Column("vif_id", sa.String(36)),
        sa.Column("released_at", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint("vif_id IS NULL OR project_id IS NOT NULL", name=op.f("ck_floating_ip_allocated")),
        sa.ForeignKeyConstraint(["pool"], ["floating_pool.name"], name=op.f("fk_floating_ip_pool"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_floating_ip_project_id")),
        sa.ForeignKeyConstraint(["vif_id"], ["vif.id"], name=op.f("fk_floating_ip_vif_id"), ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_floating_ip")),
        sa.UniqueConstraint("address", name=op.f("uq_floating_ip_address")),
    )
    op.create_index(op.f("ix_floating_ip_pool"), "floating_ip", ["pool"], unique=False)
    op.create_index(op.f("ix_floating_ip_vif_id"), "floating_ip", ["vif_id"], unique=False)


def downgrade() -> None:
    op.drop_table("floating_ip")
    op.drop_table("floating_pool")
    op.drop_column("vif", "allowed_address_pairs")
    for name in ("user_data", "config_drive", "files", "password_hash"):
        op.drop_column("instance", name)
    op.drop_index("uq_network_vni", table_name="network")
    for name in ("manager", "vni", "isolated", "snat", "ntp", "ipv6_mode"):
        op.drop_column("network", name)
