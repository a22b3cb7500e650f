# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tells module disk_move who logs in to the host, where that is not root."""

from __future__ import annotations

from ..module_utils._json import JsonObject
from ..plugin_utils._trip import TripAction

LETS_IN = ("accepted", "closed")


class ActionModule(TripAction):
    """Action of one module call, with one question before it where Ansible becomes root."""

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        if self._connection.become is not None and arguments.get("state") in LETS_IN and arguments.get("moves"):
            answer = self._low_level_execute_command("id -un", sudoable=False)["stdout"]
            arguments.setdefault("login", str(answer).strip() or "root")
        return self.run_on_host("disk_move", arguments, task_vars)
