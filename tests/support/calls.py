# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls of operations, as a door makes them, that remember which jobs were begun."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from tests.support.rows import DEMO

USER = "a" * 32


class Job(t.NamedTuple):
    kind: str
    instances: list[str]
    project_id: str | None
    variables: JsonMapping | None


def a_call(
    connection: sa.Connection,
    *entries: str,
    project_id: str | None = DEMO,
    user_id: str | None = USER,
    jobs: list[Job] | None = None,
) -> Call:
    """Return a call whose caller may do these entries of the policy, and puts what it begins into `jobs`."""

    def enqueue(
        kind: str, instances: t.Sequence[str], owner: str | None, variables: JsonMapping | None = None, /
    ) -> str:
        if jobs is not None:
            jobs.append(Job(kind, list(instances), owner, variables))
        return "job"

    return Call(connection, "req-1", user_id, project_id, frozenset(entries).__contains__, enqueue)
