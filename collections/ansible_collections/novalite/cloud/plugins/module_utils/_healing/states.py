# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""States of a host between its life, its proven death and its return, and the events that lead from one to another.

The table is the whole of it: what is not in it cannot happen, and docs/architecture.md shows it.
"""

from __future__ import annotations

import dataclasses

UP = "up"  # it answers, or nothing is known against it
SUSPECT = "suspect"  # a look got no answer
FENCING = "fencing"  # evidence of two kinds: its death is being made sure
FENCED = "fenced"  # a proof of its death is recorded, with its epoch
EVACUATING = "evacuating"  # its guests get places on other hosts
EMPTY = "empty"  # no guest waits any more
BACK = "back"  # it answers again, and gives up what was recorded as moved
STATES = (UP, SUSPECT, FENCING, FENCED, EVACUATING, EMPTY, BACK)

PROVEN = frozenset((FENCED, EVACUATING, EMPTY))


@dataclasses.dataclass(frozen=True)
class Edge:
    """Change of state that an event makes; `raises` tells that a new epoch begins with it."""

    source: str
    event: str
    target: str
    raises: bool = False


EDGES = (
    Edge(UP, "silence", SUSPECT),
    Edge(BACK, "silence", SUSPECT),
    Edge(SUSPECT, "answer", UP),
    Edge(SUSPECT, "answer, with guests to give up", BACK),
    Edge(SUSPECT, "evidence of two kinds", FENCING, raises=True),
    Edge(SUSPECT, "word of a person", FENCED, raises=True),
    Edge(FENCING, "answer", UP),
    Edge(FENCING, "answer, with guests to give up", BACK),
    Edge(FENCING, "sign of life", SUSPECT),
    Edge(FENCING, "proof of death", FENCED),
    Edge(FENCING, "word of a person", FENCED),
    Edge(FENCED, "start of the evacuation", EVACUATING),
    Edge(EVACUATING, "end of the evacuation", EMPTY),
    Edge(EVACUATING, "word of a person", FENCED),
    Edge(EMPTY, "word of a person", FENCED),
    Edge(EMPTY, "guest that waits", EVACUATING),
    Edge(FENCED, "answer", BACK),
    Edge(EVACUATING, "answer", BACK),
    Edge(EMPTY, "answer", BACK),
    Edge(BACK, "guests given up", UP),
)
_BY_EVENT = {(edge.source, edge.event): edge for edge in EDGES}


def edge(state: str, event: str) -> Edge:
    """Return the edge that `event` takes from `state`; KeyError when the table has none."""
    return _BY_EVENT[state, event]


def table() -> str:
    """Return the edges as a table in Markdown."""
    rows = [f"| {edge.source} | {edge.event} | {edge.target}{', in a new epoch' * edge.raises} |" for edge in EDGES]
    return "\n".join(["| from | event | to |", "|---|---|---|", *rows])


def dot() -> str:
    """Return the edges as a picture in graphviz's language; edges between two states are one arrow."""
    labels: dict[tuple[str, str], list[str]] = {}
    for edge in EDGES:
        label = f"{edge.event} (new epoch)" if edge.raises else edge.event
        labels.setdefault((edge.source, edge.target), []).append(label)
    arrows = []
    for (source, target), words in labels.items():
        label = "\\n".join(words)
        arrows.append(f'  {source} -> {target} [label="{label}"];')
    proven = [f"  {state} [style=filled, fillcolor=lightgrey];" for state in STATES if state in PROVEN]
    head = ["digraph states {", "  node [shape=box, fontname=Helvetica];", "  edge [fontname=Helvetica, fontsize=10];"]
    return "\n".join([*head, *proven, *arrows, "}\n"])
