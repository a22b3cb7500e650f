# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import importlib
import pathlib
import shutil
import typing as t

import pytest
import sqlalchemy as sa
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.novalite.cloud.plugins.module_utils._controller import operation_of, plain, run_operation
from ansible_collections.novalite.cloud.plugins.module_utils._ledger import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.engine import open_ledger, transaction


class Run(t.Protocol):
    def __call__(self, name: str, *, check_mode: bool = False, **args: t.Any) -> dict[str, t.Any]: ...


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An empty ledger's home; to copy it is ten times quicker than to migrate anew."""
    home = tmp_path_factory.mktemp("migrated")
    open_ledger(str(home)).dispose()
    return home


@pytest.fixture
def home(migrated: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    """The home of an empty ledger of this test's own."""
    return pathlib.Path(shutil.copytree(migrated, tmp_path / "home"))


@pytest.fixture
def ledger(home: pathlib.Path) -> t.Iterator[sa.Engine]:
    """An empty ledger with the project `demo`."""
    engine = open_ledger(str(home))
    with transaction(engine) as connection:
        connection.execute(sa.insert(tables.project).values(id="d" * 32, name="demo", created_at=0))
    yield engine
    engine.dispose()


@pytest.fixture
def run(home: pathlib.Path, ledger: sa.Engine) -> Run:
    """Run a controller module's operation as a task does: arguments validated, one transaction over the ledger."""

    def task(name: str, *, check_mode: bool = False, **args: t.Any) -> dict[str, t.Any]:
        module = importlib.import_module(f"ansible_collections.novalite.cloud.plugins.modules.{name}")
        validated = ArgumentSpecValidator(module.ARGUMENT_SPEC, **module.SPEC_RULES).validate(plain(args))
        assert validated.error_messages == []
        params = {**validated.validated_parameters, "home": str(home)}
        return run_operation(operation_of(name), params, check_mode)

    return task
