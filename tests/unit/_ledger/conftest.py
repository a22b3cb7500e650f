# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib
import shutil
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from tests.support.cloud import Cloud, sqlite
from tests.support.rows import DEMO, add_project


class Run(t.Protocol):
    def __call__(self, operation: str, /, *, check_mode: bool = False, **args: t.Any) -> dict[str, t.Any]: ...


@pytest.fixture
def home(migrated: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """The home of an empty ledger of this test's own."""
    return pathlib.Path(shutil.copytree(migrated, tmp_path / "home"))


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty ledger of this test's own, on each database in turn."""
    if request.param == "sqlite":
        return sqlite(request.getfixturevalue("home"))
    emptied: t.Callable[[], str] = request.getfixturevalue("postgresql_ledger")
    return emptied()


on_sqlite = pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
on_postgresql = pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)


@pytest.fixture
def engine(ledger_url: str) -> t.Iterator[sa.Engine]:
    """An empty ledger, without a project."""
    opened = open_ledger(url=ledger_url)
    yield opened
    opened.dispose()


@pytest.fixture
def ledger(ledger_url: str) -> t.Iterator[sa.Engine]:
    """An empty ledger with the project `demo`."""
    engine = open_ledger(url=ledger_url)
    with transaction(engine) as connection:
        add_project(connection, "demo", DEMO)
    yield engine
    engine.dispose()


@pytest.fixture
def run(ledger_url: str, ledger: sa.Engine) -> Run:
    """Run a controller module's operation as a task does: arguments validated, one transaction over the ledger."""
    return Cloud(ledger_url, ledger).run
