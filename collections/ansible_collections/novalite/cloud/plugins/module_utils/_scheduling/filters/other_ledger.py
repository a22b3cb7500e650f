# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Novalite's own, since no two Novas share a host: no host that has guests of another ledger."""

from __future__ import annotations

import typing as t

from ..options import Options
from ..rows import HostState, Request

NAME = "other_ledger"
RUN_ONCE_PER_REQUEST = True


def refusal(ledger: str) -> str:
    """The reason for which a host with guests of another `ledger` takes none of this one, to follow its name."""
    return (
        f"carries guests of another ledger ({ledger}), and a host belongs to one ledger at a time: take it out of the "
        "inventory, or have that ledger's guests moved away or deleted first"
    )


def refused(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[int]:
    """Return the positions of hosts with guests of another ledger."""
    return [at for at, host in enumerate(hosts) if "other_ledger" in host.facts]


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host with guests of another ledger, whose build would end at that one's chains and filters."""
    other = host.facts.get("other_ledger")
    return None if other is None else refusal(str(other))
