# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small cloud with volumes."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from tests.support.cloud import Cloud, sqlite
from tests.unit._ledger.servers.conftest import seed


@pytest.fixture
def cloud(home: pathlib.Path) -> t.Iterator[Cloud]:
    made = Cloud(sqlite(home))
    seed(made)
    yield made
    made.close()


@pytest.fixture
def connection(cloud: Cloud) -> t.Iterator[sa.Connection]:
    with transaction(cloud.engine) as opened:
        yield opened
