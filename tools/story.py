# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draw the pictures of docs/from-nova.md into a directory, from runs that docs/recorded holds.

`python -m tools.story DIRECTORY` draws them, `python -m tools.story heads` prints the steps of the recorded launch,
which the scenario `default` compares with those of a launch that really happens.
"""

from __future__ import annotations

import html
import json
import pathlib
import re
import sys
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._graph import call_diagram, overview
from ansible_collections.novalite.cloud.plugins.plugin_utils import _explain

RECORDED = pathlib.Path(__file__).parents[1] / "docs/recorded"
COLUMNS = 132
_LINE, _CHARACTER, _SIZE = 15, 7.25, 12  # pixels


def recorded(name: str) -> t.Any:
    return json.loads((RECORDED / f"{name}.json").read_text())


def explained() -> list[str]:
    """The lines of the recorded launch."""
    return _explain.story(recorded("launch")["events"])


def heads(lines: t.Iterable[str]) -> list[str]:
    """The steps that lines of explain tell, without hosts and seconds."""
    return [line.partition(" -> ")[0] for line in lines if re.match(r"\[[ \d-]{2}\] ", line)]


def walked(lines: t.Iterable[str]) -> list[str]:
    """The chains that lines of a trace name, without hosts and the numbers of instances and groups."""
    chains = [match[1] for line in lines if (match := re.match(r"  \S+  \w+ (\S+): ", line))]
    return [re.sub(r"\d+$", "N", chain) for chain in chains]


def text_picture(lines: t.Sequence[str]) -> str:
    """An SVG of lines as a terminal shows them; what is too long goes on in the next line."""
    shown: list[str] = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        shown.append(line[:COLUMNS])
        rest = line[COLUMNS:]
        while rest:
            shown.append(indent + rest[: COLUMNS - len(indent)])
            rest = rest[COLUMNS - len(indent) :]
    width, height = int(COLUMNS * _CHARACTER) + 24, _LINE * len(shown) + 20
    rows = "".join(
        f'<text x="12" y="{_LINE * number + 22}"{_weight(line)} xml:space="preserve">{html.escape(line)}</text>\n'
        for number, line in enumerate(shown)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="DejaVu Sans Mono,monospace" font-size="{_SIZE}">\n'
        f'<rect width="{width}" height="{height}" fill="#fafafa"/>\n{rows}</svg>\n'
    )


def _weight(line: str) -> str:
    return ' font-weight="bold"' if line.startswith(("[", "-")) else ""


def _part(*operations: str) -> t.Any:
    """The recorded launch with these of its calls alone."""
    launch = recorded("call_diagram")
    return {**launch, "calls": [call for call in launch["calls"] if call["operation"] in operations]}


def pictures() -> dict[str, str]:
    """The pictures by the names of their files."""
    return {
        "explain.svg": text_picture(explained()),
        "overview.svg": overview.svg(recorded("call_diagram")),
        "call_diagram.svg": call_diagram.svg(recorded("call_diagram")),
        "cast.svg": call_diagram.svg(_part("request", "server", "host_steps")),
        "call.svg": call_diagram.svg(_part("server", "scheduler", "fixed_ip")),
        "trace.svg": text_picture(recorded("trace")["msg"]),
    }


def main() -> None:
    (argument,) = sys.argv[1:]
    if argument == "heads":
        print("\n".join(heads(explained())))
        return
    directory = pathlib.Path(argument)
    directory.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures().items():
        (directory / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
