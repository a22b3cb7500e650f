# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Takes noVNC and xterm.js, which tools/fetch-web has put into .cache/web, into what is built."""

from __future__ import annotations

import pathlib
import typing as t

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACES = {"wheel": "novalite_api/dashboard/packages", "sdist": "api/dashboard/packages"}


class CustomBuildHook(BuildHookInterface[t.Any]):
    def initialize(self, version: str, build_data: dict[str, t.Any]) -> None:
        root = pathlib.Path(self.root)
        # an editable installation finds them where they are; a source distribution has them in their place
        if version == "editable" or (root / PLACES["sdist"]).exists():
            return
        fetched = root / ".cache/web"
        if not fetched.is_dir():
            raise SystemExit(f"{fetched} is missing: run tools/fetch-web, which takes noVNC and xterm.js from npm")
        for path in sorted(path for path in fetched.rglob("*") if path.is_file() and path.name != ".package"):
            build_data["force_include"][str(path)] = f"{PLACES[self.target_name]}/{path.relative_to(fetched)}"
