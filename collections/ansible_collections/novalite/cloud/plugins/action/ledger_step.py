# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy

from ansible.errors import AnsibleActionFail
from ansible.module_utils.basic import missing_required_lib
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase

from ..module_utils._json import JsonObject

MISSING = None
try:
    from ..plugin_utils._ledger_step_actions import ACTIONS, SPEC
except ImportError as error:
    MISSING = missing_required_lib(error.name or "SQLAlchemy")


class ActionModule(ActionBase):
    """Takes one step, as a controller module of its name would run."""

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super().run(tmp, task_vars)
        if MISSING is not None:
            raise AnsibleActionFail(MISSING)
        args = self._task.args.get("args") or {}
        # the step checks its own: to check them here, too, would copy the plans of a whole cloud
        validated = ArgumentSpecValidator(SPEC).validate({**self._task.args, "args": {}})
        if validated.error_messages:
            raise AnsibleActionFail("; ".join(validated.error_messages))
        if not isinstance(args, dict):
            raise AnsibleActionFail(f"args of the step {self._task.args['step']}: give a dictionary of its options")
        params = validated.validated_parameters
        task = copy.copy(self._task)  # with `until`, Ansible runs this again, on the same task
        task.args = {**{name: params[name] for name in ("home", "ledger_url") if params[name]}, **args}
        parts = (self._connection, self._play_context, self._loader, self._templar, self._shared_loader_obj)
        return ACTIONS[params["step"]](task, *parts).run(tmp, task_vars)
