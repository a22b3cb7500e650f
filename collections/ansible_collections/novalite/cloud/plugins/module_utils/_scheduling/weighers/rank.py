# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""OpenNebula's RANK: an expression over a host's attributes; the highest value first."""

from __future__ import annotations

import typing as t

from ..expressions import evaluate_number
from ..options import Options
from ..rows import HostState, Request

NAME = "rank"


def concerns(request: Request, options: Options) -> bool:
    """Tell whether the request gives an expression."""
    return bool(request.rank)


def weigh(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    """The value of the request's expression. NovaliteError for one that cannot be read."""
    return [evaluate_number(request.rank or "0", host) for host in hosts]
