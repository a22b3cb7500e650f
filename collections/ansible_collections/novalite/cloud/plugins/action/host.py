# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action of the modules whose work is on a host and that need no other: theirs are links to this file.

Not redirects in meta/runtime.yml, for the reason that ledger.py gives.
"""

from __future__ import annotations

from ..module_utils._json import JsonObject
from ..plugin_utils._trip import TripAction


class ActionModule(TripAction):
    """Runs one module, in a trip of its own."""

    _supports_async = True
    module = __name__.rpartition(".")[2]

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super().run(tmp, task_vars)
        return self.in_short(self.run_on_host(self.module, self._task.args, task_vars), task_vars)
