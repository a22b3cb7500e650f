# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gathers a host's facts there, with the module of the same name, then records them in the ledger here."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import time
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean

from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._model import cpu_mode
from ..modules import compute_host
from ..plugin_utils import _host_expectations
from ..plugin_utils._handshake import Errand
from ..plugin_utils._host_scan_action import HostLedgerAction


class ActionModule(HostLedgerAction):
    module = compute_host

    def errand(self, steps: c.Sequence[JsonMapping], task_vars: c.Mapping[str, t.Any]) -> Errand:
        replaced = boolean(self._task.args.get("replaced", False))
        return dataclasses.replace(super().errand(steps, task_vars), replaced=replaced)

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        params, task_vars = self.options(tmp, task_vars), task_vars or {}
        where, name = self.where(params, task_vars), params["name"] or task_vars["inventory_hostname"]
        if params["state"] == "absent":
            return self.ask_ledger({"name": name, "state": "absent"}, where)
        # the policy is no business of the hypervisor, either
        arguments = {**{option: params[option] for option in compute_host.FACT_ARGUMENTS}, "name": name}
        arguments["state_dir"] = self._task.args.get("state_dir") or self.state_dir(task_vars)
        tunnel_address = params["tunnel_address"]
        if tunnel_address and _host_expectations.address_or_none(tunnel_address) is None:
            raise AnsibleActionFail(f"tunnel_address {tunnel_address!r} of {name} is not an address")
        if (fault := cpu_mode.fault_of(params)) is not None:
            raise AnsibleActionFail(f"{name}: {fault}")
        policy = _host_expectations.policy_of(params)
        facts = _host_expectations.controllers_facts(
            params, task_vars.get("ansible_host") or task_vars["inventory_hostname"]
        )
        began = time.time()
        result = self.run_on_host("compute_host", arguments, task_vars)
        if result.get("failed") or "compute_host" not in result:
            return self.in_short(result, task_vars)
        clock = result.pop("clock", None)
        if clock is not None and (ahead := _host_expectations.clock_ahead(clock, began, time.time())):
            facts["clock_ahead"] = ahead
        result["compute_host"].update(facts)
        result["policy"] = policy
        entry = {**result["compute_host"], **policy, "replaced": params["replaced"]}
        recorded = self.ask_ledger({"compute_hosts": [entry]}, where)
        recorded.pop("compute_hosts", None)  # this one, as the ledger has it
        return self.in_short({**result, **recorded}, task_vars)
