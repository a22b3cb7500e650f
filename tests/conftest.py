# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import gc
import typing as t

import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.util import LRUCache


class _Statements(LRUCache[t.Any, t.Any]):
    """SQL by what it was made of, and by the kind of database instead of the one engine."""

    def get(self, key: t.Any, default: t.Any = None) -> t.Any:
        return super().get((type(key[0]), *key[1:]), default)

    def __setitem__(self, key: t.Any, value: t.Any) -> None:
        super().__setitem__((type(key[0]), *key[1:]), value)


_STATEMENTS = _Statements(2000)


@event.listens_for(sa.Engine, "engine_connect")
def share_statements(connection: sa.Connection) -> None:
    """Let all tests' engines use what one of them has compiled: each test has a ledger, and so an engine, of its own.

    To compile the same statements for each anew took a third of the ledger's tests' time.
    """
    connection.execution_options(compiled_cache=_STATEMENTS)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep the garbage collector from what stays until the end: all modules and tests, millions of objects.

    It would walk through them again and again, which took a quarter of the tests' time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # what a test makes and drops is a multiple of the default's 700 objects
