# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger's clock that stands still until a test sets it."""

from __future__ import annotations

import typing as t
import unittest.mock

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock


def standing_at(now: t.Callable[[], float]) -> t.ContextManager[object]:
    """Have every ledger in this process read its time, in seconds since the epoch, from `now`, which nobody sets."""
    return unittest.mock.patch.multiple(clock, now=lambda _connection: float(now()), _current=lambda _now: None)
