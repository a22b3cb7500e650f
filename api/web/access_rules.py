# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Access rules of application credentials: which requests a token may make at all, by service, method and path."""

from __future__ import annotations

import functools
import re
import typing as t

import re2

from .bodies import Record

# what services are called in the catalog, by the first part of their paths
SERVICE_TYPES: t.Mapping[str, tuple[str, ...]] = {
    "identity": ("identity",),
    "compute": ("compute",),
    "image": ("image",),
    "network": ("network",),
    "volume": ("volumev3", "volume", "block-storage", "block-store"),
}
_PARTS = re.compile(r"(?P<any>\*\*)|(?P<one>\*|\{[^{}]*\})|(?P<text>[^*{]+|\{)")


def is_within(rules: t.Iterable[Record], method: str, path: str) -> bool:
    """Return whether one of the rules allows this request. No rule is about what is no service of the catalog.

    A rule's path may begin with the service's own, or with what comes behind it: /compute/v2.1/..., /v2.1/...
    """
    first, _slash, rest = path.lstrip("/").partition("/")
    types = SERVICE_TYPES.get(first, ())
    return any(
        rule["method"] == method
        and rule["service"] in types
        and any(_pattern(rule["path"]).fullmatch(text) for text in (path, f"/{rest}"))
        for rule in rules
    )


@functools.lru_cache(maxsize=1024)
def _pattern(path: str) -> t.Any:
    """Return the expression for a rule's path, as keystonemiddleware reads it: {name} and * are a part, ** is many.

    It is matched in linear time, for paths of requests are long and rules anybody's.
    """
    words = {"any": ".*", "one": "[^/]+"}
    parts = (
        re2.escape(match.group()) if match.lastgroup == "text" else words[str(match.lastgroup)]
        for match in _PARTS.finditer(path)
    )
    return re2.compile("".join(parts))
