# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes and moves; what instances keep of a rescue and of what the APIs were told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "volume_type",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("backend", sa.String(16), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("extra_specs", sa.JSON(), nullable=False),
        sa.Column("is_public", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("backend IN ('file', 'lvm', 'nfs')", name=op.f("ck_volume_type_backend")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_volume_type")),
        sa.UniqueConstraint("name", name=op.f("uq_volume_type_name")),
    )
    op.create_table(
        "volume",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(32)),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("display_name", sa.String(255)),
        sa.Column("description", sa.Text()),
        sa.Column("size_gb", sa.BigInteger(), nullable=False),
        sa.Column("new_size_gb", sa.BigInteger()),
        sa.Column("type_id", sa.String(36), nullable=False),
        sa.Column("format", sa.String(16), nullable=False),
        sa.Column("host", sa.String(255)),
        sa.Column("availability_zone", sa.String(255)),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("bootable", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("readonly", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("multiattach", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("image", sa.JSON(none_as_null=True)),
        sa.Column("source_volume_id", sa.String(36)),
        sa.Column("snapshot_id", sa.String(36)),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("fault", sa.JSON(none_as_null=True)),
        sa.Column("made_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("format IN ('raw', 'qcow2')", name=op.f("ck_volume_format")),
        sa.CheckConstraint("size_gb >= 1", name=op.f("ck_volume_size")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_volume_project_id")),
        sa.ForeignKeyConstraint(["type_id"], ["volume_type.id"], name=op.f("fk_volume_type_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_volume")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_volume_project_id_name")),
    )
    op.create_index(op.f("ix_volume_project_id"), "volume", ["project_id"], unique=False)
    op.create_table(
        "migration",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("type", sa.String(16), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("source_host", sa.String(255)),
        sa.Column("dest_host", sa.String(255)),
        sa.Column("old_flavor", sa.JSON(), nullable=False),
        sa.Column("new_flavor", sa.JSON(), nullable=False),
        sa.Column("old_vm_state", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(32)),
        sa.Column("user_id", sa.String(32)),
        sa.Column("project_id", sa.String(32)),
        sa.Column("message", sa.Text()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "type IN ('resize', 'migration', 'live-migration', 'evacuation')", name=op.f("ck_migration_type")
        ),
        sa.ForeignKeyConstraint(
            ["instance_uuid"], ["instance.uuid"], name=op.f("fk_migration_instance_uuid"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_migration")),
        sa.UniqueConstraint("uuid", name=op.f("uq_migration_uuid")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_migration_instance_uuid"), "migration", ["instance_uuid"], unique=False)
    op.create_table(
        "volume_attachment",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("device", sa.String(32), nullable=False),
        sa.Column("boot_index", sa.Integer()),
        sa.Column("tag", sa.String(60)),
        sa.Column("delete_on_termination", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("readonly", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("attached_at", sa.BigInteger()),
        sa.ForeignKeyConstraint(["instance_uuid"], ["instance.uuid"], name=op.f("fk_volume_attachment_instance_uuid")),
        sa.ForeignKeyConstraint(
            ["volume_id"], ["volume.id"], name=op.f("fk_volume_attachment_volume_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_volume_attachment")),
        sa.UniqueConstraint("instance_uuid", "device", name=op.f("uq_volume_attachment_instance_uuid_device")),
        sa.UniqueConstraint("volume_id", "instance_uuid", name=op.f("uq_volume_attachment_volume_id_instance_uuid")),
    )
    op.create_index(op.f("ix_volume_attachment_instance_uuid"), "volume_attachment", ["instance_uuid"], unique=False)
    op.create_index(op.f("ix_volume_attachment_volume_id"), "volume_attachment", ["volume_id"], unique=False)
    op.create_table(
        "volume_snapshot",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("volume_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(32)),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("display_name", sa.String(255)),
        sa.Column("description", sa.Text()),
        sa.Column("size_gb", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("fault", sa.JSON(none_as_null=True)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_volume_snapshot_project_id")),
        sa.ForeignKeyConstraint(["volume_id"], ["volume.id"], name=op.f("fk_volume_snapshot_volume_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_volume_snapshot")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_volume_snapshot_project_id_name")),
    )
    op.create_index(op.f("ix_volume_snapshot_project_id"), "volume_snapshot", ["project_id"], unique=False)
    op.create_index(op.f("ix_volume_snapshot_volume_id"), "volume_snapshot", ["volume_id"], unique=False)
    op.add_column("instance", sa.Column("access_ip_v4", sa.String(15)))
    op.add_column("instance", sa.Column("access_ip_v6", sa.String(39)))
    op.add_column("instance", sa.Column("disk_config", sa.String(8), server_default="MANUAL", nullable=False))
    op.add_column("instance", sa.Column("rescue_image", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("instance", "rescue_image")
    op.drop_column("instance", "disk_config")
    op.drop_column("instance", "access_ip_v6")
    op.drop_column("instance", "access_ip_v4")
    op.drop_index(op.f("ix_volume_snapshot_volume_id"), table_name="volume_snapshot")
    op.drop_index(op.f("ix_volume_snapshot_project_id"), table_name="volume_snapshot")
    op.drop_table("volume_snapshot")
    op.drop_index(op.f("ix_volume_attachment_volume_id"), table_name="volume_attachment")
    op.drop_index(op.f("ix_volume_attachment_instance_uuid"), table_name="volume_attachment")
    op.drop_table("volume_attachment")
    op.drop_index(op.f("ix_migration_instance_uuid"), table_name="migration")
    op.drop_table("migration")
    op.drop_index(op.f("ix_volume_project_id"), table_name="volume")
    op.drop_table("volume")
    op.drop_table("volume_type")
