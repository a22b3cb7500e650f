# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wishes for a server whose host dies: whether it runs again on another host, in which order, and anew from its image.

The server itself decides, then its flavor (extra specs), then its project.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping, JsonObject

FIELDS = ("ha", "ha_priority", "ha_rebuild")
SPECS = {field: f"novalite:{field}" for field in FIELDS}  # extra specs of a flavor
LEAST, MOST = -100, 100  # priorities
_WORDS = {"true": True, "false": False}


@dataclasses.dataclass(frozen=True)
class HaWishes:
    """Wishes of a server, a flavor or a project; None: it says nothing of that."""

    ha: bool | None = None
    ha_priority: int | None = None
    ha_rebuild: bool | None = None

    def said(self) -> JsonObject:
        """Return what is said, by field."""
        return {field: value for field, value in dataclasses.asdict(self).items() if value is not None}


NO_WISHES = HaWishes()


def of_entry(name: str, entry: JsonMapping) -> HaWishes:
    """Return the wishes of a declared server or project. Raises NovaliteError."""
    for field in ("ha", "ha_rebuild"):
        if entry.get(field) is not None and not isinstance(entry[field], bool):
            raise NovaliteError(f"{field} of '{name}': say true or false")
    return HaWishes(entry.get("ha"), _priority(name, entry.get("ha_priority")), entry.get("ha_rebuild"))


def of_flavor(flavor: t.Mapping[str, t.Any]) -> HaWishes:
    """Return the wishes of a flavor's extra specs. Raises NovaliteError for words that are none."""
    specs = {field: flavor["extra_specs"].get(spec) for field, spec in SPECS.items()}
    values: JsonObject = {}
    for field, word in specs.items():
        if word is None:
            values[field] = None
        elif field == "ha_priority":
            values[field] = _priority(flavor["name"], word)
        elif str(word).lower() in _WORDS:
            values[field] = _WORDS[str(word).lower()]
        else:
            raise NovaliteError(f"extra spec {SPECS[field]}={word} of flavor '{flavor['name']}': say true or false")
    return HaWishes(**values)


def _priority(name: str, value: t.Any) -> int | None:
    if value is None:
        return None
    try:
        number = int(value)
    except (TypeError, ValueError):
        number = MOST + 1
    if isinstance(value, bool) or not LEAST <= number <= MOST:
        raise NovaliteError(f"ha_priority of '{name}': {value} is not a whole number from {LEAST} to {MOST}")
    return number


def in_words(server: JsonMapping) -> str:
    """Return in a few words what is to become of a server when its host dies."""
    if not server["ha"]:
        return "no"
    return f"yes{', rebuilt' if server['ha_rebuild'] else ''}, priority {server['ha_priority']}"


def resolved(*wishes: HaWishes) -> JsonObject:
    """Return the columns of a server, of which the first of `wishes` that says something decides."""
    defaults: JsonObject = {"ha": False, "ha_priority": 0, "ha_rebuild": False}
    return {
        field: next((value for each in wishes if (value := getattr(each, field)) is not None), defaults[field])
        for field in FIELDS
    }
