# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adopted instances, whose guests others made."""

from __future__ import annotations

import typing as t

from ..._model.instance import Instance


def not_adopted(instances: t.Iterable[Instance]) -> list[Instance]:
    """List the instances that hosts are to be made ready for: an adopted one has what it needs, made by others."""
    return [server for server in instances if server["adopted"] is None]
