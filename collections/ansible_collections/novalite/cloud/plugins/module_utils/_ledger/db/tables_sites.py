# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of what stacks have made; see tables.py for the conventions."""

from __future__ import annotations

import sqlalchemy as sa

from .schema import metadata

site_record = sa.Table(
    "site_record",
    metadata,
    sa.Column("site", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("owner", sa.String(32), primary_key=True),  # a project's id; "": public
    sa.Column("name", sa.String(255), primary_key=True),
    sa.Column("reference", sa.String(64), nullable=False),  # the record's own id when the stack made it
)
