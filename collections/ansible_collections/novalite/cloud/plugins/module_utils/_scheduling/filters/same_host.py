# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's SameHostFilter: the hint `same_host` names instances to be with."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "same_host"
NOVA = "SameHostFilter"
RUN_ONCE_PER_REQUEST = True


def concerns(request: Request, options: Options) -> bool:
    """Only who gives the hint."""
    return bool(request.hint(NAME))


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that has none of the instances named."""
    wanted = request.hint(NAME)
    uuids = [wanted] if isinstance(wanted, str) else wanted or []
    if not uuids or any(uuid in host.instances for uuid in uuids):
        return None
    return f"has none of the instances to be with ({', '.join(uuids)})"
