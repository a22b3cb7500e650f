# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images in all of Glance's states, and whom they and volume types are shared with."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

FORMATS = "disk_format IN ('', 'raw', 'qcow2', 'vmdk', 'vhd', 'vhdx', 'vdi', 'ploop', 'iso', 'ami', 'ari', 'aki')"
CONTAINERS = "container_format IN ('', 'bare', 'ami', 'ari', 'aki', 'ovf', 'ova', 'docker', 'compressed')"
STATES = "status IN ('queued', 'saving', 'uploading', 'importing', 'active', 'killed', 'deactivated')"
VISIBILITIES = "visibility IN ('public', 'private', 'shared', 'community')"
COLUMNS: tuple[tuple[str, t.Any, dict[str, t.Any]], ...] = (
    ("display_name", sa.String(255), {}),
    ("status", sa.String(16), {"server_default": "active", "nullable": False}),
    ("visibility", sa.String(16), {"server_default": "private", "nullable": False}),
    ("container_format", sa.String(16), {"server_default": "bare", "nullable": False}),
    ("md5", sa.String(32), {}),
    ("tags", sa.JSON(), {"server_default": "[]", "nullable": False}),
    ("protected", sa.Boolean(), {"server_default": sa.false(), "nullable": False}),
    ("os_hidden", sa.Boolean(), {"server_default": sa.false(), "nullable": False}),
    ("transfer", sa.String(36), {}),
    ("fault", sa.Text(), {}),
    ("updated_at", sa.BigInteger(), {"server_default": "0", "nullable": False}),
)
# what was kept in private properties until now
KEPT = {"novalite:tags": "tags", "novalite:protected": "protected", "novalite:updated_at": "updated_at"}


def upgrade() -> None:
    with op.batch_alter_table("image") as batch:
        for name, kind, rules in COLUMNS:
            batch.add_column(sa.Column(name, kind, **rules))
        _plain_defaults(batch)
        _without_checks(batch)
        for name, rule in (
            ("disk_format", FORMATS),
            ("container_format", CONTAINERS),
            ("status", STATES),
            ("visibility", VISIBILITIES),
        ):
            batch.create_check_constraint(op.f(f"ck_image_{name}"), rule)
    _move_properties()
    op.create_table(
        "image_member",
        sa.Column("image_id", sa.String(36), nullable=False),
        sa.Column("member", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), server_default="pending", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("status IN ('pending', 'accepted', 'rejected')", name=op.f("ck_image_member_status")),
        sa.ForeignKeyConstraint(["image_id"], ["image.id"], name=op.f("fk_image_member_image_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("image_id", "member", name=op.f("pk_image_member")),
    )
    op.create_index(op.f("ix_image_member_member"), "image_member", ["member"], unique=False)
    op.create_table(
        "image_task",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("image_id", sa.String(36), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("input", sa.JSON(), nullable=False),
        sa.Column("message", sa.Text(), server_default="", nullable=False),
        sa.Column("request_id", sa.String(40)),
        sa.Column("user_id", sa.String(32)),
        sa.Column("project_id", sa.String(32)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["image_id"], ["image.id"], name=op.f("fk_image_task_image_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_image_task")),
    )
    op.create_index(op.f("ix_image_task_image_id"), "image_task", ["image_id"], unique=False)
    op.create_table(
        "volume_type_access",
        sa.Column("type_id", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(36), nullable=False),
        sa.ForeignKeyConstraint(
            ["type_id"], ["volume_type.id"], name=op.f("fk_volume_type_access_type_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("type_id", "project_id", name=op.f("pk_volume_type_access")),
    )


def downgrade() -> None:
    op.drop_table("volume_type_access")
    op.drop_index(op.f("ix_image_task_image_id"), table_name="image_task")
    op.drop_table("image_task")
    op.drop_index(op.f("ix_image_member_member"), table_name="image_member")
    op.drop_table("image_member")
    with op.batch_alter_table("image") as batch:
        _without_checks(batch, "disk_format", "container_format", "status", "visibility")
        for name, _kind, _rules in COLUMNS:
            batch.drop_column(name)
        _plain_defaults(batch)
        batch.create_check_constraint(op.f("ck_image_disk_format"), "disk_format IN ('raw', 'qcow2')")


def _plain_defaults(batch: t.Any) -> None:
    """SQLite says ('') of what was written as '', and a table made anew would keep that."""
    batch.alter_column("owner", existing_type=sa.String(32), existing_nullable=False, server_default="")
    batch.alter_column("cmdline", existing_type=sa.Text(), existing_nullable=False, server_default="")


def _without_checks(batch: t.Any, *names: str) -> None:
    """SQLite's table is made anew, and its checks are not read from the old one."""
    if op.get_bind().dialect.name != "sqlite":
        for name in names or ("disk_format",):
            batch.drop_constraint(op.f(f"ck_image_{name}"), type_="check")


def _move_properties() -> None:
    table = sa.table(
        "image",
        *(sa.column(name) for name in ("id", "owner", "created_at", "visibility", "protected", "updated_at")),
        sa.column("properties", sa.JSON),
        sa.column("tags", sa.JSON),
    )
    connection = op.get_bind()
    rows = connection.execute(sa.select(table.c.id, table.c.owner, table.c.created_at, table.c.properties)).all()
    for row in rows:
        values = {"visibility": "private" if row.owner else "public", "updated_at": row.created_at}
        values.update({column: row.properties[key] for key, column in KEPT.items() if key in row.properties})
        values["properties"] = {key: value for key, value in row.properties.items() if key not in KEPT}
        connection.execute(sa.update(table).where(table.c.id == row.id).values(**values))
