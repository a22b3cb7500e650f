# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Walks through pages of volumes, snapshots and attachments meet each object once, in any order, on any database."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import volume_listing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_listing import Kind, Query
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import (
    volume_reservations,
    volume_snapshots,
    volumes,
)
from tests.support.rows import DEMO, OTHER, add_host, add_project

KINDS = {"volumes": volume_listing.VOLUMES, "snapshots": volume_listing.SNAPSHOTS}
KINDS["attachments"] = volume_listing.ATTACHMENTS
COUNT = 7


@pytest.fixture
def connection(ledger: sa.Engine) -> t.Iterator[sa.Connection]:
    with transaction(ledger) as ledger_connection:
        add_project(ledger_connection, "other", OTHER)
        add_host(ledger_connection, "hv1")
        for number in range(COUNT):
            about = {"description": "x" if number % 2 else None, "metadata": {'a".b': str(number % 2)}}
            named = {"name": f"n{number}" if number % 3 else None}
            row = volumes.create_volume(ledger_connection, DEMO, {"size_gb": 1 + number % 3, **named, **about})
            taken = {"volume_id": row.id, "user_id": None, "force": False, **named, **about}
            volume_snapshots.create_snapshot(ledger_connection, DEMO, taken)
            volume_reservations.reserve(ledger_connection, row.id)
        yield ledger_connection


def walk(connection: sa.Connection, kind: Kind, query: Query) -> t.Iterator[str]:
    marker: str | None = None
    while page := volume_listing.find(connection, kind, query, 2, marker):
        yield from page
        marker = page[-1]


@pytest.mark.both_databases
@pytest.mark.parametrize("name", KINDS)
def test_a_walk_meets_each_object_once_in_every_order(connection: sa.Connection, name: str) -> None:
    kind = KINDS[name]
    for key in (None, *kind.fields):
        for up in (True, False):
            query = Query(DEMO, sort=[] if key is None else [(key, up)])
            every = volume_listing.find(connection, kind, query, 1000)
            assert list(walk(connection, kind, query)) == every
            assert len(set(every)) == volume_listing.count(connection, kind, query) == COUNT


@pytest.mark.both_databases
@pytest.mark.parametrize("name", KINDS)
def test_conditions_are_met_by_those_that_are_listed(connection: sa.Connection, name: str) -> None:
    kind = KINDS[name]
    (first,) = volume_listing.find(connection, kind, Query(DEMO), 1)
    for query, count in (
        (Query(DEMO, equals={"id": first}), 1),
        (Query(DEMO, parts={"id": first[3:20]}), 1),
        (Query(DEMO, equals={"no_such_field": ""}), COUNT),
        (Query(DEMO, equals={"no_such_field": "x"}), 0),
        (Query(OTHER), 0),
        (Query(None), COUNT),
        (Query(DEMO, metadata={}), COUNT),
        (Query(DEMO, metadata={'a".b': "1"}), 0 if name == "attachments" else COUNT // 2),
    ):
        assert len(list(walk(connection, kind, query))) == volume_listing.count(connection, kind, query) == count
    with pytest.raises(NotFoundError, match="marker"):
        volume_listing.find(connection, kind, Query(OTHER), 1, first)
