# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens of trips: the epoch of a host, and the term of the watcher, that an order about its guests belongs to.

The host refuses an order that is older than what it was told (module_utils/_steps/epoch_token.py). The token is
compared by the first step of the trip itself, so that nothing is done before, and no time lies in between.
"""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible.errors import AnsibleActionFail

from ..module_utils._json import JsonMapping, JsonObject
from . import _home

VARIABLE = "novalite_token"  # of a host, or of a play: `epoch` and `term`; none where there is no watcher
STEP = "epoch_token"

# What builds, starts, moves or removes a guest: modules and steps, and which of their states; None for any
ORDERS: t.Mapping[str, c.Collection[str] | None] = {
    "disk": ("present", "anew", "absent"),
    "disk_move": ("accepted", "sent", "received", "restored"),
    "domain": None,
    "domain_power": ("running", "rebooted"),
    "live_migration": None,
}


def is_order(step: JsonMapping) -> bool:
    """Tell whether a step, with its validated arguments, is an order about guests that must not be older."""
    if step["module"] not in ORDERS:
        return False
    states = ORDERS[step["module"]]
    return states is None or step["args"]["state"] in states


def guard(steps: c.Iterable[JsonMapping], task_vars: JsonMapping, templar: _home.Templar) -> JsonObject | None:
    """Return the step that compares the token of a trip with these `steps`; None where it carries none, or needs none.
    Raises AnsibleActionFail for a token that makes no sense."""
    token = templar.template(task_vars.get(VARIABLE))
    if not token or not any(map(is_order, steps)):
        return None
    if not isinstance(token, dict) or set(token) != {"epoch", "term"}:
        raise AnsibleActionFail(f"{VARIABLE} {token!r} is not a token: it has an epoch and a term")
    return {"name": "Compare the epoch of the order", "module": STEP, "args": {**token, "state": "checked"}}


def without_guard(results: list[JsonObject]) -> list[JsonObject]:
    """Return the `results` of the steps behind the guard. Raises AnsibleActionFail, with `refused_token`, where the
    host refused the token, and has done nothing."""
    if results and (result := results[0]["result"]).get("failed"):
        words = {name: result[name] for name in ("refused", "kept") if name in result}
        raise AnsibleActionFail(result["msg"], result={"refused_token": words})
    return results[1:]
