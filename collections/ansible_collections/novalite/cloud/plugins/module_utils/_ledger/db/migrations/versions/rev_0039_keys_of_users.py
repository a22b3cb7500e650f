# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key pairs belong to users; those that playbooks made are shared by all of their project."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa
from alembic import op

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.key_owners import give_to_users

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def _key_columns() -> list[sa.Column[t.Any]]:
    return [
        sa.Column("type", sa.String(8), nullable=False, server_default="ssh"),
        sa.Column("public_key", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.String(47), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    ]


def _taken_out(name: str) -> list[dict[str, t.Any]]:
    """Drop a table, and return its rows: of key pairs there are few."""
    rows = [dict(row) for row in op.get_bind().execute(sa.text(f"SELECT * FROM {name}")).mappings()]
    op.drop_table(name)
    return rows


def upgrade() -> None:
    fingerprints, keys = _taken_out("ec2_keypair"), _taken_out("keypair")
    table = op.create_table(
        "keypair",
        sa.Column("user_id", sa.String(32), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        *_key_columns(),
        sa.PrimaryKeyConstraint("user_id", "project_id", "name", name="pk_keypair"),
    )
    op.bulk_insert(table, keys)
    table = op.create_table(
        "ec2_keypair",
        sa.Column("user_id", sa.String(32), nullable=False, server_default=""),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "project_id", "name", name="pk_ec2_keypair"),
    )
    op.bulk_insert(table, [{**row, "user_id": ""} for row in fingerprints])
    give_to_users(op.get_bind())


def downgrade() -> None:
    """Give users' keys to their default projects. One without such a project, or whose name is taken there, goes."""
    query = sa.text('SELECT id, default_project_id FROM "user" WHERE default_project_id IS NOT NULL')
    projects = {row.id: row.default_project_id for row in op.get_bind().execute(query)}
    fingerprints, keys = _taken_out("ec2_keypair"), _taken_out("keypair")
    placed: dict[tuple[str, str], dict[str, t.Any]] = {}
    for row in sorted(keys, key=lambda row: (row["user_id"], row["name"])):  # the shared ones first
        project = row["project_id"] or projects.get(row["user_id"])
        if project is not None:
            placed.setdefault((project, row["name"]), {**row, "project_id": project})
    table = op.create_table(
        "keypair",
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(32), nullable=False, server_default=""),
        *_key_columns(),
        sa.PrimaryKeyConstraint("project_id", "name", name="pk_keypair"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_keypair_project_id", ondelete="CASCADE"),
    )
    op.bulk_insert(table, list(placed.values()))
    table = op.create_table(
        "ec2_keypair",
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "name", name="pk_ec2_keypair"),
        sa.ForeignKeyConstraint(
            ["project_id", "name"],
            ["keypair.project_id", "keypair.name"],
            name="fk_ec2_keypair_project_id_name",
            ondelete="CASCADE",
        ),
    )
    known = {(row["user_id"], row["name"]): row["fingerprint"] for row in fingerprints}
    op.bulk_insert(
        table,
        [
            {"project_id": project, "name": name, "fingerprint": known[row["user_id"], name]}
            for (project, name), row in placed.items()
            if row["user_id"] and (row["user_id"], name) in known
        ],
    )
