# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of what was asked of the API and is carried out by a playbook."""

from __future__ import annotations

import sqlalchemy as sa

from .schema import BigId, partial_index, table

job = table(
    "job",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),  # which playbook, and what variables it takes
    sa.Column("project_id", sa.String(32), index=True),  # null: of the cloud as a whole
    sa.Column("user_id", sa.String(32)),
    sa.Column("request_id", sa.String(40)),
    sa.Column("variables", sa.JSON, nullable=False),  # validated; secrets stay in the ledger's own columns
    sa.Column("check_mode", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("state", sa.String(16), nullable=False, server_default="queued"),
    sa.Column("idempotency_key", sa.String(255)),
    sa.Column("request_hash", sa.String(64)),  # of what came with that key
    sa.Column("run_id", sa.String(36), index=True),  # several waiting jobs may share one run
    sa.Column("retry_of", sa.String(36)),
    sa.Column("cancel_requested", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("timeout_seconds", sa.Integer, nullable=False),
    sa.Column("message", sa.Text),  # one line for people, without secrets
    sa.Column("result", sa.JSON(none_as_null=True)),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("started_at", sa.Float),
    sa.Column("finished_at", sa.Float),
    sa.UniqueConstraint("project_id", "idempotency_key"),
    sa.CheckConstraint("state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name="state"),
)
partial_index("ix_job_open", sa.text("state IN ('queued', 'running')"), job.c.created_at)

job_instance = table(  # two runs never touch one instance at once
    "job_instance",
    sa.Column("job_id", sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("instance_uuid", sa.String(36), primary_key=True, index=True),
)

worker = table(  # a process that carries jobs out
    "worker",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("machine", sa.String(64), nullable=False),  # machine and boot, on which a lock on a file tells of its end
    sa.Column("hostname", sa.String(255), nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("started_at", sa.Float, nullable=False),
    sa.Column("seen_at", sa.Float, nullable=False, index=True),  # by the database's clock
    sa.Column("stopped_at", sa.Float),  # null: it works, or died
)

run = table(  # one playbook over the instances of one or several jobs
    "run",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("project_id", sa.String(32)),  # null: jobs of several projects, or of none
    sa.Column("state", sa.String(16), nullable=False),  # running | ended
    sa.Column("worker_id", sa.String(36), nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),  # how often its playbook was begun
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("finished_at", sa.Float),
    sa.Column("outcome", sa.String(32)),  # successful | failed | timeout | cancelled | lost
    sa.CheckConstraint("state IN ('running', 'ended')", name="state"),
)
partial_index("ix_run_running", sa.text("state = 'running'"), run.c.worker_id)

run_job = table(  # which runs a job was in; the last one is in its row
    "run_job",
    sa.Column("run_id", sa.ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("job_id", sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True, index=True),
)

job_event = table(  # what happened in a run; texts are short, and without secrets
    "job_event",
    sa.Column("seq", BigId, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.ForeignKey("run.id", ondelete="CASCADE"), nullable=False),
    sa.Column("created_at", sa.Float, nullable=False),
    sa.Column("event", sa.String(32), nullable=False),  # play | task | result | message | end
    sa.Column("play", sa.String(128)),
    sa.Column("task", sa.String(128)),
    sa.Column("host", sa.String(255)),
    sa.Column("status", sa.String(16)),  # ok | changed | failed | ignored | unreachable | skipped
    sa.Column("duration", sa.Float),  # seconds
    sa.Column("text", sa.Text),
    sa.Index("ix_job_event_run_id_seq", "run_id", "seq"),
    sqlite_autoincrement=True,
)
