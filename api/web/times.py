# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times as texts. Each takes seconds since the epoch; times are UTC's."""

from __future__ import annotations

import functools
import time
from datetime import datetime, timezone


@functools.lru_cache(maxsize=8192)
def iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@functools.lru_cache(maxsize=8192)
def precise(seconds: float | None) -> str | None:
    """Format a time as Nova and Cinder write some: zeros for microseconds, no time zone. None without a time."""
    return None if not seconds else time.strftime("%Y-%m-%dT%H:%M:%S.000000", time.gmtime(seconds))


def with_microseconds(seconds: float) -> str:
    """Format a time as Nova's accounting and, with a Z, Keystone write it: UTC, with microseconds."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")


def parse(text: str) -> datetime:
    """A time in ISO 8601; without a zone it is UTC. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=moment.tzinfo or timezone.utc)
