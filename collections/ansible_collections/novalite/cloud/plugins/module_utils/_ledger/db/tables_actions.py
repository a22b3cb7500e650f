# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's tables of server groups, and of what was done to instances; part of tables.py's metadata."""

from __future__ import annotations

import sqlalchemy as sa

from .schema import BigId, metadata

server_group = sa.Table(
    "server_group",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE"), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("policy", sa.String(32), nullable=False),
    sa.Column("max_server_per_host", sa.Integer, nullable=False, server_default="1"),  # for anti-affinity
    sa.Column("user_id", sa.String(32)),  # who asked for it; null: a playbook
    sa.UniqueConstraint("project_id", "name"),
    sa.CheckConstraint("policy IN ('affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity')", name="policy"),
    sa.CheckConstraint("max_server_per_host >= 1", name="max_server_per_host"),
)

server_group_member = sa.Table(  # an instance is in one group at most, as in Nova
    "server_group_member",
    metadata,
    sa.Column("instance_uuid", sa.ForeignKey("instance.uuid", ondelete="CASCADE"), primary_key=True),
    sa.Column("group_id", sa.ForeignKey("server_group.id", ondelete="CASCADE"), nullable=False, index=True),
)

instance_action = sa.Table(
    "instance_action",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("instance_uuid", sa.String(36), nullable=False, index=True),
    sa.Column("action", sa.String(32), nullable=False),  # create, delete, ...
    sa.Column("request_id", sa.String(40), nullable=False),
    sa.Column("started_at", sa.BigInteger, nullable=False),
    sa.Column("finished_at", sa.BigInteger),
    sa.Column("message", sa.Text),  # "Error" detail for people, without secrets
    sa.Column("user_id", sa.String(32)),
    sa.Column("project_id", sa.String(32)),
    sa.Column("details", sa.JSON, nullable=False),  # the scheduler's explanation, ...
    sqlite_autoincrement=True,
)

instance_action_event = sa.Table(
    "instance_action_event",
    metadata,
    sa.Column("id", BigId, primary_key=True, autoincrement=True),
    sa.Column("action_id", sa.ForeignKey("instance_action.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("event", sa.String(64), nullable=False),
    sa.Column("host", sa.String(255)),
    sa.Column("started_at", sa.BigInteger, nullable=False),
    sa.Column("finished_at", sa.BigInteger),
    sa.Column("result", sa.String(16)),  # Success | Error
    sqlite_autoincrement=True,
)
