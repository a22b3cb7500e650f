# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server's metadata and tags."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ....web.context import current
from ....web.maps import Change, Map, Tags, Texts, Update
from ..blueprint import compute
from ..microversions import since
from .schemas import MAX_TAGS, METADATA, TAG


def _row(connection: Connection, server_id: str) -> InstanceRow:
    row: InstanceRow = server_listing.one(connection, server_id, current().reach)
    return row


def _tags(connection: Connection, server_id: str) -> list[str]:
    tags: list[str] = server_listing.one(connection, server_id, current().reach).tags
    return tags


def _unlocked(connection: Connection, server_id: str) -> InstanceRow:
    row = _row(connection, server_id)
    server_changes.refuse_locked(row, current().is_admin)
    return row


def _change_metadata(connection: Connection, change: Change, before: Texts, server_id: str) -> Texts:
    row = _unlocked(connection, server_id)
    change.of(before)  # is there what is to be removed?
    gone = () if change.removed is None else (change.removed,)
    return server_changes.change_metadata(connection, row, change.items, replace=change.replace, remove=gone)


def _change_tags(connection: Connection, update: Update, server_id: str) -> list[str]:
    return server_changes.change_tags(connection, _unlocked(connection, server_id), lambda before: set(update(before)))


Map(
    name="server_metadata",
    path="/servers/<server_id>/metadata",
    reads="compute:server-metadata:read",
    writes="compute:server-metadata:write",
    word="metadata",
    schema=METADATA,
    find=lambda connection, server_id: _row(connection, server_id).metadata,
    write=_change_metadata,
).put_into(compute)
Tags(
    name="server_tags",
    path="/servers/<server_id>/tags",
    reads="compute:server-tags:read",
    writes="compute:server-tags:write",
    schema=TAG,
    most=MAX_TAGS,
    find=_tags,
    write=_change_tags,
    missing=lambda tag, server_id: NotFoundError(f"Server {server_id} has no tag '{tag}'"),
    full=f"The number of tags exceeded the per-server limit {MAX_TAGS}",
    again=204,
    below=(since("2.26"),),
).put_into(compute)
