# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger's identity: it comes with the ledger, stays, and goes where the ledger's records go."""

from __future__ import annotations

import pathlib
import re
import shutil
import sqlite3

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.ledger_identity import ledger_id, set_ledger_id
from tests.support.rows import add_host

pytestmark = pytest.mark.both_databases

OTHER = "0f5c8a52-9d2e-4a53-8c53-9a1d3c2b7e11"


def read(engine: sa.Engine) -> str:
    with transaction(engine) as connection:
        return ledger_id(connection)


def test_a_ledger_keeps_its_identity(ledger: sa.Engine, ledger_url: str) -> None:
    identity = read(ledger)
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", identity)
    again = open_ledger(url=ledger_url)
    assert read(again) == identity
    again.dispose()


def test_two_ledgers_have_different_ones_and_a_copy_has_the_same(tmp_path: pathlib.Path) -> None:
    engines = [open_ledger(str(tmp_path / name)) for name in ("a", "b")]
    first, second = map(read, engines)
    assert first != second
    with sqlite3.connect(tmp_path / "a" / "ledger.sqlite") as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw.close()
    (tmp_path / "c").mkdir()
    shutil.copy(tmp_path / "a" / "ledger.sqlite", tmp_path / "c" / "ledger.sqlite")
    engines.append(open_ledger(str(tmp_path / "c")))
    assert read(engines[2]) == first
    for engine in engines:
        engine.dispose()


def test_an_empty_ledger_takes_the_identity_that_hosts_carry(ledger: sa.Engine) -> None:
    with transaction(ledger) as connection:
        before = ledger_id(connection)
        set_ledger_id(connection, OTHER.upper())
        assert ledger_id(connection) == OTHER
        set_ledger_id(connection, before)
        with pytest.raises(NovaliteError, match="'hv1' is not an identity of a ledger"):
            set_ledger_id(connection, "hv1")
        add_host(connection)
        with pytest.raises(ConflictError, match="only an empty ledger can become"):
            set_ledger_id(connection, OTHER)
        set_ledger_id(connection, before)  # nothing changes
        assert ledger_id(connection) == before


def test_there_is_one_identity_and_no_ledger_without(ledger: sa.Engine) -> None:
    with pytest.raises(sa.exc.IntegrityError), ledger.begin() as connection:
        connection.execute(sa.text(f"INSERT INTO ledger_identity (id, uuid) VALUES (2, '{OTHER}')"))
    with ledger.begin() as connection:
        connection.execute(sa.text("DELETE FROM ledger_identity"))
        with pytest.raises(NovaliteError, match="lost its identity"):
            ledger_id(connection)
        connection.rollback()
