# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server's metadata and tags."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ....web.context import current
from ....web.ledger import reading_ledger, writing_ledger
from ....web.maps import Map, Said, Tags, Texts
from ..blueprint import compute
from ..microversions import since
from .schemas import MAX_TAGS, METADATA, TAG


def _read(server_id: str) -> InstanceRow:
    with reading_ledger() as connection:
        row: InstanceRow = server_listing.one(connection, server_id, current().reach)
    return row


def _unlocked(connection: Connection, server_id: str) -> InstanceRow:
    caller = current()
    row: InstanceRow = server_listing.one(connection, server_id, caller.reach)
    server_changes.refuse_locked(row, caller.is_admin)
    return row


def _change_metadata(said: Said, server_id: str) -> Texts:
    with writing_ledger() as connection:
        row = _unlocked(connection, server_id)
        change = said()
        change.of(row.metadata)  # is there what is to be removed?
        gone = () if change.removed is None else (change.removed,)
        return server_changes.change_metadata(connection, row, change.items, replace=change.replace, remove=gone)


def _change_tags(update: t.Callable[[t.Collection[str]], t.Collection[str]], server_id: str) -> list[str]:
    with writing_ledger() as connection:
        return server_changes.change_tags(
            connection, _unlocked(connection, server_id), lambda before: set(update(before))
        )


Map(
    name="server_metadata",
    path="/servers/<server_id>/metadata",
    reads="compute:server-metadata:read",
    writes="compute:server-metadata:write",
    word="metadata",
    schema=METADATA,
    read=lambda server_id: _read(server_id).metadata,
    write=_change_metadata,
).put_into(compute)
Tags(
    name="server_tags",
    path="/servers/<server_id>/tags",
    reads="compute:server-tags:read",
    writes="compute:server-tags:write",
    schema=TAG,
    most=MAX_TAGS,
    read=lambda server_id: _read(server_id).tags,
    write=_change_tags,
    missing=lambda tag, server_id: NotFoundError(f"Server {server_id} has no tag '{tag}'"),
    full=f"The number of tags exceeded the per-server limit {MAX_TAGS}",
    again=204,
    versions=since("2.26"),
).put_into(compute)
