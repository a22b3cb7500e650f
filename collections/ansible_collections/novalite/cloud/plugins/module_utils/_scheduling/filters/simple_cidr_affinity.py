# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's SimpleCIDRAffinityFilter: near the address of the hint `build_near_host_ip`, by `cidr` (/24)."""

from __future__ import annotations

import functools
import typing as t

from ..._errors import NovaliteError
from ..options import Options
from ..rows import HostState, Request

if t.TYPE_CHECKING:
    import netaddr

NAME = "simple_cidr_affinity"
NOVA = "SimpleCIDRAffinityFilter"
RUN_ONCE_PER_REQUEST = True


@functools.lru_cache(maxsize=64)
def _network(address: str, cidr: str) -> netaddr.IPNetwork:
    from ..._addressing.texts import parse_network  # netaddr: the scheduler needs nothing else that is not Python's own

    try:
        return parse_network(address + cidr, strict=False).cidr
    except ValueError:
        raise NovaliteError(
            f"the hints build_near_host_ip={address!r} and cidr={cidr!r} make no network: give an address and /<bits>"
        ) from None


def concerns(request: Request, options: Options) -> bool:
    """Tell whether the request gives the hint."""
    return bool(request.hint("build_near_host_ip"))


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host whose address is outside the network of the hint, or unknown."""
    near = request.hint("build_near_host_ip")
    if not near:
        return None
    network = _network(str(near), str(request.hint("cidr") or "/24"))
    if host.address is None:
        return f"has no known address, {network} is asked for"
    return None if host.address in network else f"has address {host.address}, not in {network}"
