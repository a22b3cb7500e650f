# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The first revision, from which Alembic goes on. New ledgers are made as tables.py has it (made.py)."""

from __future__ import annotations

revision = "0037"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass
