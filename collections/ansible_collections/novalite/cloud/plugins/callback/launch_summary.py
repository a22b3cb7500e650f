# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Print after everything else what a run came to: a plan, differences, ways to log in, or why it failed."""

from __future__ import annotations

DOCUMENTATION = r"""
name: launch_summary
type: aggregate
short_description: Prints a plan, differences, a READY line for each launched instance, or a FAILED line for each cause
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - Remembers what M(novalite.cloud.ssh_config) returned and prints it below the recap.
  - "The line is C(READY instance=<uuid> host=<host> ip=<fixed ip> ssh='<command>'), so that scripts can read the last
    line of a launch. Nothing is printed when nothing was launched."
  - "In check mode, the plan of a launch or a stack instead. A launch's has a row for each server (its host and why,
    its addresses) and for each host (what is made there), and ends with C(Plan: n to launch, m already run.); with
    C(-v), what each step changes comes before it, under its title, as C(--diff) shows it."
  - The differences that C(reconcile.yml) found, and the answer of C(reachability.yml), as tables and lines.
  - On a terminal, no line is longer than that is wide, but for READY lines.
  - "When a play failed, a line C(FAILED <host>: <cause>) for each host that did not do its part. The last one is the
    controller's, which says what came of it in the words of the instance's fault."
requirements:
  - enable in configuration
"""

import shutil
import sys
import typing as t

from ansible import constants as C
from ansible.plugins.callback import CallbackBase

from ..module_utils._json import JsonObject
from ..module_utils._screen.task_words import cause_of, operation_name

if t.TYPE_CHECKING:  # some of these are elsewhere in other releases of Ansible
    from ansible.executor.stats import AggregateStats
    from ansible.executor.task_result import CallbackTaskResult

    from ..module_utils._screen.last_words import LastWords

_REPORTED = ("drift_report", "reachability")
_PLANNED = (*_REPORTED, "server", "launch_plan", "launch_record", "host_steps", "stack_plan")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "novalite.cloud.launch_summary"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.access: list[JsonObject] = []
        self.causes: dict[str, str] = {}  # host -> why it failed first; what failed next may follow from that
        self.words: LastWords | None = None
        self.diffs: list[JsonObject] = []

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        task = result.task
        if task.action in ("novalite.cloud.ssh_config", "ssh_config") and not task.check_mode:
            self.access = result.result.get("access") or []
        self._hear(result)

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            self.causes.setdefault(result.host.get_name(), cause_of(result.result))
        self._hear(result)

    def v2_runner_on_unreachable(self, result: CallbackTaskResult) -> None:
        self.causes.setdefault(result.host.get_name(), cause_of(result.result))

    def _hear(self, result: CallbackTaskResult) -> None:
        operation, check_mode = operation_name(result.task), bool(result.task.check_mode)
        if operation not in (_PLANNED if check_mode else _REPORTED):
            return
        if self.words is None:
            from ..module_utils._screen.last_words import LastWords

            self.words = LastWords()
        self.words.heard(operation, result.host.get_name(), result.result, check_mode)
        if operation == "host_steps" and check_mode and self._display.verbosity and not result.task.diff:
            self.diffs += result.result.get("diff") or []

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:
        for diff in self.diffs:
            self._display.display(self._get_diff(diff).rstrip("\n"))
        if self.words is not None:
            room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            for line in self.words.lines(room):
                self._display.display(line)
        if stats.failures or stats.dark:
            for host in sorted(self.causes, key=lambda host: host == "localhost"):
                self._display.display(f"FAILED {host}: {self.causes[host]}", color=C.COLOR_ERROR)
        elif self.access:
            from ..module_utils._screen.last_words import ready

            for line in ready(self.access):
                self._display.display(line)
