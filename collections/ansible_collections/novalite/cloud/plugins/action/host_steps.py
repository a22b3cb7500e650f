# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the steps of a task in one trip to the host, but for what the controller has to do in between."""

from __future__ import annotations

import collections.abc as c
import contextlib
import importlib
import time
import typing as t

from ansible.errors import AnsibleActionFail, AnsibleError

from ..module_utils._errors import NovaliteError
from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._screen import step_diffs
from ..modules import host_steps
from ..plugin_utils._host_code import modules_of_hosts, place_of, steps_of_hosts
from ..plugin_utils._image_push import MODULE as IMAGE_CACHE
from ..plugin_utils._image_push import ImageAction
from ..plugin_utils._step_actions import with_key

# Variables of role spawn: what its steps are about
PLANS = frozenset(["spawn_plan", "spawn_peers", "spawn_groups"])
KNOWN = modules_of_hosts() | steps_of_hosts()

# In the parent of all workers, of which each would import them anew to see what their arguments are
for _name in KNOWN:
    importlib.import_module(f"..{place_of(_name)}", __package__)


class ActionModule(ImageAction):
    @classmethod
    @contextlib.contextmanager
    def get_finalize_task_args_context(cls) -> t.Iterator[dict[str, t.Any]]:
        """The variables in PLANS, once they are templated."""
        yield {}

    @classmethod
    def finalize_task_arg(cls, name: str, value: t.Any, templar: t.Any, context: dict[str, t.Any]) -> t.Any:
        """Template an argument of the task. Ansible would template a plan anew for each argument of a step that is a
        part of it: half a hundred times for a host that builds one guest. The hook is experimental in ansible-core 2.19
        to 2.21; a version without it templates as often as it did."""
        variables = templar.available_variables
        for plan in PLANS & variables.keys() - context.keys():
            with contextlib.suppress(AnsibleError):  # whoever needs one that cannot be templated is told why
                context[plan] = templar.template(variables[plan])
        templar = templar.copy()
        templar.available_variables = {**variables, **context}
        return templar.template(value)

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super().run(tmp, task_vars)
        task_vars = task_vars or {}
        _validated, params = self.validate_argument_spec(argument_spec=host_steps.ARGUMENT_SPEC)
        steps = [step for step in params["steps"] if step["when"]]
        if unknown := {step["module"] for step in steps} - KNOWN:
            raise AnsibleActionFail(
                f"{', '.join(sorted(unknown))}: no module or step of novalite.cloud whose work is on a host; "
                f"choose from {', '.join(sorted(KNOWN))}"
            )
        try:
            for step in steps:
                if step["module"] == "metadata_proxy":
                    step["args"] = with_key(step["args"], task_vars, self._templar, self._task.check_mode)
        except NovaliteError as error:
            return {"failed": True, "msg": str(error)}
        self.diffs = self.diffs or params["diffs"]
        at, began, host = time.time(), time.monotonic(), self.host_name(task_vars)
        done: list[JsonObject] = []
        while len(done) < len(steps):
            try:
                done += self.take(steps[len(done) :], task_vars)
            except AnsibleActionFail as error:
                if not done:
                    raise
                raise AnsibleActionFail(error.message) from error  # without the word that nothing was done there
            step, last = steps[len(done) - 1], done[-1]
            if step["module"] == IMAGE_CACHE:
                last["result"] = self.bring(step["args"], last["result"], task_vars, steps)
            if not (self._task.diff or self.diffs):
                _drop_diffs(done)
            if last["result"].get("failed") and not step["may_fail"]:
                summed = {**_sum(host, done, done[:-1]), **_trip(at, began, done)}
                return self.in_short({**summed, **_failure(last)}, task_vars)
        result = {**_sum(host, done, done), **_trip(at, began, done)}
        if params["outcome"] is not None:  # not left to a second task, which would be one more process for each host
            result["outcome"] = {**params["outcome"], "trip": result["trip"], **_seen(done)}
        return result


def _drop_diffs(done: c.Iterable[JsonMapping]) -> None:
    """Take out of each result what nobody asked for. Ansible copies a result half a dozen times, and half of what a
    host with many guests returns are the rules before and after."""
    for step in done:
        step["result"].pop("diff", None)


def _sum(host: str, done: c.Sequence[JsonObject], tolerated: c.Sequence[JsonObject]) -> JsonObject:
    """Return the result of a task whose steps were `done` on `host`. A failure of a `tolerated` one is a warning."""
    results = [step["result"] for step in done]
    summed: JsonObject = {"changed": any(result.get("changed") for result in results), "steps": list(done)}
    warnings = [f"{step['name']}: {step['result'].get('msg')}" for step in tolerated if step["result"].get("failed")]
    if warnings := [*warnings, *(warning for result in results for warning in result.get("warnings", ()))]:
        summed["warnings"] = warnings
    if diffs := [diff for step in done for diff in step_diffs.titled(host, step)]:
        summed["diff"] = diffs
    return summed


def _trip(at: float, began: float, done: c.Iterable[JsonMapping]) -> JsonObject:
    """The parts worth keeping of a trip that began at this time (of the clock; of the monotonic one): how long it took,
    and each step."""
    steps = [
        {
            "module": step["module"],
            "seconds": step["seconds"],
            **({"failed": True} if step["result"].get("failed") else {}),
        }
        for step in done
    ]
    return {"trip": {"at": round(at, 3), "seconds": round(time.monotonic() - began, 3), "steps": steps}}


def _seen(done: c.Iterable[JsonMapping]) -> JsonObject:
    """The host's `facts` and its `silent` guests, which did not answer, out of the results of the steps."""
    results = {step["module"]: step["result"] for step in done}
    facts = results.get("compute_host", {}).get("compute_host")
    return {"silent": results.get("server_wait", {}).get("silent") or [], **({"facts": facts} if facts else {})}


def _failure(step: JsonMapping) -> JsonObject:
    """Result of a task whose `step` failed: its message, and the module's `refused` (see image_cache) and traceback."""
    result = step["result"]
    words = {key: result[key] for key in ("refused", "exception") if key in result}
    message = f"{step['name']}: {result.get('msg', 'no message')}"
    return {**words, "failed": True, "failed_step": step["name"], "msg": message}
