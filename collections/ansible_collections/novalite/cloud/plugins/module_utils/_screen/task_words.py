# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of tasks' operations and causes of failures, for callbacks: light, since these are loaded with every run."""

from __future__ import annotations

import typing as t

from .._json import JsonMapping
from .._model.plain_text import shortened, without_controls


class Task(t.Protocol):
    """Attributes of Ansible's task that are asked here: files of modules may not import the controller's classes."""

    @property
    def action(self) -> str: ...

    @property
    def args(self) -> t.Mapping[str, object]: ...


LONGEST = 1000  # characters of a cause
_HIDDEN = "its output is hidden (no_log): the fault of the instance has the cause"


def operation_name(task: Task) -> str:
    """The name of the task's module, without its collection, or of the step that it takes in the ledger."""
    name = str(task.action).rpartition(".")[2]
    return str(task.args.get("step")) if name == "ledger_step" else name


def cause_of(result: JsonMapping) -> str:
    """Return the cause of a task that failed with this `result`, as screens show it: one line, of a bounded length."""
    said = _HIDDEN if "censored" in result else result.get("msg") or result.get("module_stderr") or "no message"
    return shortened(" ".join(without_controls(str(said), " ").split()), LONGEST)
