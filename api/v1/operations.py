# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How a route of the native part is declared: once, for the router, the validation, the policy and the document."""

from __future__ import annotations

import dataclasses
import functools
import re
import typing as t

from flask import Blueprint, request

from ..web import policy
from ..web.errors import BadRequestError
from ..web.validation import Schema, body, check

native = Blueprint("native", __name__, url_prefix="/v1")
native.before_request(policy.guard)

View = t.Callable[..., t.Any]

_WHOLE = re.compile(r"-?[0-9]{1,15}")
_TRUTH = {"true": True, "false": False}


@dataclasses.dataclass(frozen=True)
class Operation:
    """A route: what it takes and what it answers. Schemas of answers are names in schemas.SCHEMAS."""

    name: str
    method: str
    path: str  # as OpenAPI writes it
    action: str
    summary: str
    answers: t.Mapping[int, str]
    description: str = ""
    query: Schema | None = None
    body: Schema | None = None
    documented_body: Schema | None = None  # where the document can say more than one schema that names the field
    headers: t.Mapping[str, Schema] = dataclasses.field(default_factory=dict)
    answer_headers: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    conflicts: bool = False
    stream: bool = False

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"\{(\w+)\}", self.path)


OPERATIONS: list[Operation] = []


def operation(
    method: str, path: str, action: str, summary: str, answers: t.Mapping[int, str], **more: t.Any
) -> t.Callable[[View], View]:
    """Declare a route. The view gets the path's parameters, and `query` and `body` where it has schemas for them."""

    def decorate(view: View) -> View:
        endpoint = Operation(view.__name__, method, path, action, summary, answers, **more)
        OPERATIONS.append(endpoint)

        @functools.wraps(view)
        def validated(**parameters: str) -> t.Any:
            if endpoint.query is not None:
                parameters["query"] = query(endpoint.query)  # type: ignore[assignment]
            elif request.args:
                query({"type": "object", "properties": {}, "additionalProperties": False})
            if endpoint.body is not None:
                parameters["body"] = body(endpoint.body)  # type: ignore[assignment]
            return view(**parameters)

        rule = path.replace("{", "<").replace("}", ">")
        native.add_url_rule(rule, view.__name__, policy.allows(action)(validated), methods=[method])
        return view

    return decorate


def query(schema: Schema) -> dict[str, t.Any]:
    """The query's parameters, as what `schema` has them: whole numbers and truths are written as in JSON.

    Raises BadRequestError for what the schema does not allow, and for a parameter that is given twice.
    """
    arguments: dict[str, t.Any] = {}
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
