# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Metadata of a host's aggregates. As in Nova, commas separate several values of a key."""

from __future__ import annotations

import typing as t

from .rows import HostState

Number = t.TypeVar("Number", int, float)


def metadata_of(host: HostState) -> dict[str, set[str]]:
    """Return all values of each key, over all aggregates of the host."""
    metadata: dict[str, set[str]] = {}
    for aggregate in host.aggregates:
        for key, value in aggregate.metadata.items():
            metadata.setdefault(key, set()).update(part.strip() for part in value.split(","))
    return metadata


def least(host: HostState, key: str, default: Number, kind: t.Callable[[str], Number]) -> Number:
    """The least of the numbers that the host's aggregates give for `key`; `default` without any, or with a bad one."""
    values = [aggregate.metadata[key] for aggregate in host.aggregates if key in aggregate.metadata]
    if not values:
        return default
    try:
        return min(kind(value) for value in values)
    except ValueError:
        return default
