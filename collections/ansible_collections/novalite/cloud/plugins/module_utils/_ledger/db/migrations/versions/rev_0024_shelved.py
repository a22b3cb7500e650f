# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shelved instances: the image that the disk of each is made of, and a word that is longer than those of before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

SHORT, LONG = sa.String(16), sa.String(32)


def upgrade() -> None:
    op.add_column("instance", sa.Column("disk_image", sa.JSON(none_as_null=True)))
    _let_be(SHORT, LONG)


def downgrade() -> None:
    op.drop_column("instance", "disk_image")
    _let_be(LONG, SHORT)


def _let_be(before: sa.String, after: sa.String) -> None:
    """Change the length of an instance's vm_state. SQLite keeps texts of any length, and only writes the type down: a
    copy of the table in its place would take along what other tables hold (see rev_0010)."""
    connection = op.get_bind()
    if connection.dialect.name != "sqlite":
        op.alter_column("instance", "vm_state", existing_type=before, type_=after, existing_nullable=False)
        return
    old, new = (f"vm_state {kind.compile(connection.dialect)} NOT NULL" for kind in (before, after))
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    change = "UPDATE sqlite_master SET sql = replace(sql, :old, :new) WHERE type = 'table' AND name = 'instance'"
    connection.execute(sa.text(change), {"old": old, "new": new})
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    connection.exec_driver_sql("PRAGMA writable_schema = OFF")
