# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Profiles: what servers have in common is said once, and a server's own words win."""

from __future__ import annotations

import typing as t

Mapping = t.Mapping[str, t.Any]


class ProfileError(Exception):
    """A profile that does not exist, or that leads to itself; `str()` says which."""


def merged(below: Mapping, above: Mapping) -> dict[str, t.Any]:
    """`below` with `above` laid over it: mappings merge at every depth, everything else is replaced.

    Lists are replaced, not joined: whoever names security groups means these. A null takes away what lay below.
    """
    result = dict(below)
    for key, value in above.items():
        if isinstance(value, t.Mapping) and isinstance(result.get(key), t.Mapping):
            result[key] = merged(result[key], value)
        elif isinstance(value, t.Mapping):
            result[key] = merged({}, value)
        else:
            result[key] = value
    return result


def said(value: t.Any) -> t.Any:
    """`value` without the keys whose value is null: they say nothing."""
    if isinstance(value, t.Mapping):
        return {key: said(item) for key, item in value.items() if item is not None}
    return value


def resolved(item: Mapping, profiles: t.Mapping[str, Mapping]) -> dict[str, t.Any]:
    """`item` over its profiles (`profile`: one name, or several of which later ones win), and theirs.

    Raises ProfileError.
    """
    return t.cast("dict[str, t.Any]", said(_flat(item, profiles, ())))


def _flat(item: Mapping, profiles: t.Mapping[str, Mapping], path: tuple[str, ...]) -> dict[str, t.Any]:
    named = item.get("profile")
    result: dict[str, t.Any] = {}
    for name in [named] if isinstance(named, str) else named or []:
        if name not in profiles:
            known = ", ".join(sorted(profiles)) or "none"
            raise ProfileError(f"there is no profile {name!r}: the document has {known}")
        if name in path:
            raise ProfileError(f"the profile {name!r} leads to itself: {' -> '.join([*path, name])}")
        result = merged(result, _flat(profiles[name] or {}, profiles, (*path, name)))
    return merged(result, {key: value for key, value in item.items() if key != "profile"})
