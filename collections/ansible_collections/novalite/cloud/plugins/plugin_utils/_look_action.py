# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The base of action plug-ins that look at a host there, with the module of the same name, then compare it here.

In that order: an instance that is placed meanwhile is then in the ledger, and not taken for left over.
"""

from __future__ import annotations

import time
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase

from ..module_utils._drift.host_scan import HOST_ARGUMENTS
from ..module_utils._errors import NovaliteError
from ..module_utils._ledger_module import run_operation
from . import _home
from ._ledger_action import LedgerAction
from ._trip import TripAction


class LookAction(TripAction, LedgerAction):
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        ActionBase.run(self, tmp, task_vars)
        task_vars = task_vars or {}
        spec, rules = self.module.ARGUMENT_SPEC, self.module.SPEC_RULES
        _validated, params = self.validate_argument_spec(argument_spec=spec, **rules)
        if self.operation is None:
            raise AnsibleActionFail(self.missing)
        ledger = _home.ledger(params, task_vars, self._templar)
        secrets = {ledger["ledger_url"]} if ledger["ledger_url"] else set()
        # the ledger's URL, which holds a password, is no business of the hypervisor
        asked = {option: params[option] for option in HOST_ARGUMENTS}
        asked["state_dir"] = self._task.args.get("state_dir") or self.state_dir(task_vars)
        since = int(time.time())
        result = self.run_on_host(self.module.__name__.rpartition(".")[2], asked, task_vars)
        if result.get("failed") or "found" not in result:
            return result
        asked_for = {**asked, "host": params["name"] or task_vars["inventory_hostname"], "since": since}
        try:
            compared = run_operation(
                self.operation, {**asked_for, "found": result["found"], **ledger}, self._task.check_mode
            )
        except NovaliteError as error:
            return {**result, "failed": True, "msg": remove_values(str(error), secrets)}
        if not self._task.diff:
            compared.pop("diff", None)
        return remove_values({**result, **compared}, secrets)
