# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A server's metadata and tags."""

from __future__ import annotations

import typing as t

from flask import Response, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import server_listing

from ....web import policy, validation
from ....web.context import current
from ....web.errors import BadRequestError
from ....web.ledger import reading_ledger, writing_ledger
from ..blueprint import Answer, compute
from ..microversions import since
from .schemas import MAX_TAGS, METADATA, TAG, TAGS, of

ITEM = of("meta", {**METADATA, "minProperties": 1, "maxProperties": 1})


def _read(server_id: str) -> t.Any:
    with reading_ledger() as connection:
        return server_listing.one(connection, server_id, current().reach)


def _write_metadata(
    server_id: str, items: t.Mapping[str, str], replace: bool = False, remove: str | None = None
) -> dict[str, str]:
    caller = current()
    with writing_ledger() as connection:
        row = server_listing.one(connection, server_id, caller.reach)
        server_changes.refuse_locked(row, caller.is_admin)
        if remove is not None and remove not in row.metadata:
            raise NotFoundError("Metadata item was not found")
        gone = () if remove is None else (remove,)
        return server_changes.change_metadata(connection, row, items, replace=replace, remove=gone)


@compute.get("/servers/<server_id>/metadata")
@policy.allows("compute:server-metadata:read")
def list_metadata(server_id: str) -> Answer:
    return {"metadata": _read(server_id).metadata}, 200


@compute.post("/servers/<server_id>/metadata")
@policy.allows("compute:server-metadata:write")
def add_metadata(server_id: str) -> Answer:
    items = validation.body(of("metadata", METADATA))["metadata"]
    return {"metadata": _write_metadata(server_id, items)}, 200


@compute.put("/servers/<server_id>/metadata")
@policy.allows("compute:server-metadata:write")
def replace_metadata(server_id: str) -> Answer:
    items = validation.body(of("metadata", METADATA))["metadata"]
    return {"metadata": _write_metadata(server_id, items, replace=True)}, 200


@compute.get("/servers/<server_id>/metadata/<key>")
@policy.allows("compute:server-metadata:read")
def show_metadata_item(server_id: str, key: str) -> Answer:
    metadata = _read(server_id).metadata
    if key not in metadata:
        raise NotFoundError("Metadata item was not found")
    return {"meta": {key: metadata[key]}}, 200


@compute.put("/servers/<server_id>/metadata/<key>")
@policy.allows("compute:server-metadata:write")
def set_metadata_item(server_id: str, key: str) -> Answer:
    item = validation.body(ITEM)["meta"]
    if key not in item:
        raise BadRequestError("Request body and URI mismatch")
    return {"meta": {key: _write_metadata(server_id, item)[key]}}, 200


@compute.delete("/servers/<server_id>/metadata/<key>")
@policy.allows("compute:server-metadata:write")
def delete_metadata_item(server_id: str, key: str) -> Response:
    _write_metadata(server_id, {}, remove=key)
    return Response(status=204)


# --- tags


def _write_tags(server_id: str, update: t.Callable[[frozenset[str]], t.Collection[str]]) -> list[str]:
    caller = current()
    with writing_ledger() as connection:
        row = server_listing.one(connection, server_id, caller.reach)
        server_changes.refuse_locked(row, caller.is_admin)
        return server_changes.change_tags(connection, row, update)


@compute.get("/servers/<server_id>/tags")
@policy.allows("compute:server-tags:read")
@since("2.26")
def list_tags(server_id: str) -> Answer:
    return {"tags": _read(server_id).tags}, 200


@compute.put("/servers/<server_id>/tags")
@policy.allows("compute:server-tags:write")
@since("2.26")
def replace_tags(server_id: str) -> Answer:
    tags = validation.body(of("tags", TAGS))["tags"]
    return {"tags": _write_tags(server_id, lambda _before: set(tags))}, 200


@compute.delete("/servers/<server_id>/tags")
@policy.allows("compute:server-tags:write")
@since("2.26")
def delete_tags(server_id: str) -> Response:
    _write_tags(server_id, lambda _before: ())
    return Response(status=204)


@compute.get("/servers/<server_id>/tags/<tag>")
@policy.allows("compute:server-tags:read")
@since("2.26")
def show_tag(server_id: str, tag: str) -> Response:
    if tag not in _read(server_id).tags:
        raise NotFoundError(f"Server {server_id} has no tag '{tag}'")
    return Response(status=204)


@compute.put("/servers/<server_id>/tags/<tag>")
@policy.allows("compute:server-tags:write")
@since("2.26")
def add_tag(server_id: str, tag: str) -> Response:
    validation.check(tag, TAG)
    new = []

    def update(before: frozenset[str]) -> t.Collection[str]:
        if tag not in before:
            new.append(tag)
            if len(before) >= MAX_TAGS:
                raise BadRequestError(f"The number of tags exceeded the per-server limit {MAX_TAGS}")
        return before | {tag}

    _write_tags(server_id, update)
    if not new:
        return Response(status=204)
    return Response(status=201, headers={"Location": request.base_url})


@compute.delete("/servers/<server_id>/tags/<tag>")
@policy.allows("compute:server-tags:write")
@since("2.26")
def delete_tag(server_id: str, tag: str) -> Response:
    def update(before: frozenset[str]) -> t.Collection[str]:
        if tag not in before:
            raise NotFoundError(f"Server {server_id} has no tag '{tag}'")
        return before - {tag}

    _write_tags(server_id, update)
    return Response(status=204)
