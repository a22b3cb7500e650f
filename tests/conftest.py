# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ledgers to copy and to empty, for all tests."""

from __future__ import annotations

import contextlib
import gc
import os
import pathlib
import signal
import sys
import typing as t

import hypothesis
import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import known, sqlite_engine, tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, place_of
from tests.support import examples, postgresql
from tests.support.statements import compiled_once

# Each takes so long to import that it would be felt in each process of each run: their tests import them when they run
HEAVY = {"alembic", "boto3", "dbos", "openstack", "playwright", "schemathesis"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--thorough", action="store_true", help="all on both databases, with all examples, and what takes long"
    )


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("NOVALITE_WAITING", "0")  # no test of the command leaves a process behind
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs this in the background has it ignored
    hypothesis.settings.load_profile(examples.ALL if config.getoption("--thorough") else examples.PART)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `thorough`, and PostgreSQL but for what is about the database: tests marked
    `both_databases`, and those that name it."""
    if config.getoption("--thorough"):
        return
    left_out = {item for item in items if item.get_closest_marker("thorough") or _is_repeated(item)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _is_repeated(item: pytest.Item) -> bool:
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    repeating = {name for name in ("cloud", "ledger_url") if parameters.get(name) == "postgresql"}
    named = {mark.args[0] for mark in item.iter_markers("parametrize")}
    return bool(repeating - named) and item.get_closest_marker("both_databases") is None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep the garbage collector from what stays until the end: all modules and tests, millions of objects.

    It would walk through them again and again, which took a quarter of the tests' time.
    """
    if loaded := HEAVY & sys.modules.keys():
        raise pytest.UsageError(f"collecting the tests imports {sorted(loaded)}: import them in what uses them")
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # what a test makes and drops is a multiple of the default's 700 objects


@pytest.fixture(scope="session", autouse=True)
def _statements_are_compiled_once() -> t.Iterator[None]:
    with compiled_once():
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_ledger_waits_for_the_disk() -> t.Iterator[None]:
    """No test cuts the power. Without the waits for what is written, a short test of the API takes a seventh less of a
    processor, and a third less time; PostgreSQL's ledgers are made so, too (tests/support/postgresql.py)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite_engine, "SYNCHRONOUS", "OFF")
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[None]:
    """Ledgers on PostgreSQL keep files in the home of their controller, and this machine may be one. Tests have many of
    them, one after the other, in one home: each is known by the name of its database there."""
    home, path_of = str(tmp_path_factory.mktemp("controller")), known.path_of

    def of_database(place: known.Place) -> str:
        url = getattr(place, "url", None)
        return path_of(place) if url is None or place.home != home else os.path.join(home, f"{url.database}.known")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NOVALITE_HOME", home)
        patch.setattr(known, "path_of", of_database)
        yield


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An empty ledger's home; to copy it is ten times quicker than to migrate anew."""
    home = tmp_path_factory.mktemp("migrated")
    open_ledger(str(home)).dispose()
    return home


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[postgresql.Server]:
    """A PostgreSQL server of this test run's own."""
    run = tmp_path_factory.getbasetemp()
    with contextlib.ExitStack() as stack:
        try:
            # with xdist, every worker has a directory of its own in that of the run
            server = stack.enter_context(
                postgresql.shared_server(run.parent if "PYTEST_XDIST_WORKER" in os.environ else run)
            )
        except RuntimeError as error:
            pytest.fail(str(error), pytrace=False)
        yield server


@pytest.fixture(scope="session")
def postgresql_ledger(postgresql_server: postgresql.Server) -> t.Iterator[t.Callable[[], str]]:
    """Empties this worker's ledger on PostgreSQL and returns its URL: to make one takes 0.5 s, to empty it 5 ms. Which
    ledger it was, a restored one for example, is forgotten."""
    name = f"novalite_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
    url = postgresql_server.create(name)
    engine = open_ledger(url=url)
    made_with_it = {"ledger_identity": "false", "domain": "id <> 'default'", "role": "id <> name"}
    deletions = [
        f'DELETE FROM "{table.name}" WHERE {made_with_it.get(table.name, "true")}'
        for table in reversed(tables.metadata.sorted_tables)
    ]
    restarts = "SELECT setval(oid::regclass, 1, false) FROM pg_class WHERE relkind = 'S'"

    def emptied() -> str:
        engine.dispose()
        postgresql_server.throw_out(name)
        place = place_of(url=url)
        # processes beside this one (support/beside.py) know it by the file that the product has for it
        for path in (known.path_of(place), os.path.join(place.home, "ledger.known")):
            pathlib.Path(path).unlink(missing_ok=True)
        open_ledger(url=url).dispose()  # a test may have left an older revision, which lacks tables
        with engine.begin() as connection:
            up_to_date = "UPDATE ledger_identity SET behind = NULL, behind_since = NULL"
            connection.exec_driver_sql("; ".join([*deletions, restarts, up_to_date]))
        return url

    yield emptied
    engine.dispose()
