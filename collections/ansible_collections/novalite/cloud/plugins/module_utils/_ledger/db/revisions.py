# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Revisions of the ledger, and names that it has from the start: for those, too, who do without SQLAlchemy."""

from __future__ import annotations

FILE_NAME = "ledger.sqlite"
DEFAULT_PROJECT = "demo"  # of requests that name none

# Every revision, oldest first. Kept here so that opening a ledger that is up to date costs one SELECT and no import of
# Alembic (0.2 s); tests hold the list against migrations/versions.
REVISIONS = (
    "0037",
    "0038",
    "0039",
    "0040",
    "0041",
    "0042",
    "0043",
    "0044",
    "0045",
    "0046",
    "0047",
    "0049",
    "0052",
    "0053",
    "0054",
    "0055",
    "0056",
    "0057",
    "0058",
    "0059",
    "0060",
)
HEAD = REVISIONS[-1]
# Revisions from before the first release that can still be read. A ledger of one is written anew, by way of its text
FORMER = tuple(f"{number:04}" for number in range(31, 37))

BUSY_TIMEOUT = 30.0  # seconds that a writer waits for the others
