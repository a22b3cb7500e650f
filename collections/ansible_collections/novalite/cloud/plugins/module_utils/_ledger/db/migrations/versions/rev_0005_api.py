# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users and jobs; attributes of instances and flavors that the APIs show beyond what playbooks need."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "auth_failure",
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("first_at", sa.Float(), nullable=False),
        sa.Column("locked_until", sa.Float(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("subject", name=op.f("pk_auth_failure")),
    )
    op.create_table(
        "job",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("project_id", sa.String(32)),
        sa.Column("user_id", sa.String(32)),
        sa.Column("request_id", sa.String(40)),
        sa.Column("variables", sa.JSON(), nullable=False),
        sa.Column("check_mode", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("state", sa.String(16), server_default="queued", nullable=False),
        sa.Column("idempotency_key", sa.String(255)),
        sa.Column("request_hash", sa.String(64)),
        sa.Column("run_id", sa.String(36)),
        sa.Column("retry_of", sa.String(36)),
        sa.Column("cancel_requested", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("timeout_seconds", sa.Integer(), nullable=False),
        sa.Column("message", sa.Text()),
        sa.Column("result", sa.JSON()),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("started_at", sa.Float()),
        sa.Column("finished_at", sa.Float()),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name=op.f("ck_job_state")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
        sa.UniqueConstraint("project_id", "idempotency_key", name=op.f("uq_job_project_id_idempotency_key")),
    )
    op.create_index(
        "ix_job_open",
        "job",
        ["created_at"],
        unique=False,
        sqlite_where=sa.text("state IN ('queued', 'running')"),
        postgresql_where=sa.text("state IN ('queued', 'running')"),
    )
    op.create_index(op.f("ix_job_project_id"), "job", ["project_id"], unique=False)
    op.create_index(op.f("ix_job_run_id"), "job", ["run_id"], unique=False)
    op.create_table(
        "job_instance",
        sa.Column("job_id", sa.String(36), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_job_instance_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "instance_uuid", name=op.f("pk_job_instance")),
    )
    op.create_index(op.f("ix_job_instance_instance_uuid"), "job_instance", ["instance_uuid"], unique=False)
    op.create_table(
        "user",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("password_hash", sa.Text()),
        sa.Column("enabled", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("default_project_id", sa.String(32)),
        sa.Column("description", sa.String(255), server_default="", nullable=False),
        sa.Column("email", sa.String(255)),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("tokens_valid_since", sa.Float(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["default_project_id"], ["project.id"], name=op.f("fk_user_default_project_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user")),
        sa.UniqueConstraint("name", name=op.f("uq_user_name")),
    )
    op.create_table(
        "application_credential",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(32), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("secret_hash", sa.Text(), nullable=False),
        sa.Column("description", sa.String(255), server_default="", nullable=False),
        sa.Column("roles", sa.JSON(), nullable=False),
        sa.Column("unrestricted", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("expires_at", sa.BigInteger()),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_application_credential_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user.id"], name=op.f("fk_application_credential_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_application_credential")),
        sa.UniqueConstraint("user_id", "name", name=op.f("uq_application_credential_user_id_name")),
    )
    op.create_table(
        "ec2_credential",
        sa.Column("access", sa.String(32), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("user_id", sa.String(32), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_ec2_credential_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_ec2_credential_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("access", name=op.f("pk_ec2_credential")),
    )
    op.create_index(op.f("ix_ec2_credential_user_id"), "ec2_credential", ["user_id"], unique=False)
    op.create_table(
        "role_assignment",
        sa.Column("user_id", sa.String(32), nullable=False),
        sa.Column("project_id", sa.String(32), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.CheckConstraint("role IN ('admin', 'member', 'reader')", name=op.f("ck_role_assignment_role")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name=op.f("fk_role_assignment_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_role_assignment_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("user_id", "project_id", "role", name=op.f("pk_role_assignment")),
    )
    op.create_table(
        "token",
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("user_id", sa.String(32), nullable=False),
        sa.Column("project_id", sa.String(32)),
        sa.Column("method", sa.String(32), nullable=False),
        sa.Column("application_credential_id", sa.String(32)),
        sa.Column("audit_id", sa.String(32), nullable=False),
        sa.Column("issued_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(
            ["application_credential_id"],
            ["application_credential.id"],
            name=op.f("fk_token_application_credential_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_token_project_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_token_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_token")),
    )
    op.create_index(op.f("ix_token_expires_at"), "token", ["expires_at"], unique=False)
    op.create_index(op.f("ix_token_user_id"), "token", ["user_id"], unique=False)
    op.add_column("flavor", sa.Column("flavorid", sa.String(255)))
    op.add_column("flavor", sa.Column("is_public", sa.Boolean(), server_default=sa.true(), nullable=False))
    op.add_column("flavor", sa.Column("description", sa.Text()))
    op.create_index("uq_flavor_flavorid", "flavor", ["flavorid"], unique=True)
    op.add_column("instance", sa.Column("password_optional", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("instance", sa.Column("display_name", sa.String(255)))
    op.add_column("instance", sa.Column("description", sa.String(255)))
    op.add_column("instance", sa.Column("user_id", sa.String(32)))
    op.add_column("instance", sa.Column("reservation_id", sa.String(16)))
    op.add_column("instance", sa.Column("locked", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("instance", sa.Column("locked_reason", sa.String(255)))
    op.add_column("instance", sa.Column("tags", sa.JSON(), server_default="[]", nullable=False))
    op.add_column("instance_action", sa.Column("user_id", sa.String(32)))
    op.add_column("instance_action", sa.Column("project_id", sa.String(32)))
    op.add_column("project", sa.Column("description", sa.String(255), server_default="", nullable=False))
    op.add_column("project", sa.Column("enabled", sa.Boolean(), server_default=sa.true(), nullable=False))


def downgrade() -> None:
    op.drop_column("project", "enabled")
    op.drop_column("project", "description")
    op.drop_column("instance_action", "project_id")
    op.drop_column("instance_action", "user_id")
    op.drop_column("instance", "tags")
    op.drop_column("instance", "locked_reason")
    op.drop_column("instance", "locked")
    op.drop_column("instance", "reservation_id")
    op.drop_column("instance", "user_id")
    op.drop_column("instance", "description")
    op.drop_column("instance", "password_optional")
    op.drop_column("instance", "display_name")
    op.drop_index("uq_flavor_flavorid", table_name="flavor")
    op.drop_column("flavor", "description")
    op.drop_column("flavor", "is_public")
    op.drop_column("flavor", "flavorid")
    op.drop_index(op.f("ix_token_user_id"), table_name="token")
    op.drop_index(op.f("ix_token_expires_at"), table_name="token")
    op.drop_table("token")
    op.drop_table("role_assignment")
    op.drop_index(op.f("ix_ec2_credential_user_id"), table_name="ec2_credential")
    op.drop_table("ec2_credential")
    op.drop_table("application_credential")
    op.drop_table("user")
    op.drop_index(op.f("ix_job_instance_instance_uuid"), table_name="job_instance")
    op.drop_table("job_instance")
    op.drop_index(op.f("ix_job_run_id"), table_name="job")
    op.drop_index(op.f("ix_job_project_id"), table_name="job")
    op.drop_index(
        "ix_job_open",
        table_name="job",
        sqlite_where=sa.text("state IN ('queued', 'running')"),
        postgresql_where=sa.text("state IN ('queued', 'running')"),
    )
    op.drop_table("job")
    op.drop_table("auth_failure")
