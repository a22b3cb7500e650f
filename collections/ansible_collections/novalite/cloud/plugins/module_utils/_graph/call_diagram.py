# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real launch of an instance in the style of Nova's boot call diagram, as SVG. Pure: data in, text out.

Components are boxes across the top, calls are lines between them in the order of time. The kind of a line says how it
is called, and its text the step's number, Nova's method, what does it here and the seconds.
"""

from __future__ import annotations

import dataclasses
import html
import typing as t

from .._json import JsonMapping
from .._model.plain_text import without_controls
from .launch_steps import (
    API,
    BY_OPERATION,
    COMPUTE,
    DATABASE,
    HOSTS,
    HTTP,
    IN_PROCESS,
    JOB,
    NETWORK,
    REQUEST,
    SCHEDULER,
    SOCKET,
    SSH,
    TAKEN,
    TRIP,
    LaunchStep,
)

CLIENT, RUN = "client", "launch.yml"
MOST_HOSTS = 4  # that have boxes of their own; an instance is tried on three at most
MOST_CALLS = 120
WAITS = ("server_wait",)  # what may fail, and leaves a guest that was built running
# one stroke and colour for each kind, told apart without colours, too
KINDS = {HTTP: ("#0072b2", "2 3"), JOB: ("#8c510a", "8 4"), IN_PROCESS: ("#444444", ""), SSH: ("#01665e", "12 3 2 3")}
KINDS[SOCKET] = ("#762a83", "5 3")
_FAILED = "#c8373a"
_LEFT, _WIDE, _BOX, _ROW, _TOP = 86, 178, 140, 34, 118  # pixels
FONT = 'font-family="DejaVu Sans,Verdana,sans-serif"'


@dataclasses.dataclass(frozen=True)
class Arrow:
    """A call from one box to another, or to itself. `began` in seconds after the first call; `seconds` may be None."""

    caller: str
    callee: str
    kind: str
    text: str
    detail: str
    began: float
    seconds: float
    failed: bool = False
    unanswered: bool = False  # a guest that runs was waited for in vain


def arrows(launch: JsonMapping) -> list[Arrow]:
    """The calls of a launch, which is as _ledger/queries/compute/launch_calls.py returns it."""
    calls: list[JsonMapping] = list(launch["calls"])[:MOST_CALLS]
    by_job = any(call["operation"] == TAKEN for call in calls)
    first = min((call["at"] for call in calls), default=0.0)
    broken = {str(call.get("host")) for call in calls if call.get("failed") and call["operation"] not in (*WAITS, TRIP)}
    waited = {str(call.get("host")) for call in calls if call.get("failed") and call["operation"] in WAITS} - broken
    made = []
    for call in calls:
        operation, host = str(call["operation"]), str(call.get("host") or "")
        steps = BY_OPERATION.get(operation, ())
        caller, callee, kind = _ends(operation, host, by_job, steps)
        numbers = ", ".join(step.label for step in steps if step.number is not None)
        methods = ", ".join(dict.fromkeys(step.method for step in steps)) or "the steps of this host"
        where = f"{operation} on {host}" if host else operation
        unanswered = operation in WAITS and bool(call.get("failed"))
        made.append(
            Arrow(
                caller,
                callee,
                kind,
                f"{numbers} {methods}".strip(),
                where,
                max(0.0, float(call["at"]) - first),
                float(call["seconds"]),
                bool(call.get("failed")) and not unanswered and not (operation == TRIP and host in waited),
                unanswered,
            )
        )
    return made


def _ends(operation: str, host: str, by_job: bool, steps: t.Sequence[LaunchStep]) -> tuple[str, str, str]:
    """The boxes that a call is between, and its kind."""
    entry_box = API if by_job else RUN
    if operation == TRIP:
        return RUN, f"{COMPUTE} {host}", SSH
    if operation in HOSTS:
        component = steps[0].component
        kind = SOCKET if any(step.kind == SOCKET for step in steps) else IN_PROCESS
        return f"{COMPUTE} {host}", f"{component} {host}", kind
    ends = {
        REQUEST: (CLIENT, entry_box, HTTP if by_job else IN_PROCESS),
        "server": (entry_box, DATABASE, IN_PROCESS),
        TAKEN: (API, RUN, JOB),
        "scheduler": (RUN, SCHEDULER, IN_PROCESS),
        "fixed_ip": (RUN, NETWORK, IN_PROCESS),
        "server_plan": (RUN, RUN, IN_PROCESS),
        "launch_record": (RUN, DATABASE, IN_PROCESS),
    }
    return ends.get(operation, (RUN, RUN, IN_PROCESS))


def boxes(made: t.Sequence[Arrow]) -> list[str]:
    """The names of the boxes, from the left to the right: who asks, the controller's, then those of each host."""
    used = dict.fromkeys(name for arrow in made for name in (arrow.caller, arrow.callee))
    fixed = [name for name in (CLIENT, API, RUN, DATABASE, SCHEDULER, NETWORK) if name in used]
    there = [name for name in used if name not in fixed]
    hosts = list(dict.fromkeys(name.split(" ", 1)[1] for name in there))[:MOST_HOSTS]
    return fixed + [name for host in hosts for name in there if name.split(" ", 1)[1] == host]


