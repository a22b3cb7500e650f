# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gathers a host's facts there, with the module of the same name, then records them in the ledger here. Where the
ledger's are recent enough, the host is left alone."""

from __future__ import annotations

import ipaddress

from ansible.errors import AnsibleActionFail

from ..module_utils._json import JsonObject
from ..module_utils._libvirt import DEFAULT_URI
from ..modules import compute_host
from ..plugin_utils._host_scan_action import HostLedgerAction


def _address(name: str) -> str | None:
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        return None


class ActionModule(HostLedgerAction):
    module = compute_host

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        params, task_vars = self.options(tmp, task_vars), task_vars or {}
        where, name = self.where(params, task_vars), params["name"] or task_vars["inventory_hostname"]
        if params["state"] == "absent":
            return self.ask_ledger({"name": name, "state": "absent"}, where)
        # the policy is no business of the hypervisor, either
        asked = {**{option: params[option] for option in compute_host.FACT_ARGUMENTS}, "name": name}
        asked["state_dir"] = self._task.args.get("state_dir") or self.state_dir(task_vars)
        if params["tunnel_address"] and _address(params["tunnel_address"]) is None:
            raise AnsibleActionFail(f"tunnel_address {params['tunnel_address']!r} of {name} is no address")
        policy = {option: params[option] for option in compute_host.POLICY_ARGUMENTS if params[option] is not None}
        # for SimpleCIDRAffinityFilter's like; a name is left alone, for to look it up may take seconds
        address = _address(task_vars.get("ansible_host") or task_vars["inventory_hostname"])
        tunnel_address = params["tunnel_address"] or address
        said = {"address": address, "tunnel_address": tunnel_address, "antispoof": params["antispoof"]}
        if params["max_age"] > 0 and not params["room"] and asked["uri"] == DEFAULT_URI:
            chosen = {} if asked["domain_type"] == "auto" else {"domain_type": asked["domain_type"]}
            expected = {**policy, **said, **chosen, "state_dir": asked["state_dir"]}
            known = self.ask_ledger({"name": name, "max_age": params["max_age"], "said": expected}, where)
            if known.get("failed"):
                return known
            if known["fresh"]:
                return {"changed": False, "asked": False, "compute_host": known["fresh"], "policy": policy}
        result = {**self.run_on_host("compute_host", asked, task_vars), "asked": True}
        if result.get("failed") or "compute_host" not in result:
            return result
        result["compute_host"].update(said)
        result["policy"] = policy
        recorded = self.ask_ledger({"compute_hosts": [{**result["compute_host"], **policy}]}, where)
        recorded.pop("compute_hosts", None)  # this one, as the ledger has it
        return {**result, **recorded}
