# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attributes of records that clients change one by one, and those that nobody changes."""

from __future__ import annotations

import typing as t

from ...._errors import NovaliteError

MOST = 40  # of the client's own, of one record

Attributes = t.Mapping[str, object]


def merged(before: Attributes, changes: Attributes, most: int | None = None) -> dict[str, object]:
    """Return the attributes that were there `before` as `changes` has them, in which None removes one; at most so many,
    by name."""
    kept = {name: value for name, value in {**before, **changes}.items() if value is not None}
    return kept if most is None else dict(sorted(kept.items())[:most])


def keep_domain(domain_id: str | None, requested: str | None) -> None:
    """Raise NovaliteError where another domain is `requested` than the one that something is in."""
    if requested != domain_id:
        raise NovaliteError("Cannot change Domain ID")
