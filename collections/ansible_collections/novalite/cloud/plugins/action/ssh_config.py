# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adds to the arguments how Ansible itself reaches the compute hosts, which only this side knows."""

from __future__ import annotations

import os

from ..module_utils._json import JsonObject
from ..module_utils._ssh.config import JUMP_VARIABLES
from ..modules import ssh_config
from ..plugin_utils._home import variable_text
from ..plugin_utils._ledger_action import LedgerAction


class ActionModule(LedgerAction):
    module = ssh_config

    def complete(self, params: JsonObject, task_vars: JsonObject) -> JsonObject:
        group = params["group"] or variable_text("novalite_compute_group", task_vars, self._templar) or "compute"
        hypervisors = {}
        for host in task_vars["groups"].get(group, []):
            of_host = task_vars["hostvars"][host]  # once: each look-up puts all variables of the host together
            hypervisors[host] = {name: of_host[name] for name in JUMP_VARIABLES if name in of_host}
        return {
            **params,
            "path": params["path"] or os.path.join(params["home"], "ssh_config"),
            "identity_file": params["identity_file"]
            or variable_text("novalite_identity_file", task_vars, self._templar),
            "hypervisors": hypervisors,
            "check_mode": self._task.check_mode,
        }
