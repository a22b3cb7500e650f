# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routes for what an object has by keys, and for its tags: one set of them for every service."""

from __future__ import annotations

import dataclasses
import typing as t

from flask import Response, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.lookups import take_turns_at

from . import validation
from .addresses import this_url
from .bodies import Answer, Body
from .errors import BadRequestError, as_bad_request
from .ledger import reading_ledger, writing_ledger
from .schemas import Schema, an_object, of
from .services import Layer, Service

Texts = t.Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Change:
    """A request's change of a map: `items` are added, or replace it, or `removed` is taken away."""

    items: Texts = dataclasses.field(default_factory=dict)
    replace: bool = False
    removed: str | None = None
    missing: str = ""  # what is said when there is no `removed`

    def of(self, before: Texts) -> dict[str, str]:
        """Return the map that `before` becomes. Raises NotFoundError."""
        if self.removed is not None and self.removed not in before:
            raise NotFoundError(self.missing)
        after = {**({} if self.replace else before), **self.items}
        return {key: value for key, value in after.items() if key != self.removed}


ReadChange = t.Callable[[], Change]
Update = t.Callable[[t.Collection[str]], t.Collection[str]]
Words = t.Callable[[], t.ContextManager[None]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Kit:
    """Routes of an object's items by keys: of all at `path`, and of one below that.

    `find` takes a connection and the ids in `path`.
    """

    name: str  # of the routes
    path: str
    reads: str  # operation
    writes: str  # operation
    schema: Schema
    below: tuple[Layer, ...] = ()  # what is checked beside the operation

    def _put(self, service: Service, *rows: tuple[str, str, t.Callable[..., Answer]]) -> None:
        """The routes: what follows the path, method and function of each."""
        for key, method, view in rows:
            operation = self.reads if method == "GET" else self.writes
            endpoint = f"{self.name}{view.__name__}_{method}"
            service.route(method, self.path + key, operation, *self.below, endpoint=endpoint)(view)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Map(_Kit):
    """Metadata, extra specs or properties of an object.

    `write` takes a connection, the change, the map as it was and the ids, and returns it as it is then. `item` is the
    word for one pair in a body; None: it stands alone.
    """

    word: str  # in a body
    find: t.Callable[..., Texts]
    write: t.Callable[..., Texts]
    words: Words = as_bad_request  # for what the ledger refuses
    item: str | None = "meta"
    missing: str = "Metadata item was not found"  # {key}; {0} is the first id
    missing_to_delete: str | None = None
    deleted: int = 204  # status
    more: bool = False  # whether a body may hold other things beside

    def put_into(self, service: Service) -> None:
        self._put(service, ("", "GET", self._list), ("", "POST", self._write))
        if self.item:
            self._put(service, ("", "PUT", self._write))
        key = "/<key>"
        self._put(service, (key, "GET", self._show), (key, "PUT", self._set), (key, "DELETE", self._delete))

    def _list(self, **ids: str) -> Answer:
        return {self.word: self._read(ids)}, 200

    def _write(self, **ids: str) -> Answer:
        """POST adds; PUT replaces all."""
        items: dict[str, str] = {}

        def change() -> Change:
            items.update(validation.body(an_object({self.word: self.schema}, [self.word], self.more))[self.word])
            return Change(items, replace=request.method == "PUT")

        after = self._change(change, ids)
        # as in Nova and Cinder, extra specs without those that were there before
        return {self.word: after if self.item else {key: after[key] for key in items}}, 200

    def _show(self, key: str, **ids: str) -> Answer:
        items = self._read(ids)
        if key not in items:
            raise NotFoundError(self._missing(key, ids))
        return self._pair(key, items[key]), 200

    def _set(self, key: str, **ids: str) -> Answer:
        def change() -> Change:
            pair = {**self.schema, "type": "object", "minProperties": 1, "maxProperties": 1}
            if self.item is None:
                items = validation.body(pair)
            else:
                items = validation.body(an_object({self.item: pair}, [self.item], self.more))[self.item]
            if key not in items:
                raise BadRequestError("Request body and URI mismatch")
            return Change(items)

        return self._pair(key, self._change(change, ids)[key]), 200

    def _delete(self, key: str, **ids: str) -> Answer:
        missing = self.missing_to_delete or self._missing(key, ids)
        self._change(lambda: Change(removed=key, missing=missing), ids)
        return "", self.deleted

    def _read(self, ids: Texts) -> Texts:
        with reading_ledger() as connection:
            return self.find(connection, *ids.values())

    def _change(self, read_change: ReadChange, ids: Texts) -> Texts:
        with writing_ledger() as connection, self.words():
            take_turns_at(connection, " ".join(ids.values()))
            before = self.find(connection, *ids.values())
            return self.write(connection, read_change(), before, *ids.values())  # before this, no word about the body

    def _pair(self, key: str, value: str) -> Body:
        return {key: value} if self.item is None else {self.item: {key: value}}

    def _missing(self, key: str, ids: Texts) -> str:
        return self.missing.format(*ids.values(), key=key[:255])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tags(_Kit):
    """Tags of an object, each like `schema`. `write` takes a connection, what makes new tags of old, and the ids."""

    most: int
    find: t.Callable[..., t.Collection[str]]
    write: t.Callable[..., t.Collection[str]]
    missing: t.Callable[..., Exception]  # of a tag and the ids
    full: str = ""
    again: int = 201  # status for a tag that is there already

    def put_into(self, service: Service) -> None:
        self._put(service, ("", "GET", self._list), ("", "PUT", self._replace), ("", "DELETE", self._clear))
        tag = "/<tag>"
        self._put(service, (tag, "GET", self._show), (tag, "PUT", self._add), (tag, "DELETE", self._remove))

    def _list(self, **ids: str) -> Answer:
        return {"tags": list(self._read(ids))}, 200

    def _replace(self, **ids: str) -> Answer:
        tags = {"type": "array", "items": self.schema, "maxItems": self.most}
        requested_tags = validation.body(of("tags", tags))["tags"]
        return {"tags": list(self._change(lambda _before: requested_tags, ids))}, 200

    def _clear(self, **ids: str) -> Answer:
        self._change(lambda _before: (), ids)
        return "", 204

    def _show(self, tag: str, **ids: str) -> Answer:
        if tag not in self._read(ids):
            raise self.missing(tag, *ids.values())
        return "", 204

    def _add(self, tag: str, **ids: str) -> Answer:
        validation.check(tag, self.schema)
        new = []

        def update(before: t.Collection[str]) -> t.Collection[str]:
            if tag in before:
                return before
            new.append(tag)
            if self.full and len(before) >= self.most:
                raise BadRequestError(self.full)
            return [*before, tag]

        self._change(update, ids)
        if not new:
            return "", self.again
        return Response(status=201, headers={"Location": this_url()}), 201

    def _remove(self, tag: str, **ids: str) -> Answer:
        def update(before: t.Collection[str]) -> t.Collection[str]:
            if tag not in before:
                raise self.missing(tag, *ids.values())
            return [other for other in before if other != tag]

        self._change(update, ids)
        return "", 204

    def _read(self, ids: Texts) -> t.Collection[str]:
        with reading_ledger() as connection:
            return self.find(connection, *ids.values())

    def _change(self, update: Update, ids: Texts) -> t.Collection[str]:
        with writing_ledger() as connection, as_bad_request():
            return self.write(connection, update, *ids.values())
