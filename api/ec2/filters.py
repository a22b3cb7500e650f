# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters and pages of what Describe... shows: over the answers, so that a filter sees what the client does."""

from __future__ import annotations

import base64
import binascii
import json
import re
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from ..web.context import Caller
from . import ids
from .blueprint import reads
from .common import Body, Parameters
from .faults import Ec2Error
from .parameters import LISTING, TEXTS, Shape

Key = t.TypeVar("Key", str, int)
# A filter's name, and where in an answer that lies which it is held against: elements with dots between them.
Paths = t.Mapping[str, str]
Bodies = t.Callable[[Connection, Caller, Parameters], t.Iterable[Body]]

TAGS: Paths = {"tag-key": "tagSet.key", "tag-value": "tagSet.value"}


def like(names: str, at: str = "", element: str = "") -> dict[str, str]:
    """Filters, by `names` with spaces between them: "vpc-id" looks at `vpcId`, "cidr=cidrBlock" at `cidrBlock`. With
    `at` and `element`, "<at>.vpc-id" looks at `<element>.vpcId`."""
    paths = {}
    for name, equals, path in (item.partition("=") for item in names.split()):
        path = path if equals else re.sub("-(.)", lambda match: match[1].upper(), name)
        paths[f"{at}.{name}".lstrip(".")] = f"{element}.{path}".lstrip(".")
    return paths


def matches(pattern: str, text: str) -> bool:
    r"""Tell whether `text` matches `pattern`, in which * is any text, ? any character, and \ takes that meaning from
    them. Takes time in proportion to the product of both lengths at most."""
    parts: list[tuple[str, bool]] = []  # (character, whether it stands for itself)
    letters = iter(pattern)
    for letter in letters:
        parts.append((next(letters, "\\"), True) if letter == "\\" else (letter, letter not in "*?"))
    at, star, resume, position = 0, -1, 0, 0
    while position < len(text):
        if at < len(parts) and parts[at] == ("*", False):
            star, resume, at = at, position, at + 1
        elif at < len(parts) and (parts[at] == ("?", False) or parts[at] == (text[position], True)):
            at, position = at + 1, position + 1
        elif star >= 0:
            resume += 1
            at, position = star + 1, resume
        else:
            return False
    return all(part == ("*", False) for part in parts[at:])


def filtered(bodies: t.Iterable[Body], parameters: Parameters, paths: Paths) -> list[Body]:
    """List the bodies that match all filters of the request; of a filter's values, any one will do."""
    known = {**TAGS, **paths}
    conditions = [(condition["Name"], condition.get("Value", [])) for condition in parameters.get("Filter", [])]
    for name, _values in conditions:
        if name not in known and not name.startswith("tag:"):
            raise Ec2Error("InvalidParameterValue", f"The filter '{name[:100]}' is invalid")
    return [body for body in bodies if all(_lets(body, name, known, values) for name, values in conditions)]


def _lets(body: Body, name: str, paths: Paths, values: list[str]) -> bool:
    if name.startswith("tag:"):
        key = name.removeprefix("tag:")
        matching = [tag["value"] for tag in body.get("tagSet") or [] if tag["key"] == key]
    else:
        matching = list(texts(body, paths[name].split(".")))
    return any(matches(value, text) for value in values for text in matching)


def texts(value: object, path: t.Sequence[str]) -> t.Iterator[str]:
    """Yield the values at `path` in an answer, through every list on the way, as they are written in XML."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from texts(item, path)
    elif path:
        if isinstance(value, t.Mapping) and value.get(path[0]) is not None:
            yield from texts(value[path[0]], path[1:])
    elif isinstance(value, bool):
        yield "true" if value else "false"
    else:
        yield str(value)


def describes(
    name: str, operation: str, what: str, paths: Paths, kind: str = "", number: str = "", **more: Shape
) -> t.Callable[[Bodies], Bodies]:
    """Declare the action `name`: it answers with what the function returns, as listed() does, as `<what>Set`. Their ids
    are `<what>Id`, or `number`. `more`: further parameters."""
    number = number or f"{what}Id"
    own = {_parameter(number): TEXTS} if kind else {}

    def decorate(view: Bodies) -> Bodies:
        @reads(name, operation, {**own, **more, **LISTING})
        def describe(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
            return listed(parameters, f"{what}Set", number, view(connection, caller, parameters), paths, kind)

        return view

    return decorate


def _parameter(number: str) -> str:
    return number[0].upper() + number[1:]


def listed(
    parameters: Parameters, element: str, number: str, bodies: t.Iterable[Body], paths: Paths, kind: str = ""
) -> Body:
    """The answer to a Describe...: of `bodies` those that the request is about, by pages, as `element`. `number` is the
    element that holds their ids, after which they are sorted. With a `kind` (ids.KINDS) the request may have ids of
    those that it wants, in a parameter of that name. Raises Ec2Error."""
    if kind and _parameter(number) in parameters:
        bodies = ids.find_all(kind, parameters[_parameter(number)], {body[number]: body for body in bodies})

    def key(body: Body) -> str:
        return str(body[number])

    shown, token = page(sorted(filtered(bodies, parameters, paths), key=key), parameters, key)
    return {element: shown, "nextToken": token}


def page(
    bodies: t.Sequence[Body], parameters: Parameters, key: t.Callable[[Body], Key], least: int = 5
) -> tuple[list[Body], str | None]:
    """The page that the request asks for, and the token of the next one. `bodies` are in the order of their keys. A
    token is the last key that was shown: what comes and goes between two pages neither hides nor repeats anything
    else."""
    left = list(bodies)
    token = parameters.get("NextToken")
    if token:
        try:
            last = json.loads(base64.urlsafe_b64decode(token.encode()))
        except (binascii.Error, ValueError, RecursionError):
            last = None
        if type(last) not in (str, int) or (left and type(key(left[0])) is not type(last)):
            raise Ec2Error("InvalidNextToken", "The token for the next page is invalid")
        left = [body for body in left if key(body) > last]
    most = parameters.get("MaxResults")
    if most is None:
        return left, None
    if most < least:
        message = f"Value ( {most} ) for parameter maxResults is invalid. Expecting {least} or more."
        raise Ec2Error("InvalidParameterValue", message)
    if len(left) <= most:
        return left, None
    left = left[:most]
    return left, base64.urlsafe_b64encode(json.dumps(key(left[-1])).encode()).decode()
