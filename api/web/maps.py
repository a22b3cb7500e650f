# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routes for what an object has by keys, and for its tags: one set of them for every service."""

from __future__ import annotations

import dataclasses
import typing as t

from flask import Blueprint, Response, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError

from . import policy, validation
from .bodies import Answer
from .errors import BadRequestError
from .schemas import Schema, an_object, of

Texts = t.Mapping[str, str]
View = t.Callable[..., Answer]


@dataclasses.dataclass(frozen=True)
class Change:
    """What a request makes of a map: `items` are added, or put into its place, or `removed` is taken away."""

    items: Texts = dataclasses.field(default_factory=dict)
    replace: bool = False
    removed: str | None = None
    missing: str = ""  # what is said when there is no `removed`

    def of(self, before: Texts) -> dict[str, str]:
        """What comes of `before`. Raises NotFoundError."""
        if self.removed is not None and self.removed not in before:
            raise NotFoundError(self.missing)
        after = {**({} if self.replace else before), **self.items}
        return {key: value for key, value in after.items() if key != self.removed}


Said = t.Callable[[], Change]  # called once the object is found: before that, no word about the body


@dataclasses.dataclass(frozen=True)
class Map:
    """Metadata, extra specs or properties of an object.

    `read` takes the ids in `path`; `write` what is said and the ids, and returns the map as it is then. `item` is the
    word for one pair in a body; None: it stands alone.
    """

    name: str  # of the routes
    path: str
    reads: str  # operation
    writes: str  # operation
    word: str  # in a body
    schema: Schema
    read: t.Callable[..., Texts]
    write: t.Callable[..., Texts]
    item: str | None = "meta"
    missing: str = "Metadata item was not found"  # {key}; {0} is the first id
    missing_to_delete: str | None = None
    deleted: int = 204  # status
    more: bool = False  # whether a body may hold other things beside
    versions: t.Callable[[View], View] = lambda view: view

    def put_into(self, blueprint: Blueprint) -> None:
        one = f"{self.path}/<key>"
        for path, methods, operation, view in (
            (self.path, ["GET"], self.reads, self._list),
            (self.path, ["POST", "PUT"] if self.item else ["POST"], self.writes, self._write),
            (one, ["GET"], self.reads, self._show),
            (one, ["PUT"], self.writes, self._set),
            (one, ["DELETE"], self.writes, self._delete),
        ):
            endpoint = f"{self.name}{view.__name__}"
            blueprint.add_url_rule(path, endpoint, policy.allows(operation)(self.versions(view)), methods=methods)

    def _list(self, **ids: str) -> Answer:
        return {self.word: self.read(*ids.values())}, 200

    def _write(self, **ids: str) -> Answer:
        """POST adds; PUT replaces all."""
        said: dict[str, str] = {}

        def change() -> Change:
            said.update(validation.body(an_object({self.word: self.schema}, [self.word], self.more))[self.word])
            return Change(said, replace=request.method == "PUT")

        after = self.write(change, *ids.values())
        # as in Nova and Cinder, extra specs without those that were there before
        return {self.word: after if self.item else {key: after[key] for key in said}}, 200

    def _show(self, key: str, **ids: str) -> Answer:
        items = self.read(*ids.values())
        if key not in items:
            raise NotFoundError(self._missing(key, ids))
        return self._one(key, items[key]), 200

    def _set(self, key: str, **ids: str) -> Answer:
        def change() -> Change:
            pair = {**self.schema, "type": "object", "minProperties": 1, "maxProperties": 1}
            if self.item is None:
                said = validation.body(pair)
            else:
                said = validation.body(an_object({self.item: pair}, [self.item], self.more))[self.item]
            if key not in said:
                raise BadRequestError("Request body and URI mismatch")
            return Change(said)

        return self._one(key, self.write(change, *ids.values())[key]), 200

    def _delete(self, key: str, **ids: str) -> Answer:
        missing = self.missing_to_delete or self._missing(key, ids)
        self.write(lambda: Change(removed=key, missing=missing), *ids.values())
        return "", self.deleted

    def _one(self, key: str, value: str) -> dict[str, t.Any]:
        return {key: value} if self.item is None else {self.item: {key: value}}

    def _missing(self, key: str, ids: Texts) -> str:
        return self.missing.format(*ids.values(), key=key[:255])


@dataclasses.dataclass(frozen=True)
class Tags:
    """Tags of an object. `read` takes the ids in `path`; `write` what makes the new tags of the old and the ids, and
    returns the tags as they are then."""

    name: str  # of the routes
    path: str
    reads: str  # operation
    writes: str  # operation
    schema: Schema  # of one
    most: int
    read: t.Callable[..., t.Collection[str]]
    write: t.Callable[..., t.Collection[str]]
    missing: t.Callable[..., Exception]  # of a tag and the ids
    full: str = ""
    again: int = 201  # status for a tag that is there already
    versions: t.Callable[[View], View] = lambda view: view

    def put_into(self, blueprint: Blueprint) -> None:
        one = f"{self.path}/<tag>"
        for path, method, operation, view in (
            (self.path, "GET", self.reads, self._list),
            (self.path, "PUT", self.writes, self._replace),
            (self.path, "DELETE", self.writes, self._clear),
            (one, "GET", self.reads, self._show),
            (one, "PUT", self.writes, self._add),
            (one, "DELETE", self.writes, self._remove),
        ):
            endpoint = f"{self.name}{view.__name__}"
            blueprint.add_url_rule(path, endpoint, policy.allows(operation)(self.versions(view)), methods=[method])

    def _list(self, **ids: str) -> Answer:
        return {"tags": list(self.read(*ids.values()))}, 200

    def _replace(self, **ids: str) -> Answer:
        tags = {"type": "array", "items": self.schema, "maxItems": self.most}
        said = validation.body(of("tags", tags))["tags"]
        return {"tags": list(self.write(lambda _before: said, *ids.values()))}, 200

    def _clear(self, **ids: str) -> Answer:
        self.write(lambda _before: (), *ids.values())
        return "", 204

    def _show(self, tag: str, **ids: str) -> Answer:
        if tag not in self.read(*ids.values()):
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

        self.write(update, *ids.values())
        if not new:
            return "", self.again
        return Response(status=201, headers={"Location": request.base_url}), 201

    def _remove(self, tag: str, **ids: str) -> Answer:
        def update(before: t.Collection[str]) -> t.Collection[str]:
            if tag not in before:
                raise self.missing(tag, *ids.values())
            return [other for other in before if other != tag]

        self.write(update, *ids.values())
        return "", 204
