# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls of operations, by callers of whom a test says what they may do, with the jobs that they ask for."""

from __future__ import annotations

import dataclasses
import pathlib
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import Network
from tests.support.cloud import sqlite
from tests.support.rows import DEMO, OTHER, add_host, add_instance, add_project, add_vif

Jobs = list[tuple[str, dict[str, t.Any]]]


@dataclasses.dataclass
class Doors:
    """A ledger with the projects `demo` and `other`, and the jobs that operations asked for: kind and variables."""

    connection: sa.Connection
    jobs: Jobs = dataclasses.field(default_factory=list)

    def call(self, *entries: str, project: str = DEMO) -> Call:
        """Return the call of a member of the project, who may besides do what these entries of the policy name."""

        def enqueue(
            kind: str, _instances: t.Sequence[str], _project: str | None, variables: JsonMapping | None = None, /
        ) -> str:
            self.jobs.append((kind, dict(variables or {})))
            return str(len(self.jobs))

        may = {"network:write", *entries}
        return Call(self.connection, "req-1", "somebody", project, may.__contains__, enqueue)

    def network(self, number: str) -> Network:
        rows = network_records.networks_seen(self.connection, None, bare=True)
        return next(row for row in rows if row.uuid == number)

    def server_on(self, network: Network, name: str = "web") -> str:
        """Put a server on the host hv1, and on the network; return its interface."""
        if not self.connection.execute(sa.text("select 1 from compute_host")).first():
            add_host(self.connection)
        return add_vif(self.connection, add_instance(self.connection, name, host="hv1"), network.id)


@pytest.fixture
def doors(home: pathlib.Path) -> t.Iterator[Doors]:
    engine = open_ledger(url=sqlite(home))
    with transaction(engine) as connection:
        for name, number in (("demo", DEMO), ("other", OTHER)):
            add_project(connection, name, number)
        yield Doors(connection)
    engine.dispose()
