# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Workers, their runs of jobs, and the events in them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "worker",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("machine", sa.String(64), nullable=False),
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("started_at", sa.Float, nullable=False),
        sa.Column("seen_at", sa.Float, nullable=False),
        sa.Column("stopped_at", sa.Float),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_worker")),
    )
    op.create_index(op.f("ix_worker_seen_at"), "worker", ["seen_at"])
    op.create_table(
        "run",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("project_id", sa.String(32)),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("worker_id", sa.String(36), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("finished_at", sa.Float),
        sa.Column("outcome", sa.String(32)),
        sa.CheckConstraint("state IN ('running', 'ended')", name=op.f("ck_run_state")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
    )
    running = sa.text("state = 'running'")
    op.create_index("ix_run_running", "run", ["worker_id"], sqlite_where=running, postgresql_where=running)
    op.create_table(
        "run_job",
        sa.Column("run_id", sa.String(36), nullable=False),
        sa.Column("job_id", sa.String(36), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_run_job_run_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], name=op.f("fk_run_job_job_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", "job_id", name=op.f("pk_run_job")),
    )
    op.create_index(op.f("ix_run_job_job_id"), "run_job", ["job_id"])
    op.create_table(
        "job_event",
        sa.Column("seq", BigId, autoincrement=True, nullable=False),
        sa.Column("run_id", sa.String(36), nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("event", sa.String(32), nullable=False),
        sa.Column("play", sa.String(128)),
        sa.Column("task", sa.String(128)),
        sa.Column("host", sa.String(255)),
        sa.Column("status", sa.String(16)),
        sa.Column("duration", sa.Float),
        sa.Column("text", sa.Text),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_job_event_run_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_job_event")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_job_event_run_id_seq", "job_event", ["run_id", "seq"])


def downgrade() -> None:
    for name in ("job_event", "run_job", "run", "worker"):
        op.drop_table(name)
