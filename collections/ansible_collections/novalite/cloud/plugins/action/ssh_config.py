# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Adds to the arguments how Ansible itself reaches the compute hosts, which only this side knows."""

from __future__ import annotations

import dataclasses
import os

from ansible import constants as C

from ..module_utils._json import JsonObject
from ..module_utils._ssh.way_in import VARIABLES, WITHOUT_OPTION, way_in
from ..modules import ssh_config
from ..plugin_utils._home import variable_text
from ..plugin_utils._ledger_action import LedgerAction

# The options of Ansible's connection by ssh that ansible.cfg, its environment or its command line may set for all hosts
CONFIGURED = {
    "port": "ansible_port",
    "remote_user": "ansible_user",
    "private_key_file": "ansible_private_key_file",
    "host_key_checking": "ansible_host_key_checking",
    "ssh_args": "ansible_ssh_args",
    "ssh_common_args": "ansible_ssh_common_args",
    "ssh_extra_args": "ansible_ssh_extra_args",
    "pkcs11_provider": "ansible_ssh_pkcs11_provider",
}


def _configured() -> JsonObject:
    """The variables by which a host would say what the configuration says of all."""
    settings = {
        variable: C.config.get_config_value(option, plugin_type="connection", plugin_name="ssh")
        for option, variable in CONFIGURED.items()
    }
    return {variable: value for variable, value in settings.items() if value not in (None, "")}


class ActionModule(LedgerAction):
    module = ssh_config

    def complete(self, params: JsonObject, task_vars: JsonObject) -> JsonObject:
        group = params["group"] or variable_text("novalite_compute_group", task_vars, self._templar) or "compute"
        ways = {}
        configured = _configured()
        for host in task_vars["groups"].get(group, []):
            of_host = task_vars["hostvars"][host]  # once: each look-up puts all variables of the host together
            own = {name: of_host[name] for name in (*VARIABLES, *WITHOUT_OPTION) if name in of_host}
            way = way_in({**configured, **own})
            ways[host] = dataclasses.asdict(way)
            if way.dropped:
                self._display.warning(f"{host}: the ssh_config for guests has no option for {', '.join(way.dropped)}")
        return {
            **params,
            "path": params["path"] or os.path.join(params["home"], "ssh_config"),
            "identity_file": params["identity_file"]
            or variable_text("novalite_identity_file", task_vars, self._templar),
            "ways": ways,
            "check_mode": self._task.check_mode,
        }
