# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy

from ..module_utils._json import JsonObject
from ..modules import host_step
from ..plugin_utils._step_actions import ACTIONS
from ..plugin_utils._trip import TripAction


class ActionModule(TripAction):
    """Runs one step, in a trip of its own."""

    _supports_async = True

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super().run(tmp, task_vars)
        _validated, params = self.validate_argument_spec(argument_spec=host_step.ARGUMENT_SPEC)
        if params["step"] not in ACTIONS:
            return self.in_short(self.run_on_host(params["step"], params["args"], task_vars), task_vars)
        action, task = ACTIONS[params["step"]], copy.copy(self._task)  # with `until`, this is run again with its task
        taken = getattr(action, "spec", ())
        ledger = {name: params[name] for name in ("home", "ledger_url") if params[name] and name in taken}
        task.args = {**ledger, **params["args"]}
        parts = (self._connection, self._play_context, self._loader, self._templar, self._shared_loader_obj)
        return self.in_short(action(task, *parts).run(tmp, task_vars), task_vars)
