# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The actions of the steps in the ledger: that of all controller modules, and two that know more than the task says."""

from __future__ import annotations

import importlib
import typing as t

from ..module_utils._ledger_module import spec_of
from ..modules import ledger_step
from ._ledger_action import LedgerAction
from ._startup import Actions

SPEC = spec_of(ledger_step.DOCUMENTATION)
_OWN: t.Mapping[str, str] = {"launch_plan": "LaunchPlan", "stack_plan": "StackPlan"}
_OPERATIONS = f"{__package__.rpartition('.')[0]}.module_utils._ledger.steps"


def _action_of(step: str) -> type[LedgerAction]:
    if step in _OWN:
        return t.cast(
            "type[LedgerAction]", getattr(importlib.import_module(f"{__package__}._plan_step_actions"), _OWN[step])
        )
    return type(step, (LedgerAction,), {"module": importlib.import_module(f"{_OPERATIONS}.{step}")})


ACTIONS = Actions(SPEC["step"]["choices"], _action_of)
