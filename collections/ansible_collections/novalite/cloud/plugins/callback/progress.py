# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The screen of a run: a live table of the instances on a terminal, a line for each step elsewhere."""

from __future__ import annotations

DOCUMENTATION = r"""
name: progress
type: stdout
short_description: Shows how far each instance is, and how long each step took
version_added: 0.1.0
author: [novalite contributors (@novalite)]
description:
  - On a terminal, a table of the instances that the run is about, each with its host, its step and the seconds that it
    has been at it, drawn anew in place. Elsewhere, one line for each step of each host.
  - Differences, warnings and messages are shown as the default callback shows them, and of what failed the cause, in
    one line, with the file that has the rest. With C(-v), it shows everything.
  - Below the recap, how long each step took, unless the run failed.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
requirements:
  - Set as stdout callback, in the configuration or by E(ANSIBLE_STDOUT_CALLBACK).
options:
  live:
    description: Whether to draw a table on a terminal. V(false) gives plain lines there, too.
    type: bool
    default: true
    env:
      - name: NOVALITE_PROGRESS_LIVE
    ini:
      - section: callback_novalite_progress
        key: live
"""

import atexit
import contextlib
import os
import sys
import threading
import time
import typing as t

from ansible import constants as C
from ansible.playbook.task_include import TaskInclude
from ansible.plugins.callback.default import CallbackModule as Default
from ansible.utils.color import stringc

from ..module_utils._screen.task_words import cause_of, operation_name
from ..plugin_utils import _events
from ..plugin_utils._progress import Progress, StepNow

if t.TYPE_CHECKING:  # some of these are elsewhere in other releases of Ansible
    from ansible.executor.stats import AggregateStats
    from ansible.executor.task_result import CallbackTaskResult
    from ansible.inventory.host import Host
    from ansible.playbook import Playbook
    from ansible.playbook.included_file import IncludedFile
    from ansible.playbook.play import Play
    from ansible.playbook.task import Task

_COLOURS = {
    "head": C.COLOR_HIGHLIGHT,
    "running": C.COLOR_CHANGED,
    "done": C.COLOR_OK,
    "failed": C.COLOR_ERROR,
    "waiting": None,
    "note": None,
}
_EVERY = 0.5  # seconds between two pictures when nothing happens, and
_LEAST = 0.1  # the least there are between them
_LONG = 5.0  # seconds after which a line says what a host is at, where there is no table
_QUIET = ("set_fact", "include_role", "include_tasks", "import_role", "import_tasks", "meta")


class _Screen:
    """A table that is drawn anew in place.

    Between two pictures the cursor rests on the empty line above the table. So what others write meanwhile, a warning
    for example, is not written into the table but above it.
    """

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.descriptor = sys.stdout.fileno()
        self.lock = threading.RLock()
        self.hidden = 0
        self.last = 0.0
        self.over = threading.Event()
        # One write for each picture, and to the descriptor: a worker that is forked meanwhile inherits no lock of a
        # half-written stream.
        threading.Thread(target=self._tick, name="novalite progress", daemon=True).start()
        atexit.register(self.close)

    def draw(self, force: bool = False) -> None:
        now = time.monotonic()
        with self.lock:
            if self.hidden or self.over.is_set() or (not force and now - self.last < _LEAST):
                return
            self.last = now
            size = os.get_terminal_size(self.descriptor)
            lines = self.progress.table(max(size.columns, 20), max(min(size.lines - 3, 60), 3), now)
            text = "".join(f"\r\n{_coloured(line, kind)}" for line, kind in lines)
            sys.stdout.flush()
            # without wrapping, so that each line is one, whatever is in it
            self._write(f"\r\x1b[J\x1b[?7l{text}\x1b[?7h\x1b[{len(lines)}A\r")

    @contextlib.contextmanager
    def aside(self) -> t.Iterator[None]:
        """The table is not there: what is written is written where it was."""
        with self.lock:
            self.hidden += 1
            if self.hidden == 1 and not self.over.is_set():
                sys.stdout.flush()
                self._write("\r\x1b[J")
        try:
            yield
        finally:
            with self.lock:
                self.hidden -= 1
                sys.stdout.flush()
            self.draw(force=True)

    def close(self) -> None:
        with self.lock:
            if not self.over.is_set():
                self.over.set()
                with contextlib.suppress(OSError, ValueError):
                    sys.stdout.flush()
                    self._write("\r\x1b[J")

    def _tick(self) -> None:
        while not self.over.wait(_EVERY):
            try:
                self.draw()
            except Exception:  # the terminal is gone, or was never one: the run goes on without a table
                self.over.set()

    def _write(self, text: str) -> None:
        data = text.encode(errors="replace")
        while data:
            data = data[os.write(self.descriptor, data) :]


