# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Boots of backups: how long a guest gets to be up, and what is kept of how it went."""

from __future__ import annotations

import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping, JsonObject

LEAST, SECONDS, MOST = 10, 300, 3600  # that a guest gets: at least, by default, at most
LONGEST_CONSOLE = 64 << 10  # characters that are kept, the last ones
LARGEST_PICTURE = 1 << 20  # characters of base64
_LONGEST_WORD = 1000


def seconds_of(value: t.Any) -> int:
    """Return the seconds that a guest gets (None: the usual ones). Raises NovaliteError."""
    seconds = SECONDS if value is None else int(value)
    if not LEAST <= seconds <= MOST:
        raise NovaliteError(f"boot_timeout={seconds} is not a time for a boot: give {LEAST} to {MOST} seconds")
    return seconds


def columns_of(booted: JsonMapping, now: int) -> JsonObject:
    """Return what the ledger keeps of a boot, as its host told it: a claim, of which nothing is longer than it may be.
    One whose guest was up has the time `now` as `proven_at`."""
    error = booted.get("error")
    seconds = booted.get("seconds")
    picture = booted.get("picture")
    return {
        "proven_at": now if error is None else None,
        "boot": {
            "by": None if error is not None else str(booted.get("by"))[:_LONGEST_WORD],
            "seconds": None if seconds is None else float(seconds),
            "error": None if error is None else str(error)[:_LONGEST_WORD],
        },
        "console": str(booted.get("console") or "").replace("\0", "")[-LONGEST_CONSOLE:],  # PostgreSQL keeps no zero
        "picture": str(picture) if picture and len(picture) <= LARGEST_PICTURE else None,
    }
