# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls of operations for the caller of the current request: jobs carry out what they begin."""

from __future__ import annotations

import contextlib
import functools
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Authority, Call

from ..jobs import queue
from ..web import policy
from ..web.context import current, request_id, signature
from ..web.errors import UnauthorizedError
from ..web.ledger import writing_ledger


def proving(connection: Connection, user_id: str | None = None) -> Call:
    """Return the call of somebody who has yet to prove who it is, or just did, and may do nothing else."""

    def enqueue(*_job: object) -> str:
        raise UnauthorizedError("nobody has jobs done")

    return Call(connection, request_id(), user_id, None, lambda _entry: False, enqueue)


def calling(connection: Connection) -> Call:
    """Return the call of the current request's caller."""
    caller = current()

    def enqueue(
        kind: str, instances: t.Sequence[str], project_id: str | None, variables: JsonMapping | None = None, /
    ) -> str:
        job = queue.enqueue(
            connection, kind, instances=instances, variables=variables, project_id=project_id, **signature()
        )
        return job["id"]

    authority = Authority(
        caller.roles,
        caller.home_domain,
        caller.application_credential_id,
        None if caller.trust is None else caller.trust["id"],
    )
    may = functools.partial(policy.may, caller)
    return Call(connection, request_id(), caller.user_id, caller.project_id, may, enqueue, authority)


@contextlib.contextmanager
def writing_call() -> t.Iterator[Call]:
    """Open one transaction, and make the call of the current request's caller in it."""
    with writing_ledger() as connection:
        yield calling(connection)
