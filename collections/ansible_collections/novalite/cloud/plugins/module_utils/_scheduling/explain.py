# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reasons for and against hosts: decisions as data, and the one line a person reads."""

from __future__ import annotations

import dataclasses
import typing as t

from .._json import Json, JsonMapping, JsonObject
from .._model.numa import Claim
from .choices import Score
from .rows import Request

NO_HOST = "No valid host was found"
NAMED_IN_LINE = 3  # hosts named per filter in the one-line message
NAMED = 10  # hosts that one filter removed and that get a line of their own
NAMED_IN_DATA = 100  # hosts named per filter in what is recorded; the counts are always whole


@dataclasses.dataclass(frozen=True)
class FilterStep:
    """Step of one filter: how many hosts came in, how many stayed, and why each of the others did not."""

    name: str
    start: int
    end: int
    removed: t.Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class WeighedHost:
    """Host that passed, its score and what the score was made of."""

    name: str
    score: Score
    details: t.Mapping[str, float]
    others: str = ""  # what guests take of it that are not novalite's, in words


@dataclasses.dataclass(frozen=True)
class Decision:
    """Decision about one request. `host` is None when no host was found; `message` says it in one line."""

    request: Request
    choice: str
    hosts: int
    filters: tuple[FilterStep, ...]
    host: str | None = None
    alternates: tuple[str, ...] = ()
    weighed: tuple[WeighedHost, ...] = ()
    message: str = ""
    numa: Claim | None = None  # the NUMA nodes, CPUs and pages that it gets there

    def with_host(
        self, host: str, alternates: tuple[str, ...], weighed: tuple[WeighedHost, ...], numa: Claim | None
    ) -> Decision:
        """Return this decision with `host` as the chosen one, where it gets `numa`."""
        remain = self.filters[-1].end if self.filters else self.hosts
        message = f"{host} was chosen for {self.request.name!r} by {self.choice} from {remain} of {self.hosts} hosts"
        return dataclasses.replace(self, host=host, alternates=alternates, weighed=weighed, message=message, numa=numa)


def no_valid_host(decision: Decision) -> str:
    """Nova's words, followed by what Nova only logs: each filter that removed a host, with reasons."""
    begin = f"{NO_HOST} for {decision.request.name!r}: "
    if not decision.hosts:
        return begin + "no compute host is known; add one to the inventory and run again"
    parts = []
    for step in decision.filters:
        if step.removed:
            named = [f"{host}: {reason}" for host, reason in list(step.removed.items())[:NAMED_IN_LINE]]
            if len(step.removed) > NAMED_IN_LINE:
                named.append("...")
            parts.append(f"{step.name} removed {len(step.removed)} ({', '.join(named)})")
    remain = decision.filters[-1].end if decision.filters else decision.hosts
    return f"{begin}{', '.join(parts)}; {remain} of {decision.hosts} hosts remain"


def without_reasons(message: str) -> str:
    """Return a fault's `message` as tenants may read it: Nova's sentence stands for what no_valid_host() tells.

    What comes before it stays: why the last host failed, as in Nova's MaxRetriesExceeded.
    """
    before, sentence, _reasons = message.rpartition(f"{NO_HOST} for ")
    return f"{before}{NO_HOST}. There are not enough hosts available." if sentence else message


def explanation(decision: Decision, named: int | None = NAMED_IN_DATA) -> JsonObject:
    """The decision as JSON data. Each filter names so many of its hosts; None: all, for who asks why.

    What is recorded is bounded: with thousands of hosts, the counts tell and some of the names.
    """
    return {
        "uuid": decision.request.uuid,
        "name": decision.request.name,
        "host": decision.host,
        "alternates": list(decision.alternates),
        "choice": decision.choice,
        "hosts": decision.hosts,
        "filters": [
            {
                "filter": step.name,
                "start": step.start,
                "end": step.end,
                "removed": dict(list(step.removed.items())[:named]),
            }
            for step in decision.filters
        ],
        "weights": [
            {
                "host": host.name,
                "score": list(host.score) if isinstance(host.score, tuple) else host.score,
                "details": dict(host.details),
                **({"used_by_others": host.others} if host.others else {}),
            }
            for host in decision.weighed
        ],
        "message": decision.message,
    }


def lines_of(explained: JsonMapping, named: int | None = NAMED) -> list[str]:
    """List one line for each host that was weighed, best first, then for each that a filter removed.

    `explained` is what explanation() returns. With thousands of hosts, those that a filter removed
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
