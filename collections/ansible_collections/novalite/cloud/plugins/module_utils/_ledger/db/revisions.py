# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Revisions of the ledger, and its file's name: for those, too, who do without SQLAlchemy (placement/host_marks.py)."""

from __future__ import annotations

FILE_NAME = "ledger.sqlite"

# Every revision, oldest first. Kept here so that opening a ledger that is up to date costs one SELECT and no import of
# Alembic (0.2 s); tests hold the list against migrations/versions.
REVISIONS = tuple(f"{number:04}" for number in range(1, 38))
HEAD = REVISIONS[-1]

BUSY_TIMEOUT = 30.0  # seconds that a writer waits for the others
