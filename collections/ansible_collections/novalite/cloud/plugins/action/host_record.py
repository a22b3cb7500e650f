# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase

from ..module_utils._drift.host_scan import HOST_ARGUMENTS
from ..module_utils._errors import NovaliteError
from ..module_utils._ledger_module import run_operation
from ..modules import host_record
from ..plugin_utils import _home
from ..plugin_utils._ledger_action import LedgerAction


class ActionModule(LedgerAction):
    """Asks the ledger here what the host is to keep, and gives it to the module there."""

    module = host_record
    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        ActionBase.run(self, tmp, task_vars)
        task_vars = task_vars or {}
        _validated, params = self.validate_argument_spec(
            argument_spec=host_record.ARGUMENT_SPEC, **host_record.SPEC_RULES
        )
        # the ledger's URL, which holds a password, is no business of the hypervisor
        asked = {option: params[option] for option in (*HOST_ARGUMENTS, "state")}
        if params["state"] == "present":
            if self._task.check_mode:
                return {"changed": False, "written": []}  # what is written is a copy of the ledger, and no difference
            if self.operation is None:
                raise AnsibleActionFail(self.missing)
            where = _home.ledger(params, task_vars, self._templar)
            try:
                host = params["name"] or task_vars["inventory_hostname"]
                kept = run_operation(self.operation, {**where, "host": host}, False)
            except NovaliteError as error:
                secrets = {where["ledger_url"]} if where["ledger_url"] else set()
                return {"failed": True, "msg": remove_values(str(error), secrets)}
            asked |= kept
        return self._execute_module(module_name="novalite.cloud.host_record", module_args=asked, task_vars=task_vars)
