# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of what the ledger says of itself; see tables.py for the conventions."""

from __future__ import annotations

import sqlalchemy as sa

from .schema import metadata

ledger_identity = sa.Table(  # one row, written when the ledger is made
    "ledger_identity",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("uuid", sa.String(36), nullable=False),
    sa.CheckConstraint("id = 1", name="single"),
)
