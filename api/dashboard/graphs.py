# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Graphs of what a host or a guest used: samples as lines, axes and words, which the template draws as SVG. Pure, but
for the last function, which reads the samples."""

from __future__ import annotations

import dataclasses
import datetime
import math
import time
import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import WINDOWS, Record

from ..web.ledger import samples

WIDTH, HEIGHT = 340, 150  # in which a letter is as large as on the page, on a phone, too
LEFT, RIGHT, TOP, BOTTOM = 62, 8, 10, 22  # room for the labels
DEFAULT = "day"
_TICKS = {"hour": (900, "%H:%M"), "day": (6 * 3600, "%H:%M"), "week": (86400, "%a"), "month": (5 * 86400, "%-d %b")}
_PREFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi")

Values = t.Sequence[t.Optional[float]]


@dataclasses.dataclass(frozen=True)
class Kind:
    """Graph of measures that share a unit: bytes, bytes/s, cores, share; with the words for its lines."""

    title: str
    unit: str
    measures: t.Mapping[str, str]
    limit: str = ""  # name of what there is of it, in the limits


KINDS = (
    Kind("CPU", "cores", {"cpu": "at work"}, "cores"),
    Kind("Memory", "bytes", {"memory": "used"}, "memory"),
    Kind("Disk", "bytes/s", {"disk_read": "read", "disk_written": "written"}),
    Kind("Network", "bytes/s", {"net_received": "received", "net_sent": "sent"}),
    Kind("Pressure", "share", {"cpu_pressure": "CPU", "memory_pressure": "memory", "io_pressure": "disk"}),
)


@dataclasses.dataclass(frozen=True)
class Tick:
    """Label of an axis, and its place on it."""

    at: float
    label: str


@dataclasses.dataclass(frozen=True)
class Line:
    """Line of a graph: its name, the words for its figures, and its path in SVG's language; that of its peaks is empty
    where other lines are beside it."""

    name: str
    words: str
    path: str
    peaks: str = ""


@dataclasses.dataclass(frozen=True)
class Graph:
    """Graph, ready to be drawn."""

    title: str
    lines: tuple[Line, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]

    @property
    def description(self) -> str:
        return "; ".join(f"{line.name}: {line.words}" for line in self.lines)


@dataclasses.dataclass(frozen=True)
class Use:
    """Graphs of a host or guest, and the window that they show."""

    window: str
    graphs: tuple[Graph, ...]
    windows: tuple[str, ...] = tuple(WINDOWS)


def drawn(records: t.Sequence[Record], window: str, limits: t.Mapping[str, float]) -> tuple[Graph, ...]:
    """Return the graphs of what is known; `limits` has how many `cores`, and bytes of `memory`, there are."""
    graphs = (_graph(kind, records, window, limits.get(kind.limit)) for kind in KINDS)
    return tuple(graph for graph in graphs if graph is not None)


def _graph(kind: Kind, records: t.Sequence[Record], window: str, limit: float | None) -> Graph | None:
    means = {name: [record.mean[name] for record in records] for name in kind.measures}
    peaks = {name: [record.peak[name] for record in records] for name in kind.measures}
    known = [name for name in kind.measures if any(value is not None for value in means[name])]
    if not known:
        return None
    alone = len(kind.measures) == 1 and means != peaks
    highest = max(value for name in known for value in (peaks if alone else means)[name] if value is not None)
    top = rounded_up(highest, kind.unit)
    lines = tuple(
        Line(
            kind.measures[name],
            _words(means[name], peaks[name], kind.unit, limit),
            path(means[name], top),
            path(peaks[name], top) if alone else "",
        )
        for name in known
    )
    up = tuple(Tick(_height(share), written(top * share, kind.unit)) for share in (0, 0.5, 1))
    return Graph(kind.title, lines, _across(records, window), up)


def _across(records: t.Sequence[Record], window: str) -> tuple[Tick, ...]:
    every, form = _TICKS[window]
    places = {record.at: number for number, record in enumerate(records) if record.at % every == 0}
    return tuple(
        Tick(_place(number, len(records)), f"{datetime.datetime.fromtimestamp(at, datetime.timezone.utc):{form}}")
        for at, number in places.items()
    )


def path(values: Values, top: float) -> str:
    """Return the line through these values: it is broken where one is not known, and a lonely one is a point."""
    parts, pen_down = [], False
    for number, value in enumerate(values):
        if value is not None:
            place = f"{_place(number, len(values)):.1f} {_height(value / top):.1f}"
            parts.append(f"L{place}" if pen_down else f"M{place}h0")
        pen_down = value is not None
    return "".join(parts)


def _place(number: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * number / max(count - 1, 1)


def _height(share: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(share, 1.0)


def _words(means: Values, peaks: Values, unit: str, limit: float | None) -> str:
    known = [value for value in means if value is not None]
    highest = max(value for value in peaks if value is not None)
    average = written(sum(known) / len(known), unit)
    of = f" of {written(limit, unit)}" if limit else ""
    return f"{average} on average, {written(highest, unit)} at most{of}"


def rounded_up(value: float, unit: str) -> float:
    """Return a number that the top of an axis can be called by, and no less than `value`."""
    if unit.startswith("bytes"):
        return 2.0 ** max(math.ceil(math.log2(value)), 10) if value > 0 else 1024.0
    least = 0.01 if unit == "share" else 0.1
    tens = 10.0 ** math.floor(math.log10(max(value, least)))
    return next(tens * step for step in (1, 2, 5, 10) if tens * step >= max(value, least) * (1 - 1e-9))


def written(value: float, unit: str) -> str:
    """Write a value with its unit: 1.5 MiB/s, 0.25 cores, 3 %."""
    if unit == "share":
        return f"{_digits(value * 100)} %"
    if not unit.startswith("bytes"):
        text = _digits(value)
        return f"{text} {unit.removesuffix('s') if text == '1' else unit}"
    power = min(max(math.floor(math.log(value, 1024)), 0), len(_PREFIXES) - 1) if value > 0 else 0
    return f"{_digits(value / 1024**power)} {_PREFIXES[power]}B{unit.removeprefix('bytes')}"


def _digits(value: float) -> str:
    """Write three digits that say something, and no zeros at the end."""
    digits = 0 if value >= 100 or value == 0 else 1 if value >= 10 else 2
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def use_of(kind: str, name: str, limits: t.Mapping[str, float]) -> Use | None:
    """Return the graphs of a host or guest in the window that the request asks for; None of one never measured."""
    rings = samples()
    if not rings.knows(kind, name):
        return None
    window = request.args.get("window", DEFAULT)
    window = window if window in WINDOWS else DEFAULT
    return Use(window, drawn(rings.history(kind, name, WINDOWS[window], time.time()), window, limits))


def limits_of_host(host: JsonMapping) -> dict[str, float]:
    capacity = host["capacity"]
    return {"cores": capacity["vcpus"]["total"], "memory": capacity["memory_mb"]["total"] * 1024**2}


def limits_of_flavor(flavor: JsonMapping) -> dict[str, float]:
    return {"cores": flavor["vcpus"], "memory": flavor["memory_mb"] * 1024**2}
