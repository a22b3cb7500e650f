# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Production is installed from requirements.lock: it has all that pyproject.toml asks for, with hashes."""

from __future__ import annotations

import pathlib
import re

import tomllib
from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).parents[2]


def test_the_lock_has_what_is_asked_for() -> None:
    entries = re.split(r"\n(?=\S)", (ROOT / "requirements.lock").read_text().strip())
    assert all("--hash=sha256:" in entry for entry in entries)
    locked: dict[str, set[str]] = {}
    for entry in entries:
        pinned = Requirement(entry.split(" \\", 1)[0])
        (version,) = pinned.specifier
        assert version.operator == "==", entry
        locked.setdefault(pinned.name.lower().replace("_", "-"), set()).add(version.version)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for text in [*project["dependencies"], *project["optional-dependencies"]["postgresql"]]:
        asked = Requirement(text)
        versions = locked.get(asked.name.lower(), set())
        assert versions and all(asked.specifier.contains(version) for version in versions), f"{text}: run `make lock`"
