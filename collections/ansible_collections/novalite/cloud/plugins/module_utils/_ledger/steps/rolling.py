# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `rolling`: which hosts of a rolling maintenance have their turn, and how far it came with each."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..placement import rolling as hosts_in_turn

ARGUMENT_SPEC = {
    # `begin` begins `task`, or takes it up again; `under way`, `worked` (its task
    # ended well) and `done` note it of `host`; `end` ends it.
    "state": {"type": "str", "choices": ["begin", "under way", "worked", "done", "end"], "required": True},
    # What the maintenance is: the name of a playbook.
    "task": {"type": "str"},
    "hosts": {"type": "list", "elements": "str", "default": []},
    "host": {"type": "str"},
    # Forget one that was not finished.
    "anew": {"type": "bool", "default": False},
}
_OF_HOST = ("under way", "worked", "done")
SPEC_RULES = {
    "required_if": [
        ("state", "begin", ["task"]),
        *(("state", state, ["host"]) for state in ("under way", "worked", "done")),
    ]
}


def rolling(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`; with `begin`, `waiting`: the hosts whose turn is to come, `worked`: those of them whose task
    ended before, and all in one line, `in_words`; with `end`, `done`: the hosts that had their turn, if all had."""
    state = params["state"]
    if state == "begin":
        begun = hosts_in_turn.begin(connection, params["task"], params["hosts"], bool(params["anew"]))
        return {
            "changed": True,
            "waiting": list(begun.waiting),
            "worked": list(begun.worked),
            "in_words": _in_words(begun),
        }
    if state == "end":
        done = hosts_in_turn.end(connection)
        return {"changed": bool(done), "done": done}
    hosts_in_turn.note(connection, params["host"], state)
    return {"changed": True}


def _in_words(begun: hosts_in_turn.Rolling) -> str:
    words = [f"in turn: {', '.join(begun.waiting) or 'nobody'}"]
    words += [f"done: {', '.join(begun.done)}"] if begun.done else []
    words += [f"{host} is left out, for {reason}" for host, reason in sorted(begun.left_out.items())]
    return "; ".join(words)
