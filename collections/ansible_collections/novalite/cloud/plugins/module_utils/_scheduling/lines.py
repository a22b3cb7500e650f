# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A scheduling's explanation as lines that a person reads: what stayed and why it won, what went and why."""

from __future__ import annotations

from .._json import Json, JsonMapping

NAMED = 10  # hosts that one filter removed and that get a line of their own


def lines_of(explained: JsonMapping, named: int | None = NAMED) -> list[str]:
    """One line for each host that was weighed, best first, then for each that a filter removed.

    `explained` is what explain.explanation() returns. With thousands of hosts, those that a filter removed
    are counted, and `named` of them named (None: all).
    """
    lines = []
    for weight in explained["weights"]:
        parts = ", ".join(f"{name} {_number(value)}" for name, value in weight["details"].items())
        line = f"{weight['host']}: weight {_number(weight['score'])}" + (f" ({parts})" if parts else "")
        line += f", used by others: {weight['used_by_others']}" if weight.get("used_by_others") else ""
        if weight["host"] == explained["host"]:
            line += " chosen"
        elif weight["host"] in explained["alternates"]:
            line += f" alternate {explained['alternates'].index(weight['host']) + 1}"
        lines.append(line)
    for step in explained["filters"]:
        removed = step["start"] - step["end"]
        shown = list(step["removed"].items())[:named]
        lines += [f"{host}: removed by {step['filter']}: {reason}" for host, reason in shown]
        if removed > len(shown):
            lines.append(f"{removed - len(shown)} more hosts removed by {step['filter']}")
    if not explained["weights"]:
        lines.insert(0, explained["message"])
    return lines


def _number(value: Json) -> str:
    if isinstance(value, (list, tuple)):
        return "/".join(_number(part) for part in value)
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
