# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tell a launch as it happens, in the steps in which Nova's was told."""

from __future__ import annotations

DOCUMENTATION = r"""
name: explain
type: aggregate
short_description: Tells a launch in Nova's steps, with the real values
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - With C(launch.yml -e explain=true), it tells the steps of "OpenStack Nova internals of instance launching" as they
    happen. Each has its number, Nova's component and method, what takes it here, the real values and the seconds.
  - The values are the request, the filters' and weighers' verdicts, claims, MACs and addresses, the XML, and what hosts
    changed (disks, keys, bridges, DHCP entries, network filters and chains).
  - While a host's steps last, a line says when each begins, and how it ended. What they did is told when they are over.
  - Passwords, user data and contents of files are not told.
  - Without the variable it is switched off by the first play.
requirements:
  - enable in configuration
seealso:
  - plugin: novalite.cloud.progress
    plugin_type: callback
"""

import time
import typing as t

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.callback import CallbackBase

from ..module_utils._screen.task_words import operation_name
from ..plugin_utils import _events

if t.TYPE_CHECKING:  # some of these are elsewhere in other releases of Ansible
    from ansible.executor.task_result import CallbackTaskResult
    from ansible.inventory.host import Host
    from ansible.playbook.play import Play
    from ansible.playbook.task import Task

    from ..plugin_utils._explain import Story

VARIABLE = "explain"
_TOLD = ("server", "launch_plan", "host_steps", "launch_record")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "novalite.cloud.explain"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.story: Story | None = None
        self.since: dict[tuple[str, str], float] = {}
        self.begun: set[tuple[str, str]] = set()  # host and step; of the thread that hears of steps

    def v2_playbook_on_play_start(self, play: Play) -> None:
        if self.story is not None:
            return
        if not boolean(play.get_variable_manager().extra_vars.get(VARIABLE) or False, strict=False):
            self.disabled = True  # Ansible asks nothing more of it
            return
        from ..plugin_utils._explain import Story

        self.story = Story(time.monotonic())
        _events.listen(self._hear)

    def _hear(self, events: t.Sequence[_events.Event]) -> None:
        """Say what steps are at while their trip lasts. Called in a thread of its own. Of those that had ended before
        anybody asked nothing is to be said: the story comes at once."""
        for event in events:
            step = event.host, event.step
            if event.kind == "begin":
                self.begun.add(step)
                self._display.display(f"...  {event.host}: {event.step}")
            elif event.kind == "end" and step in self.begun:
                self.begun.remove(step)
                outcome = "failed" if event.failed else "changed" if event.changed else "ok"
                self._display.display(f"...  {event.host}: {event.step}, {event.seconds:.3f} s, {outcome}")

    def v2_runner_on_start(self, host: Host, task: Task) -> None:
        if operation_name(task) in _TOLD:
            self.since[host.get_name(), str(task._uuid)] = time.monotonic()

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        self._tell(result)

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        self._tell(result)

    def _tell(self, result: CallbackTaskResult) -> None:
        name, task = result.host.get_name(), result.task
        if self.story is None or operation_name(task) not in _TOLD:
            return
        now = time.monotonic()
        seconds = now - self.since.pop((name, str(task._uuid)), now)
        try:
            lines = self.story.task_lines(operation_name(task), name, result.result, seconds, now)
        except Exception as error:  # a mistake of ours costs the story, never the run
            self._display.warning(f"novalite.cloud.explain gives up: {type(error).__name__}: {error}")
            self.disabled = True
            return
        for line in lines:
            self._display.display(line)
