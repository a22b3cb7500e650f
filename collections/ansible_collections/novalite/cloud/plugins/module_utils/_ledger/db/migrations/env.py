# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Alembic's environment: runs on the connection, and in the transaction, that engine.py hands over."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    # SQLite alters a table by writing it anew
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
