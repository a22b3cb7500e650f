# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names of tasks' operations, for callbacks: light, since these are loaded with every run."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from ansible.playbook.task import Task


def operation_name(task: Task) -> str:
    """The name of the task's module, without its collection, or of the step that it takes in the ledger."""
    name = str(task.action).rpartition(".")[2]
    return str(task.args.get("step")) if name == "ledger_step" else name
