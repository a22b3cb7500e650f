# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a run: its plan, its differences or its answer. Pure: results go in, lines of text come out."""

from __future__ import annotations

import collections.abc as c

from .._drift import report
from .._json import JsonMapping
from .._model import text_table
from .launch_plan import LaunchPlan

Lines = c.Callable[["int | None"], "list[str]"]


class LastWords:
    """Plan and report of a run, as far as they were heard of."""

    def __init__(self) -> None:
        self.plan = LaunchPlan()
        self.report: Lines | None = None

    def heard(self, operation: str, host: str, result: JsonMapping, check_mode: bool) -> None:
        """Take in what a task of `operation` returned on `host`."""
        if operation == "drift_report" and "report" in result:
            self.report = lambda room: report.table(result["report"]["differences"], result["report"]["failures"], room)
        elif operation == "stack_plan" and check_mode and result.get("table"):
            self.report = lambda room: list(result["table"])
        elif operation == "reachability" and isinstance(result.get("msg"), list):
            self.report = lambda room: answer(result["msg"], room)
        elif check_mode:
            self.plan.heard(operation, host, result)

    def lines(self, room: int | None) -> list[str]:
        """The lines, of at most `room` characters if that is given."""
        return self.report(room) if self.report is not None else self.plan.lines(room)


def answer(texts: c.Iterable[str], room: int | None) -> list[str]:
    """Lines that go on below themselves, further to the right than they begin."""
    lines: list[str] = []
    for text in texts:
        begin = text[: len(text) - len(text.lstrip())]
        lines += text_table.wrapped(text, room, f"{begin}    ")
    return lines


def ready(access: c.Sequence[JsonMapping]) -> list[str]:
    """A line for each instance that can be logged in to, with their parts lined up."""
    rows = [
        ["READY", f"instance={way['uuid']}", f"host={way['host']}", f"ip={way['ip']}", f"ssh='{way['ssh']}'"]
        for way in access
    ]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return [" ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
