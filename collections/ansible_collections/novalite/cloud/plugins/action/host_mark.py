# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._ledger.placement.host_marks import HostMarks
from ..plugin_utils._handshake import Errand, Handshake
from ..plugin_utils._trip import TripAction


class ActionModule(TripAction):
    """Runs a trip for what is compared in each of them, or without it."""

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super().run(tmp, task_vars)
        if self._task.args.get("state") == "present":  # without a step: the comparison is all
            self.take([], task_vars)
            return {"changed": False}
        arguments = {key: value for key, value in self._task.args.items() if key not in ("home", "ledger_url")}
        return self.in_short(self.run_on_host("host_mark", arguments, task_vars), task_vars)

    def host_name(self, task_vars: c.Mapping[str, t.Any]) -> str:
        return str(self._task.args.get("name") or super().host_name(task_vars))

    def errand(self, steps: c.Sequence[JsonMapping], task_vars: c.Mapping[str, t.Any]) -> Errand:
        looks = self._task.args.get("state") != "present"
        return dataclasses.replace(super().errand(steps, task_vars), looks=looks, former=self._task.args.get("former"))

    def _marks(self, place: JsonMapping, task_vars: JsonObject) -> HostMarks | None:
        # who it is, is the question
        return None if self._task.args.get("state", "read") == "read" else super()._marks(place, task_vars)

    def _handshake(self, marks: HostMarks, steps: c.Sequence[JsonMapping], task_vars: JsonObject) -> Handshake | None:
        handshake = super()._handshake(marks, steps, task_vars)
        if handshake is not None:
            for step in steps:  # to remove a mark, the host has to know whose it is
                step["args"]["expected"] = step["given"]["expected"] = handshake.expected
        return handshake
