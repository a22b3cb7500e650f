# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the steps of a move need to know of a host's moves, so that no task has to work it out."""

from __future__ import annotations

import typing as t

from .._json import JsonMapping, JsonObject

Plan = JsonObject

ARRIVING, LEAVING, STAYING = "arriving", "leaving", "staying"


def summary(plan: JsonMapping) -> Plan:
    """What follows from the `arriving`, `leaving` and `staying` moves of a host's `plan`.

    `sources` and `destinations` are the names of the hosts at the other ends; `starts` has, for each of the three, the
    UUIDs of the guests that run before and afterwards, and `rests` those of the guests that are here in the end, off.
    """
    moves = {kind: plan.get(kind, ()) for kind in (ARRIVING, LEAVING, STAYING)}
    return {
        "sources": list(dict.fromkeys(move["from_host"] for move in moves[ARRIVING])),
        "destinations": list(dict.fromkeys(move["to_host"] for move in moves[LEAVING])),
        "starts": {kind: [move["uuid"] for move in of_kind if move["starts"]] for kind, of_kind in moves.items()},
        "rests": [move["uuid"] for kind in (ARRIVING, STAYING) for move in moves[kind] if not move["starts"]],
    }


def domains_there(plan: JsonMapping, plans: t.Mapping[str, JsonMapping]) -> list[Plan]:
    """How the guests that leave the host of `plan` are defined on their new hosts, whose `plans` made them."""
    return [domain for host in plan["destinations"] for domain in plans[host].get("build", {}).get("domains", ())]
