# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Declarations of the native part's routes: one each, for the router, the validation, the policy and the document."""

from __future__ import annotations

import dataclasses
import functools
import re
import typing as t

from flask import request
from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject

from ..web.errors import BadRequestError
from ..web.services import Layer, Service
from ..web.validation import Schema, body, check

native = Service("native", "/v1")

View = t.Callable[..., ResponseReturnValue]

_WHOLE = re.compile(r"-?[0-9]{1,15}")
_TRUTH = {"true": True, "false": False}


OPERATIONS: list[Operation] = []


@dataclasses.dataclass(frozen=True)
class Operation:
    """A route: what it takes and what it answers. Schemas of answers are names in schemas.SCHEMAS. It decorates the
    view, which gets the path's parameters, and `query` and `body` where there are schemas for them."""

    method: str
    path: str  # as OpenAPI writes it
    action: str
    summary: str
    answers: t.Mapping[int, str]
    name: str = ""  # the view's
    description: str = ""
    query: Schema | None = None
    body: Schema | None = None
    documented_body: Schema | None = None  # where the document can say more than one schema that names the field
    headers: t.Mapping[str, Schema] = dataclasses.field(default_factory=dict)
    answer_headers: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    conflicts: bool = False
    stream: bool = False
    ledger: Layer | None = None  # services.reads or writes: the view gets a connection first

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"\{(\w+)\}", self.path)

    def __call__(self, view: View) -> View:
        OPERATIONS.append(dataclasses.replace(self, name=view.__name__))

        called = self.ledger(view) if self.ledger else view

        @functools.wraps(view)
        def validated(**parameters: object) -> ResponseReturnValue:
            if self.query is not None:
                parameters["query"] = query(self.query)
            elif request.args:
                query({"type": "object", "properties": {}, "additionalProperties": False})
            if self.body is not None:
                parameters["body"] = body(self.body)
            return called(**parameters)

        rule = self.path.replace("{", "<").replace("}", ">")
        native.route(self.method, rule, self.action)(validated)
        return view


def query(schema: Schema) -> JsonObject:
    """The query's parameters, as what `schema` has them: whole numbers and truths are written as in JSON. Raises
    BadRequestError for what the schema does not allow, and for a parameter that is given twice."""
    arguments: JsonObject = {}
    for name, values in request.args.lists():
        if len(values) > 1:
            raise BadRequestError(f"the query parameter {name[:70]!r} is given {len(values)} times")
        kind = schema["properties"].get(name, {}).get("type")
        text = values[0]
        if kind == "integer" and _WHOLE.fullmatch(text):
            arguments[name] = int(text)
        elif kind == "boolean":
            arguments[name] = _TRUTH.get(text, text)
        else:
            arguments[name] = text
    check(arguments, schema, "query parameter")
    return arguments
