# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ..module_utils._drift.host_scan import HOST_ARGUMENTS
from ..module_utils._json import JsonMapping, JsonObject
from ..modules import host_record
from ..plugin_utils._handshake import Errand
from ..plugin_utils._host_scan_action import HostLedgerAction


class ActionModule(HostLedgerAction):
    """Asks the ledger here what the host is to keep, and gives it to the module there."""

    module = host_record

    def errand(self, steps: c.Sequence[JsonMapping], task_vars: c.Mapping[str, t.Any]) -> Errand:
        # what a host keeps is asked for because the ledger is older
        return dataclasses.replace(super().errand(steps, task_vars), any_mark=self._task.args.get("state") == "read")

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        params, task_vars = self.options(tmp, task_vars), task_vars or {}
        arguments = {option: params[option] for option in (*HOST_ARGUMENTS, "state")}
        if params["state"] == "present":
            if self._task.check_mode:
                return {"changed": False, "written": []}  # what is written is a copy of the ledger, and no difference
            host = params["name"] or task_vars["inventory_hostname"]
            kept = self.ask_ledger({"host": host}, self.where(params, task_vars))
            if kept.get("failed"):
                return kept
            arguments |= kept
        return self.run_on_host("host_record", arguments, task_vars)
