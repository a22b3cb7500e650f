# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real launch of an instance in the article's overview: five components and eight numbered arrows. Pure.

What the arrows are here, and how long each took, stands below them. Of several attempts it is the last one's.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .._json import JsonMapping
from .call_diagram import FONT, KINDS, Arrow, arrows, dashed, escaped, marker
from .launch_steps import JOB, REQUEST, TAKEN, TRIP

_WIDE, _BOX, _TALL, _ROW = 900, 150, 40, 18  # pixels
_API, _CLOUD, _SCHEDULER, _COMPUTE, _NETWORK = (
    "API server",
    "cloud controller",
    "scheduler",
    "compute worker",
    "network controller",
)
_PLACES = {  # the middle of each box
    _API: (100, 150),
    _CLOUD: (320, 150),
    _SCHEDULER: (560, 90),
    _COMPUTE: (800, 150),
    _NETWORK: (560, 210),
}


@dataclasses.dataclass(frozen=True)
class _Part:
    """Arrows of the article with these `numbers`, between two boxes; `operation` is what they are here."""

    numbers: str
    caller: str
    callee: str
    operation: str
    meaning: str


_PARTS = (
    _Part("1", _API, _CLOUD, REQUEST, "run_instances goes to the cloud controller"),
    _Part("2", _CLOUD, _SCHEDULER, TAKEN, "rpc.cast to the scheduler"),
    _Part("3", _SCHEDULER, _COMPUTE, "scheduler", "rpc.cast to the host that was chosen"),
    _Part("4", _COMPUTE, _COMPUTE, TRIP, "the compute worker takes the message: run_instance"),
    _Part("5, 6", _COMPUTE, _NETWORK, "fixed_ip", "rpc.call for a fixed IP"),
    _Part("7, 8", _NETWORK, _COMPUTE, "fixed_ip", "its answer"),
)


def svg(launch: JsonMapping) -> str:
    """The picture of a launch, which is as call_diagram.svg() takes it."""
    made = {arrow.detail.partition(" ")[0]: arrow for arrow in arrows(launch)}
    if TAKEN not in made and "server" in made:  # without a job, the run that records the request goes on with it
        made[TAKEN] = made["server"]
    height = 270 + _ROW * (len(_PARTS) + 1)
    title = f"overview of the launch of {launch['name']} ({launch['uuid']})"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDE}" height="{height}" '
        f'viewBox="0 0 {_WIDE} {height}" {FONT} font-size="11">',
        f"<title>{escaped(title)}</title>",
        f"<defs>{''.join(marker(kind, colour) for kind, (colour, _dashes) in KINDS.items())}</defs>",
        f'<rect width="{_WIDE}" height="{height}" fill="white"/>',
        f'<text x="12" y="22" font-size="15" font-weight="bold">{escaped(title)}</text>',
    ]
    for number, part in enumerate(_PARTS):
        arrow = made.get(part.operation)
        parts += _arrow(part, arrow.kind if arrow else JOB)
        parts.append(f'<text x="12" y="{270 + _ROW * number}">{escaped(_words(part, arrow))}</text>')
    for name in _PLACES:
        parts += _box(name, str(launch["host"] or "") if name == _COMPUTE else "")
    return "\n".join([*parts, "</svg>", ""])


def _words(part: _Part, arrow: Arrow | None) -> str:
    text = f"({part.numbers}) {part.meaning}"
    if arrow is None:
        return f"{text}: not in this launch"
    return f"{text}: here {arrow.detail}, {arrow.kind}, at +{arrow.began:.3f} s, {arrow.seconds:.3f} s"


def _arrow(part: _Part, kind: str) -> t.Iterator[str]:
    colour, dashes = KINDS[kind]
    stroke = f'fill="none" stroke="{colour}"{dashed(dashes)} stroke-width="1.6" marker-end="url(#{kind})"'
    (x, y), (to_x, to_y) = _PLACES[part.caller], _PLACES[part.callee]
    if part.caller == part.callee:
        yield f'<path d="M{x - 20} {y - _TALL // 2} v-18 h40 v16" {stroke}/>'
        label = (x, y - _TALL // 2 - 24)
    else:
        side = 1 if to_x > x else -1
        shift = 8 * side if part.caller in (_COMPUTE, _NETWORK) else 0  # there and back beside each other
        x, to_x = x + side * _BOX // 2, to_x - side * _BOX // 2
        yield f'<line x1="{x}" y1="{y + shift}" x2="{to_x}" y2="{to_y + shift}" {stroke}/>'
        label = ((x + to_x) // 2, (y + to_y) // 2 + shift + (-6 if shift <= 0 else 14))
    halo = 'paint-order="stroke" stroke="white" stroke-width="4" stroke-linejoin="round"'
    yield f'<text x="{label[0]}" y="{label[1]}" text-anchor="middle" font-weight="bold" {halo}>{part.numbers}</text>'


def _box(name: str, host: str) -> t.Iterator[str]:
    x, y = _PLACES[name]
    yield (
        f'<rect x="{x - _BOX // 2}" y="{y - _TALL // 2}" width="{_BOX}" height="{_TALL}" rx="4" '
        f'fill="#e9eef3" stroke="#8aa0b4"/>'
        f'<text x="{x}" y="{y + (-2 if host else 4)}" text-anchor="middle" font-weight="bold">{escaped(name)}</text>'
    )
    if host:
        yield f'<text x="{x}" y="{y + 13}" text-anchor="middle" fill="#444444">{escaped(host[:22])}</text>'
