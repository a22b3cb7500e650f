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

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.sqlite_engine import STATEMENTS

MOST = 20_000  # of all tests of a process


@contextlib.contextmanager
def compiled_once() -> t.Iterator[None]:
    """Compiling takes a quarter of the time of tests that have a ledger of their own each."""
    compiled: LRUCache[t.Any, t.Any] = LRUCache(MOST)
    with contextlib.ExitStack() as stack:
        for owner, name, value in (
            # its key has the dialect in it, of which each engine has one
            (DefaultDialect, "__hash__", lambda dialect: hash(type(dialect))),
            (DefaultDialect, "__eq__", lambda dialect, other: type(dialect) is type(other)),
            (sa.Engine, "_compiled_cache", property(lambda _: compiled, lambda *_: None)),
        ):
            stack.enter_context(unittest.mock.patch.object(owner, name, value, create=True))
        # SQLite's, which its engines share by themselves
        stack.callback(setattr, STATEMENTS, "capacity", STATEMENTS.capacity)
        STATEMENTS.capacity = MOST
        yield
