# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gathers a host's facts there, with the module of the same name, then records them in the ledger here."""

from __future__ import annotations

import ipaddress
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase

from ..module_utils._errors import NovaliteError
from ..module_utils._ledger_module import run_operation
from ..modules import compute_host
from ..plugin_utils import _home
from ..plugin_utils._ledger_action import LedgerAction
from ..plugin_utils._trip import TripAction


def _address(name: str) -> str | None:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return None


class ActionModule(TripAction, LedgerAction):
    module = compute_host

    _requires_connection = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        ActionBase.run(self, tmp, task_vars)
        task_vars = task_vars or {}
        _validated, params = self.validate_argument_spec(
            argument_spec=compute_host.ARGUMENT_SPEC, **compute_host.SPEC_RULES
        )
        if self.operation is None:
            raise AnsibleActionFail(self.missing)
        ledger = _home.ledger(params, task_vars, self._templar)
        secrets = {ledger["ledger_url"]} if ledger["ledger_url"] else set()
        if params["state"] == "absent":
            gone = {"name": params["name"] or task_vars["inventory_hostname"], "state": "absent", **ledger}
            return remove_values(self._forget(gone), secrets)
        asked = {option: params[option] for option in compute_host.FACT_ARGUMENTS}
        asked["name"] = asked["name"] or task_vars["inventory_hostname"]
        asked["state_dir"] = self._task.args.get("state_dir") or self.state_dir(task_vars)
        # Neither the ledger's URL, which holds a password, nor the policy is any business of the hypervisor.
        result = self.run_on_host("compute_host", asked, task_vars)
        if result.get("failed") or "compute_host" not in result:
            return result
        if params["tunnel_address"] and _address(params["tunnel_address"]) is None:
            raise AnsibleActionFail(f"tunnel_address {params['tunnel_address']!r} of {asked['name']} is no address")
        policy = {option: params[option] for option in compute_host.POLICY_ARGUMENTS if params[option] is not None}
        # for SimpleCIDRAffinityFilter's like; a name is left alone, for to look it up may take seconds
        result["compute_host"]["address"] = _address(task_vars.get("ansible_host") or task_vars["inventory_hostname"])
        result["compute_host"]["tunnel_address"] = params["tunnel_address"] or result["compute_host"]["address"]
        result["compute_host"]["antispoof"] = params["antispoof"]
        result["policy"] = policy
        entry = {**result["compute_host"], **policy}
        try:
            recorded = run_operation(self.operation, {"compute_hosts": [entry], **ledger}, self._task.check_mode)
        except NovaliteError as error:
            return {**result, "failed": True, "msg": remove_values(str(error), secrets)}
        result["changed"] = recorded["changed"]
        if self._task.diff and "diff" in recorded:
            result["diff"] = recorded["diff"]
        return remove_values(result, secrets)

    def _forget(self, gone: dict[str, t.Any]) -> dict[str, t.Any]:
        try:
            result = run_operation(self.operation, gone, self._task.check_mode)
        except NovaliteError as error:
            return {"failed": True, "msg": str(error)}
        if not self._task.diff:
            result.pop("diff", None)
        return result
