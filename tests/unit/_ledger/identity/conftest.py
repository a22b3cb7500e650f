# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger with two users and their calls, for what operations on identity decide."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Authority, Call, by_playbook
from tests.support.rows import DEMO


class Calls:
    """Calls of one transaction: those of the users ann and bob, who are members of the project `demo`."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.operator = by_playbook(connection)
        self.ann, self.bob = (users.insert_user(connection, {"name": name})["id"] for name in ("ann", "bob"))
        for user_id in (self.ann, self.bob):
            users.grant_role(connection, user_id, DEMO, "member")

    def of(self, user_id: str | None, *entries: str, **authority: t.Any) -> Call:
        """Return the call of a user who may do what these entries of the policy say."""

        def enqueue(*_job: object) -> str:
            raise AssertionError("nothing here is for hosts")

        held = Authority(**{"roles": frozenset({"reader", "member"}), **authority})
        return Call(self.connection, "req-1", user_id, DEMO, entries.__contains__, enqueue, held)


@pytest.fixture
def calls(ledger: sa.Engine) -> t.Iterator[Calls]:
    with transaction(ledger) as connection:
        yield Calls(connection)
