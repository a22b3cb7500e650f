# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Print after everything else how to log in to what a launch made, or why a run failed."""

from __future__ import annotations

DOCUMENTATION = r"""
name: launch_summary
type: aggregate
short_description: Prints a READY line for each launched instance, or a FAILED line for each cause
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - Remembers what M(novalite.cloud.ssh_config) returned and prints it below the recap.
  - "The line is C(READY instance=<uuid> host=<host> ip=<fixed ip> ssh='<command>'), so that scripts can read the last
    line of a launch. Nothing is printed in check mode, or when nothing was launched."
  - "When a play failed, a line C(FAILED <host>: <cause>) for each host that did not do its part. The last one is the
    controller's, which says what came of it in the words of the instance's fault."
requirements:
  - enable in configuration
"""

import typing as t

from ansible import constants as C
from ansible.plugins.callback import CallbackBase

from ..module_utils._json import JsonObject
from ..plugin_utils._task_words import cause_of

if t.TYPE_CHECKING:  # some of these are elsewhere in other releases of Ansible
    from ansible.executor.stats import AggregateStats
    from ansible.executor.task_result import CallbackTaskResult


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "novalite.cloud.launch_summary"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.access: list[JsonObject] = []
        self.causes: dict[str, str] = {}  # host -> why it failed first; what failed next may follow from that

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        task = result.task
        if task.action in ("novalite.cloud.ssh_config", "ssh_config") and not task.check_mode:
            self.access = result.result.get("access") or []

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            self.causes.setdefault(result.host.get_name(), cause_of(result.result))

    def v2_runner_on_unreachable(self, result: CallbackTaskResult) -> None:
        self.causes.setdefault(result.host.get_name(), cause_of(result.result))

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:
        if stats.failures or stats.dark:
            for host in sorted(self.causes, key=lambda host: host == "localhost"):
                self._display.display(f"FAILED {host}: {self.causes[host]}", color=C.COLOR_ERROR)
            return
        for instance in self.access:
            self._display.display(
                f"READY instance={instance['uuid']} host={instance['host']} ip={instance['ip']} ssh='{instance['ssh']}'"
            )
