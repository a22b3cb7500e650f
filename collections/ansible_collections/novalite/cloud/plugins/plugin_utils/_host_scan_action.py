# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plug-ins that work on a host there, with the step of the same name, and on the ledger here."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import time
import typing as t

from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase

from ..module_utils._drift.host_scan import HOST_ARGUMENTS
from ..module_utils._drift.proofs import sights_of
from ..module_utils._errors import NovaliteError
from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._steps import host_drift, host_record, orphans
from ._handshake import Errand
from ._ledger_action import LedgerAction
from ._trip import TripAction


class HostLedgerAction(TripAction, LedgerAction):
    _requires_connection = True

    def host_name(self, task_vars: c.Mapping[str, t.Any]) -> str:
        return str(self._task.args.get("name") or super().host_name(task_vars))

    def options(self, tmp: str | None, task_vars: JsonObject | None) -> JsonObject:
        """The task's options, validated."""
        ActionBase.run(self, tmp, task_vars)
        self.check_types()
        return t.cast(JsonObject, self.validate_argument_spec(argument_spec=self.spec)[1])

    def ask_ledger(self, params: JsonMapping, where: JsonMapping) -> JsonObject:
        """The operation's result, or `failed` and `msg`. The ledger is `where`, and its URL, which holds a password, no
        business of the hypervisor: neither go there nor into what it answers."""
        try:
            result = self.operate({**params, **where})
        except NovaliteError as error:
            result = {"failed": True, "msg": str(error)}
        if not self._task.diff:
            result.pop("diff", None)
        return t.cast(JsonObject, remove_values(result, {where["ledger_url"]} if where["ledger_url"] else set()))


class HostRecord(HostLedgerAction):
    """Asks the ledger here what the host is to keep, and gives it to the step there."""

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


class HostScanAction(HostLedgerAction):
    """Looks at a host, then compares it with the ledger. In that order: an instance that is placed meanwhile is then in
    the ledger, and not taken for left over."""

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        params, task_vars = self.options(tmp, task_vars), task_vars or {}
        where = self.where(params, task_vars)
        arguments = {option: params[option] for option in HOST_ARGUMENTS}
        arguments["state_dir"] = self._task.args.get("state_dir") or self.state_dir(task_vars)
        began = time.monotonic()  # the same clock for all processes of this run
        result = params["look"] or {**self.run_on_host(self.name(), arguments, task_vars), "began": began}
        if result.get("failed") or "found" not in result:
            return result
        if params["look_only"]:
            sights = {uuid: vars(sight) for uuid, sight in sights_of(result["found"]).items()}
            return {**result, "seen": {"sights": sights, "volumes": result["found"]["volumes"]}}
        host = params["name"] or task_vars["inventory_hostname"]
        look = {"host": host, **{name: result[name] for name in ("began", "found")}}
        options = ("elsewhere", "rehearsal", "removed_days")
        look |= {name: params[name] for name in options if name in params}
        compared = self.ask_ledger({**arguments, **look}, where)
        return {"changed": False, "found": result["found"], **compared}


class HostDrift(HostScanAction):
    module = host_drift


class Orphans(HostScanAction):
    module = orphans
