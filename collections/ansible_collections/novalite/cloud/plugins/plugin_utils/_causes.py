# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes of failed tasks, as screens show them: one line, of a bounded length."""

from __future__ import annotations

from ..module_utils._json import JsonMapping
from ..module_utils._model.plain_text import without_controls

LONGEST = 1000  # characters
_HIDDEN = "its output is hidden (no_log): the fault of the instance has the cause"


def cause_of(result: JsonMapping) -> str:
    """Return the cause of a task that failed with this `result`."""
    said = _HIDDEN if "censored" in result else result.get("msg") or result.get("module_stderr") or "no message"
    line = " ".join(without_controls(str(said), " ").split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 4]} ..."
