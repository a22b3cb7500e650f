# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The screen of `novalite log`: what a guest said, and nothing of the run that read it."""

from __future__ import annotations

DOCUMENTATION = r"""
name: console_text
type: stdout
short_description: Shows what guests said on their consoles, and nothing else
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - Prints the text that the playbook C(novalite.cloud.console) hands out, without headings. A character that would
    command the terminal is shown as a question mark.
  - Causes of failures go to stderr.
requirements:
  - Set as stdout callback by E(ANSIBLE_STDOUT_CALLBACK), which the command C(novalite log) does.
"""

import typing as t

from ansible.plugins.callback import CallbackBase

from ..module_utils._model.plain_text import without_controls
from ..module_utils._screen.task_words import cause_of

if t.TYPE_CHECKING:  # some of these are elsewhere in other releases of Ansible
    from ansible.executor.stats import AggregateStats
    from ansible.executor.task_result import CallbackTaskResult


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "novalite.cloud.console_text"

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            self._display.display(f"{result.host.get_name()}: {cause_of(result.result)}", stderr=True)

    def v2_runner_on_unreachable(self, result: CallbackTaskResult) -> None:
        self.v2_runner_on_failed(result)

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:
        texts: dict[str, str] = stats.custom.get("_run", {}).get("console", {})
        for text in texts.values():
            lines = text.replace("\r", "").rstrip("\n").split("\n")
            self._display.display("\n".join(without_controls(line.expandtabs()) for line in lines))