def svg(launch: JsonMapping) -> str:
    """The picture of a launch."""
    made = arrows(launch)
    names = boxes(made)
    made = [arrow for arrow in made if arrow.caller in names and arrow.callee in names]
    places = {name: _LEFT + _WIDE * number + _BOX // 2 for number, name in enumerate(names)}
    width = _LEFT + _WIDE * max(len(names), 4) + 60
    bottom = _TOP + _ROW * (len(made) + 1)
    height = bottom + 24
    title = f"launch of {launch['name']} ({launch['uuid']})"
    end = max((arrow.began + arrow.seconds for arrow in made), default=0.0)
    outcome = f"failed: {launch['message']}" if launch.get("message") else f"on {launch['host']}"
    under = f"{launch['request_id']}, {outcome}, {end:.3f} s"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" {FONT} font-size="11">',
        f"<title>{escaped(title)}</title>",
        f"<defs>{''.join(marker(kind, colour) for kind, colour in _colours().items())}</defs>",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="12" y="22" font-size="15" font-weight="bold">{escaped(title)}</text>',
        f'<text x="12" y="40" fill="#444444">{escaped(_cut(under, 160))}</text>',
        *_legend(),
    ]
    for name, place in places.items():
        parts += _box(name, place, bottom)
    parts += _bars(made, places)
    for number, arrow in enumerate(made):
        parts += _line(arrow, places, _TOP + _ROW * (number + 1))
    return "\n".join([*parts, "</svg>", ""])


def _colours() -> dict[str, str]:
    return {**{kind: colour for kind, (colour, _dash) in KINDS.items()}, "failed": _FAILED}


def marker(kind: str, colour: str) -> str:
    return (
        f'<marker id="{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{colour}"/></marker>'
    )


def _legend() -> t.Iterator[str]:
    place = 12
    for kind, (colour, dashes) in KINDS.items():
        stroke = f'stroke="{colour}"{dashed(dashes)} stroke-width="1.6"'
        yield f'<line x1="{place}" y1="57" x2="{place + 40}" y2="57" {stroke}/>'
        yield f'<text x="{place + 46}" y="61">{kind}</text>'
        place += 62 + 8 * len(kind)


def dashed(dashes: str) -> str:
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _box(name: str, place: int, bottom: int) -> t.Iterator[str]:
    component, _space, host = name.partition(" ")
    fill = "#d6e4f0" if host else "#e9eef3"
    yield f'<line x1="{place}" y1="{_TOP - 8}" x2="{place}" y2="{bottom}" stroke="#b5c3d0"/>'
    yield (
        f'<rect x="{place - _BOX // 2}" y="76" width="{_BOX}" height="34" rx="4" fill="{fill}" stroke="#8aa0b4"/>'
        f'<text x="{place}" y="{90 if host else 97}" text-anchor="middle" font-weight="bold">'
        f"{escaped(component)}</text>"
    )
    if host:
        yield f'<text x="{place}" y="104" text-anchor="middle" fill="#444444">{escaped(_cut(host, 22))}</text>'


def _bars(made: t.Sequence[Arrow], places: t.Mapping[str, int]) -> t.Iterator[str]:
    """A bar along the box of a host, from each trip to the last of its steps."""
    begun: dict[str, int] = {}
    ended: dict[str, int] = {}
    for number, arrow in enumerate(made):
        if arrow.kind == SSH:
            begun[arrow.callee] = ended[arrow.callee] = number
        elif arrow.caller in begun:
            ended[arrow.caller] = number
    for name, number in begun.items():
        top = _TOP + _ROW * (number + 1)
        long = _ROW * (ended[name] - number) + 12
        yield f'<rect x="{places[name] - 3}" y="{top - 4}" width="6" height="{long}" fill="#a9c6df"/>'


def _line(arrow: Arrow, places: t.Mapping[str, int], y: int) -> t.Iterator[str]:
    colour, dashes = KINDS[arrow.kind]
    mark, colour = ("failed", _FAILED) if arrow.failed else (arrow.kind, colour)
    start, end = places[arrow.caller], places[arrow.callee]
    stroke = f'fill="none" stroke="{colour}"{dashed(dashes)} stroke-width="1.6" marker-end="url(#{mark})"'
    yield f'<text x="12" y="{y + 4}" fill="#444444">+{arrow.began:.3f} s</text>'
    if start == end:
        yield f'<path d="M{start} {y - 5} h22 v10 h-19" {stroke}/>'
        place, anchor = start + 28, "start"
    else:
        side = 4 if end > start else -4
        yield f'<line x1="{start + side}" y1="{y}" x2="{end - side}" y2="{y}" {stroke}/>'
        place, anchor = (min(start, end) + 8, "start")
    seconds = "" if not arrow.seconds else f", {arrow.seconds:.3f} s"
    outcome = ", failed" if arrow.failed else ", no answer" if arrow.unanswered else ""
    halo = 'paint-order="stroke" stroke="white" stroke-width="4" stroke-linejoin="round"'
    loop = start == end
    yield (
        f'<text x="{place}" y="{y - 4 if not loop else y}" text-anchor="{anchor}" {halo}>{escaped(arrow.text)}</text>'
        f'<text x="{place}" y="{y + 11}" text-anchor="{anchor}" fill="{colour}" font-size="10" {halo}>'
        f"{escaped(arrow.detail)}{seconds}{outcome}</text>"
    )


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def escaped(text: str) -> str:
    return html.escape(without_controls(text))
