# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Progress of a run: which instance is at which step on which host, for how long, and how long each step took.

Pure: events with their times go in (seconds, of whatever clock), lines of text come out.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..module_utils._json import JsonMapping
from ..module_utils._model.plain_text import without_controls
from ._events import Event

# what the controller's modules return, and under which keys the instances that the run is about are in it
_LISTS = ("to_build", "to_delete", "instances")
_FINAL = ("server_state", "server_action", "launch_record")
_TELL = ("server", "scheduler", "fixed_ip", "launch_plan", *_FINAL)
_ENDS = ("active", "stopped", "paused", "suspended", "error", "deleted")
_LEAST = 0.1  # seconds; steps that took less are summed up in one line
_NAMED = 3  # instances that a plain line names
_KEPT = 10  # counts of bytes that a rate is made of
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")

Line = tuple[str, str]  # text, and what it is: head, waiting, running, done, failed, note


@dataclasses.dataclass
class Row:
    """An instance; or, with no name, a host that works for no instance in particular."""

    name: str
    host: str | None
    began: float
    step: str = ""
    since: float = 0.0
    running: bool = False
    ended: float | None = None
    failed: bool = False


@dataclasses.dataclass
class Step:
    name: str
    began: float
    ended: float
    hosts: dict[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(eq=False)
class StepNow:
    """A step that has begun `at` this time, and not ended."""

    name: str
    at: float
    counts: list[tuple[float, int]] = dataclasses.field(default_factory=list)
    total: int = 0

    def moved(self, event: Event) -> None:
        """Take in how many bytes there are. Fewer than before are another file's, whose rate begins anew."""
        if self.counts and event.done < self.counts[-1][1]:
            self.counts = []
        self.counts = [*self.counts[1 - _KEPT :], (event.at, event.done)]
        self.total = event.total

    def words(self, room: int) -> str:
        """Say in at most `room` characters how far it is: "1.2 of 4.0 GiB, 85 MiB/s, 0:32". What does not fit is left
        out, from the end. Empty where nothing is counted."""
        parts = self._parts()
        while parts and len(", ".join(parts)) > room:
            parts.pop()
        return ", ".join(parts)

    def _parts(self) -> list[str]:
        if not self.counts:
            return []
        (first, before), (last, done) = self.counts[0], self.counts[-1]
        total = self.total if self.total >= done else 0
        unit = _unit(total or done)
        of = f" of {_in(total, unit)}" if total else ""
        parts = [f"{_in(done, unit)}{of} {_UNITS[unit]}"]
        rate = (done - before) / (last - first) if last > first else 0.0
        if rate >= 1:
            unit = _unit(rate)
            parts.append(f"{_in(rate, unit)} {_UNITS[unit]}/s")
            if total:
                parts.append(_clock((total - done) / rate))
        return parts


class Progress:
    def __init__(self, now: float) -> None:
        self.began = now
        self.title = ""
        self.instances: dict[str, Row] = {}
        self.hosts: dict[str, Row] = {}
        self.steps: dict[str, Step] = {}
        self._open: dict[tuple[str, str], float] = {}
        self._inside: dict[str, StepNow] = {}  # host -> the step of a trip that it is at

    def heard(self, event: Event) -> None:
        """Learn from an event which step of its trip a host is at. One that has ended stays until the next one begins.

        It is called by another thread than the rest: it looks at little, and changes one entry at once.
        """
        here = self._inside.get(event.host)
        began = [began for key, began in list(self._open.items()) if key[0] == event.host]
        if event.kind == "end" or not began or event.at < max(began):  # or of a trip that has ended
            return
        if here is None or here.name != event.step or event.kind == "begin":
            self._inside[event.host] = here = StepNow(event.step, event.at)
        if event.kind == "moving":
            here.moved(event)

    def parts(self) -> list[tuple[str, StepNow]]:
        """List hosts that are on a trip, each with the step that it is at, as far as it is known."""
        return list(self._inside.items())

    def started(self, host: str, step: str, now: float) -> None:
        """`host` begins with `step`."""
        self._open[host, step] = now
        self._inside.pop(host, None)
        timing = self.steps.setdefault(step, Step(step, now, now))
        timing.hosts.setdefault(host, 0.0)
        for row in self._rows_of(host, now):
            row.step, row.since, row.running = step, now, True

    def ended(self, host: str, step: str, now: float, failed: bool = False) -> float:
        """`host` is done with `step`; returns the seconds that it took."""
        seconds = now - self._open.pop((host, step), now)
        self._inside.pop(host, None)
        timing = self.steps.setdefault(step, Step(step, now - seconds, now))
        timing.ended = max(timing.ended, now)
        timing.hosts[host] = timing.hosts.get(host, 0.0) + seconds
        for row in self._rows_of(host, now):
            row.running, row.failed = False, failed
        if host in self.hosts and not any(key[0] == host for key in self._open):
            del self.hosts[host]
        return seconds

    def parted(self, host: str, step: str, parts: t.Sequence[tuple[str, float]], now: float) -> None:
        """`step`, which `host` has ended at `now`, was `parts`, each its name and seconds, one after another."""
        if step in self.steps:
            self.steps[step].hosts.pop(host, None)
            if not self.steps[step].hosts:
                del self.steps[step]
        began = now - sum(seconds for _name, seconds in parts)
        for name, seconds in parts:
            part = self.steps.setdefault(name, Step(name, began, began))
            part.began, part.ended = min(part.began, began), max(part.ended, began + seconds)
            part.hosts[host] = part.hosts.get(host, 0.0) + seconds
            began += seconds

    def learned(self, name: str, result: JsonMapping, now: float) -> None:
        """Learn from the result of the operation `name` which instances there are, where they are, and what became of
        them."""
        if name not in _TELL:
            return
        for key in _LISTS:
            listed = result.get(key)
            for instance in listed if isinstance(listed, list) else ():
                if isinstance(instance, dict) and instance.get("uuid") and instance.get("name"):
                    self._instance(instance, now, final=name in _FINAL)
        plans = result.get("hosts")
        if name == "server_action" and isinstance(plans, dict):
            for host, plan in plans.items():
                for uuid, called in zip(plan.get("uuids", ()), plan.get("names", ())):
                    self._instance({"uuid": uuid, "name": called, "host": host}, now, final=False)

    def _instance(self, instance: JsonMapping, now: float, final: bool) -> None:
        row = self.instances.setdefault(
            str(instance["uuid"]), Row(str(instance["name"]), None, now, "waits for a host", now)
        )
        if instance.get("host") and row.host != instance["host"]:
            row.host, row.step, row.since = str(instance["host"]), f"waits for {instance['host']}", now
        state = instance.get("vm_state")
        if final and state in _ENDS and not instance.get("task_state"):
            fault = (instance.get("fault") or {}).get("message")
            row.step = f"{state}: {fault}" if state == "error" and fault else str(state)
            row.failed, row.running, row.ended = state == "error", False, now

    def _rows_of(self, host: str, now: float) -> list[Row]:
        rows = [row for row in self.instances.values() if row.host == host and row.ended is None]
        if rows:
            self.hosts.pop(host, None)
            return rows
        return [self.hosts.setdefault(host, Row("", host, now))]

    def names(self, host: str) -> str:
        """The instances that `host` is at, in a few words."""
        names = [row.name for row in self.instances.values() if row.host == host and row.ended is None]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return ", ".join(names[:_NAMED]) + more

    def table(self, width: int, height: int, now: float) -> list[Line]:
        """List at most `height` lines of at most `width` characters: the instances, then hosts that do something else.

        Where there is too little room, those that are done go first, then those that wait; they are counted.
        """
        rows = [*self.instances.values(), *(row for row in self.hosts.values() if row.running)]
        done = sum(row.ended is not None for row in self.instances.values())
        count = f"{done} of {len(self.instances)} done" if self.instances else ""
        lines: list[Line] = [(_fit(f"{now - self.began:7.1f} s  {self.title}", count, width), "head")]
        room = height - 2
        shown = rows
        if len(rows) > room:
            shown = sorted(rows, key=lambda row: _URGENCY[_kind(row)])[: max(room - 1, 0)]
            kept = {id(row) for row in shown}
            shown = [row for row in rows if id(row) in kept]
        if shown:
            name = min(max(8, *(len(row.name) for row in shown)), max(8, width // 4))
            host = min(max(4, *(len(row.host or "") for row in shown)), max(4, width // 5))
            step = max(width - name - host - 22, 4)
            titles = f"  {'INSTANCE':{name}}  {'HOST':{host}}  {'STEP':{step}}  {'STEP s':>6}  {'ALL s':>6}"
            lines.append((titles, "head"))
            for row in shown:
                kind = _kind(row)
                part = self._inside.get(row.host or "") if kind == "running" else None
                at = _cut(row.step, step) if part is None else _fit(part.name, part.words(step * 3 // 4), step)
                since = row.since if part is None else part.at
                here = f"{now - since:6.1f}" if kind in ("running", "waiting") else " " * 6
                total = f"{(now if row.ended is None else row.ended) - row.began:6.1f}"
                lines.append(
                    (
                        f"  {_cut(row.name or '-', name):{name}}  {_cut(row.host or '-', host):{host}}  "
                        f"{at:{step}}  {here}  {total}",
                        kind,
                    )
                )
        if len(shown) < len(rows):
            hidden = [_kind(row) for row in rows if id(row) not in {id(visible) for visible in shown}]
            counts = ", ".join(f"{hidden.count(kind)} {kind}" for kind in _URGENCY if kind in hidden)
            lines.append((f"  and {len(hidden)} more: {counts}", "note"))
        return [(_cut(text, width).rstrip(), kind) for text, kind in lines[:height]]

    def summary(self, now: float) -> list[str]:
        """Render how long each step took, in their order: from the first host's begin to the last one's end."""
        long = [step for step in self.steps.values() if step.ended - step.began >= _LEAST]
        short = [step for step in self.steps.values() if step.ended - step.began < _LEAST]
        width = min(max([30, *(len(step.name) for step in long)]), 72)
        lines = [f"{'STEP':{width}}  {'SECONDS':>8}  {'HOSTS':>5}  SLOWEST"]
        for step in sorted(long, key=lambda step: step.began):
            slowest = max(step.hosts, key=lambda host: step.hosts[host])
            lines.append(
                f"{_cut(step.name, width):{width}}  {step.ended - step.began:8.2f}  {len(step.hosts):5}  "
                + (f"{slowest} ({step.hosts[slowest]:.2f} s)" if len(step.hosts) > 1 else slowest)
            )
        if short:
            lines.append(
                f"{f'{len(short)} shorter steps':{width}}  {sum(step.ended - step.began for step in short):8.2f}"
            )
        lines.append(f"{'In all':{width}}  {now - self.began:8.2f}")
        return [line.rstrip() for line in lines]


_URGENCY = {"failed": 0, "running": 1, "waiting": 2, "done": 3}


def _kind(row: Row) -> str:
    if row.failed:
        return "failed"
    if row.ended is not None:
        return "done"
    return "running" if row.running else "waiting"


def _cut(text: str, width: int) -> str:
    # a name or a fault may hold anything, and must not move the terminal's cursor
    text = without_controls(text)
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def _fit(left: str, right: str, width: int) -> str:
    return f"{_cut(left, max(width - len(right) - 2, 0)):{max(width - len(right), 0)}}{right}" if right else left


def _unit(amount: float) -> int:
    """The unit in which `amount` is told: below 1000 of it."""
    unit = 0
    while amount >= 1000 * 1024**unit and unit < len(_UNITS) - 1:
        unit += 1
    return unit


def _in(amount: float, unit: int) -> str:
    amount /= 1024**unit
    return f"{amount:.1f}" if unit and amount < 100 else f"{amount:.0f}"


def _clock(seconds: float) -> str:
    """`seconds` as minutes and seconds, or hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
