# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's DifferentHostFilter: the hint `different_host` names instances to be away from."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "different_host"
NOVA = "DifferentHostFilter"
RUN_ONCE_PER_REQUEST = True


def concerns(request: Request, options: Options) -> bool:
    """Only who gives the hint."""
    return bool(request.hint(NAME))


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that has any of the instances named."""
    unwanted = request.hint(NAME)
    uuids = [unwanted] if isinstance(unwanted, str) else unwanted or []
    uuids_here = [uuid for uuid in uuids if uuid in host.instances]
    return f"has instances to be away from ({', '.join(uuids_here)})" if uuids_here else None
