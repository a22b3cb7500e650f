# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Blocks of code as chapters print them: commands, files, what commands print, and what a mark keeps from being run."""

from __future__ import annotations

import dataclasses
import pathlib
import re
import typing as t

import yaml

ROOT = pathlib.Path(__file__).parents[3]
EXPECTED = pathlib.Path(__file__).with_name("expected.yml")

BLOCK = re.compile(r"(?m)^(?:<!-- not run: (?P<reason>[^>]+) -->\n)?```(?P<language>\w*)\n(?P<text>(?s:.*?))^```$")
NAME = re.compile(r"# ([\w.]+)\n")
PLACEHOLDERS = {
    "<uuid>": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "<host>": r"hv[12]",
    "<fixed ip>": r"10(?:\.\d+){3}",
    "<command>": r"ssh .+",
    "<key>": r"ssh-ed25519 .+",
}


@dataclasses.dataclass(frozen=True)
class Chapter:
    """Print of a page: `commands` without their comments, `files` by name, `outputs` of commands, and for each block
    that is not run the `reasons`."""

    commands: tuple[str, ...]
    files: t.Mapping[str, str]
    outputs: tuple[str, ...]
    reasons: tuple[str, ...]


def parsed(text: str) -> Chapter:
    """Return what a page prints. Raises ValueError for a block of a file that has no name."""
    commands: list[str] = []
    files: dict[str, str] = {}
    outputs, reasons = [], []
    for block in BLOCK.finditer(text):
        if block["reason"]:
            reasons.append(block["reason"])
        elif block["language"] == "text":
            outputs.append(block["text"])
        elif block["language"]:
            name = NAME.match(block["text"])
            if name is None:
                raise ValueError(f"begin the block with a line `# <name of the file>`:\n{block['text']}")
            files[name[1]] = block["text"]
        else:
            lines = block["text"].replace("\\\n", " ").splitlines()
            commands += [" ".join(re.sub(r"(^| )#.*", "", line).split()) for line in lines]
    return Chapter(tuple(filter(None, commands)), files, tuple(outputs), tuple(reasons))


def chapter(name: str) -> Chapter:
    """Return what README, or a chapter of docs/, prints."""
    return parsed((ROOT / ("README.md" if name == "README" else f"docs/{name}.md")).read_text())


def expected() -> dict[str, list[dict[str, t.Any]]]:
    """Return, for each chapter that is run, its commands with what comes of them."""
    return t.cast("dict[str, list[dict[str, t.Any]]]", yaml.safe_load(EXPECTED.read_text()))


def pattern(output: str) -> re.Pattern[str]:
    """Return the pattern of what commands print, for an `output` that a page prints: columns may be wider, `...` stands
    for lines, and `<uuid>` and its like for what is another one each time."""
    lines = []
    for line in output.splitlines():
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
            continue
        escaped = r"\s+".join(re.escape(word) for word in line.split())
        for placeholder, meaning in PLACEHOLDERS.items():
            escaped = escaped.replace(r"\s+".join(re.escape(word) for word in placeholder.split()), meaning)
        lines.append(rf"[ \t]*{escaped}[ \t]*\n")
    return re.compile("".join(lines))
