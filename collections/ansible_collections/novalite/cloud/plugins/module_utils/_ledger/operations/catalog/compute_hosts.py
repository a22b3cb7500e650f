# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on compute hosts, Nova's services: switched, or forgotten."""

from __future__ import annotations

import typing as t

from ...._json import JsonObject
from ...placement import compute_hosts, host_removal
from ..call import Call


def switch(call: Call, hosts: t.Iterable[str], enabled: bool, reason: str | None = None) -> JsonObject:
    """Enable hosts for new servers, or disable them; return what modules do. Raises as switch_hosts()."""
    return compute_hosts.switch_hosts(call.connection, hosts, enabled, reason)


def delete(call: Call, host: str) -> JsonObject | None:
    """Forget a host; return what was known of it. Raises HostInUseError for one that cannot leave."""
    return host_removal.remove(call.connection, host)
