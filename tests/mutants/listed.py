# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The mutants that mutants.yml lists."""

from __future__ import annotations

import dataclasses
import pathlib

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "tests/mutants/mutants.yml"
ROOMS = "collections/ansible_collections/novalite/cloud/plugins/module_utils"


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A wrong line: `new` in place of `old`, which stands once in `file`. The nearest `tests` must notice it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def mutants() -> list[Mutant]:
    return [
        Mutant(
            name=entry["name"],
            file=entry["file"] if entry["file"].startswith("api/") else f"{ROOMS}/{entry['file']}",
            old=entry["old"],
            new=entry["new"],
            tests=tuple(f"tests/{path}" for path in entry["tests"]),
        )
        for entry in yaml.safe_load(LIST.read_text())
    ]
