# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Domains, groups of users, roles of one's own, nested projects with tags, trusts, credentials, access rules.

On SQLite the tokens of application credentials end: their table is made anew, for ends with microseconds.
"""

from __future__ import annotations

import hashlib
import time
import typing as t

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

ROLES = ("admin", "manager", "member", "reader")
FALSE = sa.false()


def upgrade() -> None:
    domain = op.create_table(
        "domain",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("name_key", sa.String(128), nullable=False),
        sa.Column("description", sa.String(255), nullable=False, server_default=""),
        sa.Column("enabled", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_domain"),
        sa.UniqueConstraint("name_key", name="uq_domain_name_key"),
    )
    first = {"id": "default", "name": "Default", "name_key": "default", "description": "The default domain"}
    op.bulk_insert(domain, [{**first, "created_at": int(time.time())}])
    for table, length in (("user", 255), ("project", 64)):
        op.add_column(table, sa.Column("domain_id", sa.String(32), nullable=False, server_default="default"))
        op.add_column(table, sa.Column("display_name", sa.String(length)))
        op.add_column(table, sa.Column("extra", sa.JSON, nullable=False, server_default="{}"))
        op.create_index(f"uq_{table}_domain_id", table, ["domain_id", "display_name"], unique=True)
    op.add_column("user", sa.Column("options", sa.JSON, nullable=False, server_default="{}"))
    op.add_column("project", sa.Column("parent_id", sa.String(32)))
    op.create_index("ix_project_parent_id", "project", ["parent_id"])
    _create_groups()
    _create_roles()
    _create_credentials()


def _create_groups() -> None:
    op.create_table(
        "user_group",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("domain_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("description", sa.String(255), nullable=False, server_default=""),
        sa.Column("extra", sa.JSON, nullable=False, server_default="{}"),
        sa.PrimaryKeyConstraint("id", name="pk_user_group"),
        sa.UniqueConstraint("domain_id", "name", name="uq_user_group_domain_id_name"),
        sa.ForeignKeyConstraint(["domain_id"], ["domain.id"], name="fk_user_group_domain_id"),
    )
    op.create_table(
        "user_group_member",
        sa.Column("group_id", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("group_id", "user_id", name="pk_user_group_member"),
        _key("user_group_member", "group_id", "user_group"),
        _key("user_group_member", "user_id", "user"),
    )
    op.create_index("ix_user_group_member_user_id", "user_group_member", ["user_id"])
    op.create_table(
        "project_tag",
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("tag", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "tag", name="pk_project_tag"),
        _key("project_tag", "project_id", "project"),
    )


def _create_roles() -> None:
    role = op.create_table(
        "role",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("domain_id", sa.String(32)),
        sa.Column("description", sa.String(255), nullable=False, server_default=""),
        sa.PrimaryKeyConstraint("id", name="pk_role"),
        sa.UniqueConstraint("domain_id", "name", name="uq_role_domain_id_name"),
        _key("role", "domain_id", "domain"),
    )
    op.bulk_insert(role, [{"id": name, "name": name} for name in ROLES])
    everywhere = sa.text("domain_id IS NULL")
    op.create_index("uq_role_name", "role", ["name"], unique=True, sqlite_where=everywhere, postgresql_where=everywhere)
    before = _assignments("")
    op.drop_table("role_assignment")  # no other table points here
    table = op.create_table(
        "role_assignment",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("user_id", sa.String(32)),
        sa.Column("group_id", sa.String(32)),
        sa.Column("project_id", sa.String(32)),
        sa.Column("domain_id", sa.String(32)),
        sa.Column("role", sa.String(32), nullable=False),
        sa.Column("inherited", sa.Boolean, nullable=False, server_default=FALSE),
        sa.PrimaryKeyConstraint("id", name="pk_role_assignment"),
        sa.CheckConstraint("(user_id IS NULL) <> (group_id IS NULL)", name=op.f("ck_role_assignment_actor")),
        sa.CheckConstraint("(project_id IS NULL) <> (domain_id IS NULL)", name=op.f("ck_role_assignment_target")),
        _key("role_assignment", "user_id", "user"),
        _key("role_assignment", "group_id", "user_group"),
        _key("role_assignment", "project_id", "project"),
        _key("role_assignment", "domain_id", "domain"),
        _key("role_assignment", "role", "role"),
        sqlite_autoincrement=True,
    )
    op.bulk_insert(table, before)
    for actor in ("user", "group"):
        for target in ("project", "domain"):
            columns = [f"{actor}_id", f"{target}_id", "role", "inherited"]
            op.create_index(f"uq_role_assignment_{actor}_{target}", "role_assignment", columns, unique=True)


def _create_credentials() -> None:
    with op.batch_alter_table("application_credential") as batch:
        batch.alter_column("expires_at", type_=sa.Float, existing_type=sa.BigInteger)
        # as it was: SQLite's answer to what it is would be put in parentheses
        batch.alter_column("description", server_default="", existing_type=sa.String(255), existing_nullable=False)
        batch.add_column(sa.Column("access_rules", sa.JSON))
    op.create_table(
        "access_rule",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(32), nullable=False),
        sa.Column("service", sa.String(64), nullable=False),
        sa.Column("method", sa.String(8), nullable=False),
        sa.Column("path", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_access_rule"),
        sa.UniqueConstraint("user_id", "service", "method", "path", name="uq_access_rule_user_id_service_method_path"),
        _key("access_rule", "user_id", "user"),
    )
    op.create_table(
        "trust",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("trustor_user_id", sa.String(32), nullable=False),
        sa.Column("trustee_user_id", sa.String(32), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("impersonation", sa.Boolean, nullable=False),
        sa.Column("roles", sa.JSON, nullable=False),
        sa.Column("expires_at", sa.Float),
        sa.Column("remaining_uses", sa.Integer),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_trust"),
        sa.CheckConstraint("remaining_uses >= 0", name=op.f("ck_trust_remaining_uses")),
        _key("trust", "trustor_user_id", "user"),
        _key("trust", "trustee_user_id", "user"),
        _key("trust", "project_id", "project"),
    )
    op.create_index("ix_trust_trustor_user_id", "trust", ["trustor_user_id"])
    op.create_index("ix_trust_trustee_user_id", "trust", ["trustee_user_id"])
    with op.batch_alter_table("token") as batch:
        batch.add_column(sa.Column("domain_id", sa.String(32)))
        batch.add_column(sa.Column("trust_id", sa.String(32)))
        batch.create_foreign_key("fk_token_domain_id", "domain", ["domain_id"], ["id"], ondelete="CASCADE")
        batch.create_foreign_key("fk_token_trust_id", "trust", ["trust_id"], ["id"], ondelete="CASCADE")
    with op.batch_alter_table("ec2_credential") as batch:
        batch.add_column(sa.Column("credential_id", sa.String(64)))
        batch.add_column(sa.Column("blob", sa.Text))
        batch.create_unique_constraint("uq_ec2_credential_credential_id", ["credential_id"])
    for access in op.get_bind().execute(sa.text("SELECT access FROM ec2_credential")).scalars().all():
        values = {"access": access, "id": hashlib.sha256(access.encode()).hexdigest()}  # as Keystone makes it
        op.get_bind().execute(sa.text("UPDATE ec2_credential SET credential_id = :id WHERE access = :access"), values)
    op.create_table(
        "credential",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("type", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(32), nullable=False),
        sa.Column("project_id", sa.String(32)),
        sa.Column("blob", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_credential"),
        _key("credential", "user_id", "user"),
        _key("credential", "project_id", "project"),
    )
    op.create_index("ix_credential_user_id", "credential", ["user_id"])


def _key(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{target}.id"], name=f"fk_{table}_{column}", ondelete="CASCADE")


def _assignments(condition: str) -> list[dict[str, t.Any]]:
    rows = op.get_bind().execute(sa.text(f"SELECT user_id, project_id, role FROM role_assignment {condition}"))
    return [dict(row) for row in rows.mappings()]


def downgrade() -> None:
    """Remove all that the older code has no word for: groups, their roles, other domains with their content, trusts."""
    op.drop_table("credential")
    op.execute("DELETE FROM token WHERE domain_id IS NOT NULL OR trust_id IS NOT NULL")
    with op.batch_alter_table("ec2_credential") as batch:
        batch.drop_constraint("uq_ec2_credential_credential_id", type_="unique")
        batch.drop_column("blob")
        batch.drop_column("credential_id")
    with op.batch_alter_table("token") as batch:
        batch.drop_constraint("fk_token_trust_id", type_="foreignkey")
        batch.drop_constraint("fk_token_domain_id", type_="foreignkey")
        batch.drop_column("trust_id")
        batch.drop_column("domain_id")
    op.drop_table("trust")
    op.drop_table("access_rule")
    # the older code would take them for credentials without bounds
    op.execute("DELETE FROM application_credential WHERE access_rules IS NOT NULL")
    with op.batch_alter_table("application_credential") as batch:
        batch.drop_column("access_rules")
        batch.alter_column("expires_at", type_=sa.BigInteger, existing_type=sa.Float)
        batch.alter_column("description", server_default="", existing_type=sa.String(255), existing_nullable=False)
    roles = ", ".join(f"'{name}'" for name in ROLES)
    before = _assignments(
        f"WHERE user_id IS NOT NULL AND project_id IS NOT NULL AND NOT inherited AND role IN ({roles})"
    )
    op.drop_table("role_assignment")
    table = op.create_table(
        "role_assignment",
        sa.Column("user_id", sa.String(32), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.CheckConstraint(f"role IN ({roles})", name=op.f("ck_role_assignment_role")),
        sa.PrimaryKeyConstraint("user_id", "project_id", "role", name="pk_role_assignment"),
        _key("role_assignment", "user_id", "user"),
        _key("role_assignment", "project_id", "project"),
    )
    op.bulk_insert(table, before)
    op.drop_index("uq_role_name", "role")
    op.drop_table("role")
    op.drop_table("project_tag")
    op.drop_table("user_group_member")
    op.drop_table("user_group")
    op.execute("UPDATE \"user\" SET enabled = false WHERE domain_id <> 'default'")  # whose domain may be disabled
    op.drop_index("ix_project_parent_id", "project")
    op.drop_column("project", "parent_id")
    op.drop_column("user", "options")
    for name in ("project", "user"):
        op.drop_index(f"uq_{name}_domain_id", name)
        for column in ("extra", "display_name", "domain_id"):
            op.drop_column(name, column)
    op.drop_table("domain")
