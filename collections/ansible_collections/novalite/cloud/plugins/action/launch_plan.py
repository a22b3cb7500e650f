# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans a launch in the ledger, after a look at what the inventory says of the hosts that it may choose from."""

from __future__ import annotations

from ..module_utils._json import JsonObject
from ..modules import launch_plan
from ..plugin_utils import _host_expectations
from ..plugin_utils._ledger_action import LedgerAction


class ActionModule(LedgerAction):
    module = launch_plan

    def complete(self, params: JsonObject, task_vars: JsonObject) -> JsonObject:
        if params["hosts"] is None or not params["instances"]:
            return params
        reach = task_vars.get("novalite_limit")  # see LedgerAction
        names = [name for name in params["hosts"] if reach is None or name in reach]
        return {**params, "expected": _host_expectations.of_hosts(names, task_vars, self._templar, self._loader)}
