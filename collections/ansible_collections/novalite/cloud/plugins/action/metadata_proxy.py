# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Derives the host's key on the controller, then runs the module of the same name on the host with it."""

from __future__ import annotations

from ..module_utils._errors import NovaliteError
from ..module_utils._json import JsonObject
from ..plugin_utils._step_actions import with_key
from ..plugin_utils._trip import TripAction


class ActionModule(TripAction):
    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super().run(tmp, task_vars)
        args = self._task.args
        if not args.get("networks") and not args.get("bridges"):
            return {"changed": False}  # nothing to ask the host for
        try:
            args = with_key(args, task_vars or {}, self._templar, self._task.check_mode)
        except NovaliteError as error:
            return {"failed": True, "msg": str(error)}
        return self.in_short(self.run_on_host("metadata_proxy", args, task_vars), task_vars)