def _coloured(text: str, kind: str) -> str:
    colour = _COLOURS[kind]
    return stringc(text, colour) if colour else text


class CallbackModule(Default):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "novalite.cloud.progress"

    def __init__(self) -> None:
        super().__init__()
        self.progress: Progress | None = None  # None: as the default callback, before a run or after a mistake of ours
        self.screen: _Screen | None = None
        self.held = contextlib.ExitStack()
        self.noted: list[StepNow] = []  # the long steps that a line was written for

    # --- what is kept of the run ---

    @contextlib.contextmanager
    def _noted(self) -> t.Iterator[Progress]:
        """Yield the progress. An error inside costs the table, never the run."""
        try:
            yield self.progress or Progress(time.monotonic())
        except Exception as error:
            self._stop()
            self.progress = None
            self._display.warning(f"novalite.cloud.progress gives up: {error}")

    def _stop(self) -> None:
        self.held.close()
        if self.screen is not None:
            self.screen.close()
            self.screen = None

    def _shown(self, method: str, *args: object) -> None:
        """Let the default callback write, beside the table."""
        with self.screen.aside() if self.screen is not None else contextlib.nullcontext():
            getattr(super(), method)(*args)

    def v2_playbook_on_start(self, playbook: Playbook) -> None:
        super().v2_playbook_on_start(playbook)
        if self._display.verbosity:
            return
        self.progress = Progress(time.monotonic())
        with self._noted() as progress:
            terminal = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
            if terminal and self.get_option("live"):
                self.screen = _Screen(progress)
            _events.listen(self._hear)

    def _hear(self, events: t.Sequence[_events.Event]) -> None:
        """Show what steps are at while their trip lasts. Called in a thread of its own."""
        if self.progress is None:
            return
        for event in events:
            self.progress.heard(event)
        if self.screen is not None:
            if events:
                self.screen.draw()
            return
        now = time.monotonic()
        for host, part in self.progress.parts():
            if now - part.at >= _LONG and part not in self.noted:
                self.noted.append(part)
                so_far = part.words(100)
                self._line(f"{host}: {part.name}, {now - part.at:.0f} s so far{so_far and ': '}{so_far}")

    def v2_playbook_on_play_start(self, play: Play) -> None:
        if self.progress is None:
            return super().v2_playbook_on_play_start(play)
        self._play = play
        with self._noted() as progress:
            progress.title = play.get_name().strip()
            if self.screen is None:
                self._line(progress.title.upper() if progress.title else "PLAY")
            else:
                self.screen.draw()
        return None

    def v2_playbook_on_task_start(self, task: Task, is_conditional: bool) -> None:
        if self.progress is None:
            return super().v2_playbook_on_task_start(task, is_conditional)
        return self._task(task, "TASK")

    def v2_playbook_on_handler_task_start(self, task: Task) -> None:
        if self.progress is None:
            return super().v2_playbook_on_handler_task_start(task)
        return self._task(task, "RUNNING HANDLER")

    def _task(self, task: Task, kind: str) -> None:
        # what the default callback needs when it has something to say about the task
        self._task_type_cache[task._uuid] = kind
        self._last_task_name = task.get_name().strip()
        self.held.close()
        if self.screen is not None and operation_name(task) in ("pause", "vars_prompt"):
            self.held.enter_context(self.screen.aside())  # somebody is asked something

    def v2_runner_on_start(self, host: Host, task: Task) -> None:
        super().v2_runner_on_start(host, task)
        if self.progress is not None:
            with self._noted() as progress:
                progress.started(host.get_name(), _name(task), time.monotonic())
                if self.screen is not None:
                    self.screen.draw()

    def _ended(self, result: CallbackTaskResult, outcome: str) -> None:
        with self._noted() as progress:
            now, host, task = time.monotonic(), result.host.get_name(), result.task
            names = progress.names(host)
            seconds = progress.ended(host, _name(task), now, failed=outcome == "failed")
            if operation_name(task) == "host_steps":
                parts = [(str(step["name"]), float(step["seconds"])) for step in result.result.get("steps") or ()]
                progress.parted(host, _name(task), parts, now)
            if outcome in ("ok", "changed"):
                progress.learned(operation_name(task), result.result, now)
            if outcome != "skipped" and operation_name(task) not in _QUIET:
                whom = f" ({names})" if names else ""
                self._line(f"{host}: {_name(task)}{whom}, {seconds:.2f} s, {outcome}")
            if self.screen is not None:
                self.screen.draw()

    def _line(self, text: str) -> None:
        """A plain line; where there is a table, into the log file only."""
        if self.progress is None:
            return
        since = time.monotonic() - self.progress.began
        self._display.display(f"[{since:7.1f}] {text}", log_only=self.screen is not None)

    # --- results ---

    def v2_runner_on_ok(self, result: CallbackTaskResult) -> None:
        if self.progress is None:
            return super().v2_runner_on_ok(result)
        self._ended(result, "changed" if result.result.get("changed") else "ok")
        if result.result.get("_ansible_verbose_always") and not isinstance(result.task, TaskInclude):
            self._message(result)
        elif result.result.get("warnings") or result.result.get("deprecations"):
            self._shown("_handle_warnings_and_exception", result)
        return None

    def _message(self, result: CallbackTaskResult, default: str = "v2_runner_on_ok") -> None:
        """Show what a task, or an item of it, has to say: lines, such as those of a table, as they are."""
        said = result.result.get("msg")
        if not (isinstance(said, list) and all(isinstance(line, str) for line in said)):
            self._shown(default, result)
            return
        with self.screen.aside() if self.screen is not None else contextlib.nullcontext():
            label = result.result.get("_ansible_item_label")
            for line in [f"{label}:", *said] if label else said:
                self._display.display(line)

    def v2_runner_on_failed(self, result: CallbackTaskResult, ignore_errors: bool = False) -> None:
        if self.progress is None:
            return super().v2_runner_on_failed(result, ignore_errors)
        self._ended(result, "ignored" if ignore_errors else "failed")
        if not (result.task.loop and "results" in result.result):  # its items were told
            self._cause("failed, which is ignored" if ignore_errors else "FAILED", result)
        return None

    def v2_runner_on_unreachable(self, result: CallbackTaskResult) -> None:
        if self.progress is None:
            return super().v2_runner_on_unreachable(result)
        self._ended(result, "failed")
        return self._cause("UNREACHABLE", result)

    def _cause(self, how: str, result: CallbackTaskResult) -> None:
        """Tell why a task failed, and where all else is that the host said of it."""
        with self.screen.aside() if self.screen is not None else contextlib.nullcontext():
            self._handle_warnings(result.result)
            text = f"{result.host.get_name()}: {how}: {cause_of(result.result)}"
            self._display.display(text, color=C.COLOR_ERROR)
            if details := result.result.get("details"):
                self._display.display(f"  all that it said: {details}", color=C.COLOR_ERROR)

    def v2_runner_on_skipped(self, result: CallbackTaskResult) -> None:
        if self.progress is None:
            return super().v2_runner_on_skipped(result)
        return self._ended(result, "skipped")

    def v2_runner_item_on_ok(self, result: CallbackTaskResult) -> None:
        if self.progress is None:
            super().v2_runner_item_on_ok(result)
        elif result.result.get("_ansible_verbose_always"):
            self._message(result, "v2_runner_item_on_ok")

    def v2_runner_item_on_skipped(self, result: CallbackTaskResult) -> None:
        if self.progress is None:
            super().v2_runner_item_on_skipped(result)

    def v2_runner_item_on_failed(self, result: CallbackTaskResult) -> None:
        if self.progress is None:
            super().v2_runner_item_on_failed(result)
        else:
            self._cause("FAILED", result)

    def v2_runner_retry(self, result: CallbackTaskResult) -> None:
        self._shown("v2_runner_retry", result)

    def v2_on_file_diff(self, result: CallbackTaskResult) -> None:
        self._shown("v2_on_file_diff", result)

    def v2_playbook_on_include(self, included_file: IncludedFile) -> None:
        if self.progress is None:
            super().v2_playbook_on_include(included_file)

    def v2_playbook_on_no_hosts_matched(self) -> None:
        if self.progress is None:
            super().v2_playbook_on_no_hosts_matched()

    def v2_playbook_on_no_hosts_remaining(self) -> None:
        self._shown("v2_playbook_on_no_hosts_remaining")

    def v2_playbook_on_vars_prompt(self, *args: object, **kwargs: object) -> None:
        if self.screen is not None:
            self.held.enter_context(self.screen.aside())

    def v2_playbook_on_stats(self, stats: AggregateStats) -> None:
        live = self.screen is not None
        self._stop()
        now = time.monotonic()
        if self.progress is not None and live:
            with self._noted() as progress:
                for text, kind in progress.table(os.get_terminal_size(sys.stdout.fileno()).columns, 1000, now):
                    self._display.display(text, color=_COLOURS[kind])
        super().v2_playbook_on_stats(stats)
        if self.progress is not None and not (stats.failures or stats.dark):  # then the causes are to be the last lines
            with self._noted() as progress:
                self._display.display("\n".join([*progress.summary(now), ""]))


def _name(task: Task) -> str:
    return str(task.get_name()).rpartition(" : ")[2].strip()
