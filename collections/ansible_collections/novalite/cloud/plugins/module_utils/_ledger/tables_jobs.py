# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""The tables of what was asked of the API and is carried out by a playbook."""

from __future__ import annotations

import sqlalchemy as sa

from .schema import metadata

job = sa.Table(
    "job",
    metadata,
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
sa.Index(
    "ix_job_open",
    job.c.created_at,
    sqlite_where=sa.text("state IN ('queued', 'running')"),
    postgresql_where=sa.text("state IN ('queued', 'running')"),
)

job_instance = sa.Table(  # two runs never touch one instance at once
    "job_instance",
    metadata,
    sa.Column("job_id", sa.ForeignKey("job.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("instance_uuid", sa.String(36), primary_key=True, index=True),
)
