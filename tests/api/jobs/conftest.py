# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib
import shutil
import typing as t
import uuid

import pytest

from tests.api.jobs.clouds import JobCloud
from tests.support import postgresql


@pytest.fixture(scope="session")
def seeded_jobs(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A seeded ledger's home; to copy it is ten times quicker than to make one."""
    home = tmp_path_factory.mktemp("jobs")
    cloud = JobCloud(home)
    cloud.seed()
    cloud.close()
    return home


@pytest.fixture
def jobs(seeded_jobs: pathlib.Path, tmp_path: pathlib.Path) -> t.Iterator[JobCloud]:
    """A cloud on SQLite, without a worker."""
    cloud = JobCloud(pathlib.Path(shutil.copytree(seeded_jobs, tmp_path / "home")))
    yield cloud
    cloud.close()


@pytest.fixture(scope="module")
def at_work(seeded_jobs: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[JobCloud]:
    """A cloud on SQLite with a worker, for the tests of one file."""
    home = tmp_path_factory.mktemp("work") / "home"
    cloud = JobCloud(pathlib.Path(shutil.copytree(seeded_jobs, home)))
    cloud.work()
    yield cloud
    cloud.close()


@pytest.fixture
def jobs_on_postgresql(postgresql_server: postgresql.Server, tmp_path: pathlib.Path) -> t.Iterator[JobCloud]:
    """A cloud on PostgreSQL, without a worker."""
    url = postgresql_server.create(f"jobs_{uuid.uuid4().hex}")
    cloud = JobCloud(tmp_path / "home", url)
    cloud.seed()
    yield cloud
    cloud.close()
