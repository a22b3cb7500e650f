# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Draws docs/ha-states.svg, the states of a watched host, from their table. Run `python -m tools.ha_picture`."""

from __future__ import annotations

import pathlib
import subprocess

from ansible_collections.novalite.cloud.plugins.module_utils._healing import states

PICTURE = pathlib.Path(__file__).parents[1] / "docs/ha-states.svg"


def main() -> None:
    drawn = subprocess.run(["dot", "-Tsvg"], input=states.dot(), capture_output=True, text=True, check=True)
    PICTURE.write_text(drawn.stdout)


if __name__ == "__main__":
    main()
