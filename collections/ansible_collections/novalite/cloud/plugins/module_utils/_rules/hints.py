# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hints to the scheduler: in Nova's terms, and OpenNebula's requirements and rank.

The forms are checked here; what they name is looked up by server_groups.resolve_hints(). A hint that novalite has no
use for is kept: a filter of the user's own may have.
"""

from __future__ import annotations

import json
import re
import typing as t

from .._addressing.texts import parse_address
from .._errors import NovaliteError
from .._json import Json, JsonMapping, JsonObject
from .._model.plain_text import is_plain
from .._scheduling import expressions
from .server_options import MAX_EXPRESSION, MAX_HINTS

SERVERS = ("same_host", "different_host")  # hints that name servers
EXPRESSIONS = ("requirements", "rank")

Hints = JsonObject


def checked(name: str, entry: JsonMapping) -> Hints:
    """The hints of the server `name`, with its `requirements` and `rank` among them. Raises NovaliteError."""
    requested_hints = entry.get("hints")
    if requested_hints is not None and not isinstance(requested_hints, dict):
        raise NovaliteError(f"hints of '{name}': give a dictionary of scheduler hints")
    hints = {key: value for key, value in (requested_hints or {}).items() if value is not None}
    hints.update({key: entry[key] for key in EXPRESSIONS if entry.get(key) is not None})
    try:
        size = len(json.dumps(hints))
    except (TypeError, ValueError):
        raise NovaliteError(f"hints of '{name}': give only texts, numbers, lists and dictionaries") from None
    if size > MAX_HINTS:
        raise NovaliteError(f"hints of '{name}' are {size} characters long: give at most {MAX_HINTS}")
    for key in EXPRESSIONS:
        if key in hints:
            hints[key] = _expression(name, key, hints[key])
    for key in ("group", "host"):
        if key in hints:
            hints[key] = _one_text(name, key, hints[key])
    for key in SERVERS:
        if key in hints:
            hints[key] = _texts(name, key, hints[key])
    if "query" in hints:
        hints["query"] = _query(name, hints["query"])
    _near(name, hints)
    return hints


def attributes_in(hints: Hints) -> frozenset[str]:
    """Names of the attributes of hosts that hints, as checked() returns them, ask about; `host` for what chooses one.
    Of these, attributes.FOR_TENANTS are anybody's."""
    names = {name for key in EXPRESSIONS if key in hints for name in expressions.names_in(hints[key])}
    if "query" in hints:
        names |= {word[1:].partition(".")[0] for word in _words(json.loads(hints["query"])) if word.startswith("$")}
    if not {"build_near_host_ip", "host"}.isdisjoint(hints):
        names.add("host")
    return frozenset(names)


def _words(value: Json) -> t.Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)


def _expression(name: str, key: str, value: Json) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_EXPRESSION:
        raise NovaliteError(f"{key} of '{name}': give an expression of 1 to {MAX_EXPRESSION} characters")
    try:
        expressions.compiled(value.strip())
    except NovaliteError as error:
        raise NovaliteError(f"{key} of '{name}': {error}") from None
    return value.strip()


def _one_text(name: str, key: str, value: Json) -> str:
    texts = _texts(name, key, value)
    if len(texts) != 1:
        raise NovaliteError(f"hint {key} of '{name}': give one name or UUID, not {len(texts)}")
    return texts[0]


def _texts(name: str, key: str, value: Json) -> list[str]:
    # the API's clients send a list when a hint comes twice, and a text when it comes once
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and 0 < len(text) <= 255 and is_plain(text) for text in texts):
        raise NovaliteError(f"hint {key} of '{name}': give names or UUIDs")
    return list(dict.fromkeys(texts))


def _query(name: str, value: Json) -> str:
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        value = value[0]
    try:
        query = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        query = None
    if not isinstance(query, list) or not query:
        raise NovaliteError(f"hint query of '{name}': give a JSON list such as '[\">=\", \"$free_ram_mb\", 1024]'")
    return json.dumps(query)


def _near(name: str, hints: Hints) -> None:
    if "build_near_host_ip" in hints:
        address = _one_text(name, "build_near_host_ip", hints["build_near_host_ip"])
        try:
            bits = 32 if parse_address(address).version == 4 else 128
        except ValueError:
            raise NovaliteError(f"hint build_near_host_ip of '{name}': '{address}' is not an IP address") from None
        cidr = re.fullmatch(r"/?([0-9]{1,3})", _one_text(name, "cidr", str(hints.get("cidr", "/24"))))
        if cidr is None or int(cidr[1]) > bits:
            raise NovaliteError(f"hint cidr of '{name}': give a prefix length of 0 to {bits}, such as /24")
        hints.update({"build_near_host_ip": address, "cidr": f"/{int(cidr[1])}"})
    elif "cidr" in hints:
        raise NovaliteError(f"hint cidr of '{name}' means nothing without build_near_host_ip: give both")
