# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies on a second host: whatever is cut off, the newest complete one is there, byte for byte."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from tests.support.patience import GENEROUS

REPOSITORY = pathlib.Path(__file__).parents[3]
SEEDS = range(8)  # of which some are cut off in each step


def play(seed: int, path: pathlib.Path) -> str:
    """Return what a sequence of copies came to."""
    done = subprocess.run(
        ["/usr/bin/python3", str(pathlib.Path(__file__).with_name("cut_off.py")), str(seed), str(path)],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "collections")},
        capture_output=True,
        text=True,
        timeout=GENEROUS,
        check=False,
    )
    return done.stdout.strip() or done.stderr


@pytest.mark.parametrize("seed", SEEDS)
def test_the_newest_complete_copy_is_there_wherever_one_was_cut_off(seed: int, tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o711)
    assert play(seed, tmp_path) == "sound"


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 160))
def test_the_newest_complete_copy_is_there_by_many_seeds(seed: int, tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o711)
    assert play(seed, tmp_path) == "sound"
