# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's SameHostFilter and DifferentHostFilter: hints that name instances to be with, or to be away from."""

from __future__ import annotations

import typing as t

from ..kinds import Filter
from ..options import Options
from ..rows import HostState, Request


def _named(hint: str, nova: str, reason: t.Callable[[HostState, list[str]], str | None]) -> Filter:
    """The filter of this name and hint; `reason` is given a host and the instances that the hint names."""

    def concerns(request: Request, options: Options) -> bool:
        return bool(request.hint(hint))

    def passes(host: HostState, request: Request, options: Options) -> str | None:
        uuids = request.hint(hint)
        return reason(host, [uuids] if isinstance(uuids, str) else uuids) if uuids else None

    return Filter(hint, passes, once=True, concerns=concerns, nova=nova)


def _none_here(host: HostState, uuids: list[str]) -> str | None:
    if any(uuid in host.instances for uuid in uuids):
        return None
    return f"has none of the instances to be with ({', '.join(uuids)})"


def _some_here(host: HostState, uuids: list[str]) -> str | None:
    here = [uuid for uuid in uuids if uuid in host.instances]
    return f"has instances to be away from ({', '.join(here)})" if here else None


PLUGINS = (
    _named("same_host", "SameHostFilter", _none_here),
    _named("different_host", "DifferentHostFilter", _some_here),
)
