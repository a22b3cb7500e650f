# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Derives the host's key on the controller, then runs the module of the same name on the host with it."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ..module_utils._errors import NovaliteError
from ..module_utils._guest.signature import host_key
from ..module_utils._secret_file import ensure_secret, read_secret, secret_path
from ..modules import metadata_proxy
from ..plugin_utils import _home


class ActionModule(ActionBase):
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        task_vars = task_vars or {}
        _validated, params = self.validate_argument_spec(
            argument_spec=metadata_proxy.ARGUMENT_SPEC, **metadata_proxy.SPEC_RULES
        )
        if not params["networks"] and not params["bridges"]:
            return {"changed": False}  # nothing to ask the host for
        params["host"] = params["host"] or task_vars["inventory_hostname"]
        # where the secret lies is no business of the hypervisor
        home = _home.home(params["home"], task_vars, self._templar)
        params["home"] = params["key"] = None
        if params["state"] == "present":
            try:
                params["key"] = self._key(secret_path(home), params["host"])
            except NovaliteError as error:
                return {"failed": True, "msg": str(error)}
        return self._execute_module(
            module_name="novalite.cloud.metadata_proxy", module_args=params, task_vars=task_vars
        )

    def _key(self, path: str, host: str) -> str:
        # a check makes no file; what it shows of the key then says only that there will be one
        secret = read_secret(path) or bytes(32) if self._task.check_mode else ensure_secret(path)
        return host_key(secret, host).hex()
