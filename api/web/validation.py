# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Validation of clients' data by JSON Schemas, before anything else looks at it."""

from __future__ import annotations

import functools
import json
import typing as t

import jsonschema
from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping

from .bodies import Json, Record
from .errors import BadRequestError
from .request_hooks import MAX_DEPTH, unfit

Schema = JsonMapping

MAX_SHOWN = 100  # characters of a refused value
MAX_SAME = 512

_SAME: dict[int, tuple[Schema, jsonschema.Draft202012Validator]] = {}  # by the schema's id


def body(schema: Schema) -> Record:
    """The request's JSON object, if `schema` allows it. Raises BadRequestError, which names the field."""
    value = read_json("JSON object")
    if not isinstance(value, dict):
        raise BadRequestError("Malformed request body: give a JSON object")
    check(value, schema)
    return value


def read_json(what: str) -> Json:
    """The request's body as JSON, nested no deeper than MAX_DEPTH. Raises BadRequestError, which asks for a `what`."""
    try:
        value = json.loads(request.get_data(cache=True), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise BadRequestError(f"Malformed request body: give a {what}") from None
    if unfit(value):
        raise BadRequestError(
            f"Malformed request body: it is nested deeper than {MAX_DEPTH} levels, or holds a character that cannot be "
            "stored"
        )
    return value


def query(schema: Schema) -> Record:
    """The query's parameters as {name: text}, of one given several times the last, if `schema` allows them."""
    value = {name: values[-1] for name, values in request.args.lists()}
    check(value, schema, "query parameter")
    return value


def check(value: Json, schema: Schema, what: str = "input") -> None:
    """Raise BadRequestError for the first thing in `value` that `schema` does not allow."""
    # the one that lies deepest says most: of an "oneOf" it is the alternative that was meant
    error = jsonschema.exceptions.best_match(_validator_of(schema).iter_errors(value))
    if error is None:
        return
    field = "/".join(str(part) for part in error.absolute_path)
    shown = repr(error.instance)
    shown = shown if len(shown) <= MAX_SHOWN else shown[:MAX_SHOWN] + "..."
    message = error.message if len(error.message) <= 2 * MAX_SHOWN else f"{shown} is not allowed"
    raise BadRequestError(f"Invalid {what} for field/attribute {field or 'body'}. Value: {shown}. {message}")


def _validator_of(schema: Schema) -> jsonschema.Draft202012Validator:
    """A schema that is asked for again as the same object is not written out to be found."""
    known = _SAME.get(id(schema))
    if known is None or known[0] is not schema:
        if len(_SAME) >= MAX_SAME:
            _SAME.clear()
        known = _SAME[id(schema)] = (schema, _validator(json.dumps(schema, sort_keys=True)))
    return known[1]


@functools.lru_cache(maxsize=512)
def _validator(text: str) -> jsonschema.Draft202012Validator:
    schema = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())


def _no_constant(name: str) -> t.NoReturn:
    raise ValueError(f"{name} is not JSON")
