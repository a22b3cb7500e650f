# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's BuildFailureWeigher: a host whose last builds failed comes after all others."""

from __future__ import annotations

import typing as t

from ..options import Options
from ..rows import HostState, Request

NAME = "build_failure"
NOVA = "BuildFailureWeigher"
SIGN = -1


def weigh(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    """Builds that failed since the last success. Counted against the host: SIGN turns the multiplier around."""
    return [host.failed_builds for host in hosts]
