# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs module image_cache once when everything is cached; pushes what is not, and runs it again."""

from __future__ import annotations

from ..module_utils._json import JsonObject
from ..plugin_utils import _home
from ..plugin_utils._image_push import MODULE, ImageAction


class ActionModule(ImageAction):
    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super().run(tmp, task_vars)
        args = self._task.args
        task_vars = task_vars or {}
        steps = self.waiting(task_vars)
        with self.alive(_home.ledger(args, task_vars, self._templar), steps):
            result = self.run_on_host(MODULE, args, task_vars)
        return self.in_short(self.bring(args, result, task_vars, steps), task_vars)
