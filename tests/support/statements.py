# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""SQL statements that are compiled once for all ledgers of a kind (SQLite, PostgreSQL), not once for each ledger."""

from __future__ import annotations

import contextlib
import typing as t
import unittest.mock

import sqlalchemy as sa
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache


@contextlib.contextmanager
def compiled_once() -> t.Iterator[None]:
    """Compiling takes a quarter of the time of tests that have a ledger of their own each."""
    compiled: LRUCache[t.Any, t.Any] = LRUCache(20_000)
    with contextlib.ExitStack() as stack:
        for owner, name, value in (
            # its key has the dialect in it, of which each engine has one
            (DefaultDialect, "__hash__", lambda dialect: hash(type(dialect))),
            (DefaultDialect, "__eq__", lambda dialect, other: type(dialect) is type(other)),
            (sa.Engine, "_compiled_cache", property(lambda _: compiled, lambda *_: None)),
        ):
            stack.enter_context(unittest.mock.patch.object(owner, name, value, create=True))
        yield
