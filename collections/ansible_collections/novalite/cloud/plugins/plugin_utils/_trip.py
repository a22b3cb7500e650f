# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The controller's end of a trip to a host: modules that run there in one process, over the task's own connection.

As Ansible makes it, each module is a program of its own that is put together, sent, unpacked, compiled and imported
anew, which takes half a second, whatever it does. A trip sends arguments; the code is on the host from the first one
on (module_utils/_host/trip.py). Where a connection cannot be written to (pipelining is off), where a task is delegated
or asynchronous, or where the host cannot take the code, the steps are run as modules by Ansible's own way.
"""

from __future__ import annotations

import collections.abc as c
import contextlib
import importlib
import json
import math
import os
import secrets
import shlex
import time
import typing as t
import zlib

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase

from ..module_utils._errors import NovaliteError
from ..module_utils._host import deadlines
from ..module_utils._host.files import STATE_DIR
from ..module_utils._host.mark import Seen
from ..module_utils._host.trip import BEGUN, MARK
from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._ledger.placement.host_marks import HostMarks, import_driver, open_marks
from ..module_utils._model import yaml_types
from . import _events, _failure_files, _home, _patience
from ._follow import Trip, alive, followed, worked_on
from ._handshake import Errand, Handshake, HostRefusedError, guard_of, without_guard
from ._host_code import BOOT, NAME, archive, place_of, steps_of_hosts

Result = JsonObject
COLLECTION = "novalite.cloud"
SIGNALLED = 128  # a shell adds the signal's number to it
PYTHON = "/usr/bin/python3"  # libvirt's binding belongs to the system's own
# What changes nothing on a host: a ledger that is behind its hosts may have it run, and no mark is left
LOOKS = {
    "compute_host",
    "console_output",
    "counters",
    "domain_info",
    "domain_cdroms",
    "domain_interfaces",
    "epoch_token",  # which only rises, and goes with a reboot
    "host_drift",
    "host_look",
    "orphans",
    "packet_trace",
    "peer_look",
    "server_wait",
}

# What works on servers and volumes, and may take long. Steps about networks name servers that nobody is at, too, and a
# look (LOOKS) names all there are: neither is a sign that somebody goes on with them.
WORKS = {
    "config_drive",
    "disk",
    "disk_move",
    "disk_snapshot",
    "domain",
    "domain_power",
    "image_cache",
    "live_migration",
    "nbd_inject",
    "server_backup",
    "server_replica",
    "server_snapshot",
    "volume_attach",
    "volume_backup",
    "volume_disk",
}

NOT_MET = Seen({})  # of a host that nothing was compared with


class SshLost(AnsibleConnectionFailure):
    """ssh was ended by a signal before the host said anything."""


class TripAction(ActionBase):
    """The base of action plug-ins that have modules run on a host.

    Ansible's strategy loads them in the parent of all workers: what each worker needs is put together there, once.
    """

    _supports_check_mode = True
    diffs = False  # whether steps return their differences without --diff, too
    _seconds = 0.0  # that the trip under way may take
    _home = ""  # of the ledger that the task is about

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        archive()
        import_driver(os.environ.get("NOVALITE_LEDGER_URL"))

    def take(self, steps: c.Sequence[JsonMapping], task_vars: JsonObject | None) -> list[Result]:
        """Run `steps` (name, module, args, and may_fail) on the host until one fails; return how it went with each.

        That is `name`, `module`, `seconds` and the module's `result`. Raises AnsibleActionFail for arguments that a
        module does not take, and for an order that the host refuses (_handshake.py).
        """
        task_vars = task_vars or {}
        state_dir = self.state_dir(task_vars)
        checked = [_checked(step, state_dir) for step in steps]
        place = _home.ledger(self._task.args, task_vars, self._templar)
        self._home = place["home"]
        _patience.keep_alive(self._connection)
        marks = self._marks(place, task_vars)
        try:
            age_now = (lambda: None) if marks is None else (lambda: marks.age_of_orders(self.host_name(task_vars)))
            guard = guard_of(checked, task_vars, self._templar, age_now)
            if guard is not None:
                checked.insert(0, _checked(guard, state_dir))
            self._seconds = deadlines.of_trip(checked)
            with self.alive(place, checked), _patience.limited(self._connection, self._seconds):
                handshake = None if marks is None else self._handshake(marks, checked, task_vars)
                if handshake is None:
                    results = self._go(checked, None, task_vars)[1]
                else:
                    results = handshake.take(
                        lambda expected, with_steps: self._go(checked if with_steps else [], expected, task_vars)
                    )
        except HostRefusedError as error:
            raise AnsibleActionFail(str(error), result={"refused_host": True}) from error
        except NovaliteError as error:
            raise AnsibleActionFail(str(error)) from error
        finally:
            if marks is not None:
                marks.close()
        secrets = set().union(*(step["secrets"] for step in checked))
        results = [remove_values(result, secrets) for result in results]
        return results if guard is None else without_guard(results)

    def run_on_host(self, module: str, args: JsonMapping, task_vars: JsonObject | None) -> JsonObject:
        """Run one `module` of the collection with `args` on the host; return its result."""
        step = {"name": self._task.name or module, "module": module, "args": args}
        return t.cast(JsonObject, self.take([step], task_vars)[0]["result"])

    def alive(self, place: JsonMapping, steps: c.Sequence[JsonMapping]) -> t.ContextManager[None]:
        """Give signs of life, while the block lasts, of the servers and volumes that these `steps` work on."""
        parts = [step["args"] for step in steps if step["module"] in WORKS]
        if not parts or self._task.check_mode:
            return contextlib.nullcontext()
        return alive(place, lambda: worked_on(parts))

    def in_short(self, result: JsonObject, task_vars: JsonObject | None) -> JsonObject:
        """Return `result`, or of one that failed the cause. All else that the host said has `invocation`, which Ansible
        shows with -vvv alone, for who has to go on from there, and a file, `details`, for people."""
        if not result.get("failed"):
            return result
        said, rest = _failure_files.divided(result)
        invocation = {**(rest.pop("invocation", None) or {}), **rest}
        if not invocation and said["msg"] == result.get("msg"):
            return said
        if not (self._task.no_log or self._task.check_mode):
            task_vars = task_vars or {}
            details = {"task": self._task.get_name(), "msg": result.get("msg"), **rest}
            home = _home.home(None, task_vars, self._templar)
            if path := _failure_files.keep(home, self.host_name(task_vars), details):
                said["details"] = path
        return {**said, "invocation": invocation} if invocation else said

    def state_dir(self, task_vars: c.Mapping[str, t.Any]) -> str:
        """State directory of the host by its inventory: for modules whose task does not name it."""
        return str(self._templar.template(task_vars.get("compute_node_state_dir") or STATE_DIR))

    def host_name(self, task_vars: c.Mapping[str, t.Any]) -> str:
        """Name of the host in the ledger: the inventory's."""
        return str(self._task.delegate_to or task_vars.get("inventory_hostname") or "")

    def errand(self, steps: c.Sequence[JsonMapping], task_vars: c.Mapping[str, t.Any]) -> Errand:
        """Return what a trip with these `steps` is for; a subclass may know more of the host."""
        looks = all(step["module"] in LOOKS or step["args"].get("state") == "read" for step in steps)
        return Errand(self.host_name(task_vars), looks, check_mode=self._task.check_mode)

    def _marks(self, place: JsonMapping, task_vars: JsonObject) -> HostMarks | None:
        """The marks in the ledger at this `place`; None without one, where nothing can be compared."""
        return open_marks(place["home"], place["ledger_url"]) if self.host_name(task_vars) else None

    def _handshake(self, marks: HostMarks, steps: c.Sequence[JsonMapping], task_vars: JsonObject) -> Handshake | None:
        """Begin what is compared with the host before the first step; None where the ledger cannot say."""
        return Handshake.begin(marks, self.errand(steps, task_vars))

    def _go(
        self, steps: list[JsonObject], expected: JsonObject | None, task_vars: JsonObject
    ) -> tuple[Seen, list[Result]]:
        """Have the host compare itself with what is `expected`, and run the steps; return what it met, and how they
        went."""
        reply = self._trip(steps, expected, task_vars) if self._can_trip() else None
        return self._by_modules(steps, expected, task_vars) if reply is None else reply

    def _can_trip(self) -> bool:
        return bool(
            self._connection.is_pipelining_enabled(False)
            and not self._task.async_val
            and self._task.delegate_to is None
            and not getattr(self._connection._shell, "_IS_WINDOWS", False)
        )

    def _trip(
        self, steps: list[JsonObject], expected: JsonObject | None, task_vars: JsonObject
    ) -> tuple[Seen, list[Result]] | None:
        """Run the steps in one process on the host; None if it cannot be had."""
        step_keys = ("name", "module", "place", "args", "paths", "may_fail")
        request = {
            "steps": [{key: step[key] for key in step_keys} for step in steps],
            "expected": expected,
            "state_dir": self.state_dir(task_vars),
            "check_mode": self._task.check_mode,
            "diff": self._task.diff or self.diffs,
            "token": "" if self._task.check_mode else secrets.token_hex(16),
            "again": False,
            "events": _events.is_heard(self._home),
        }
        with self._followed(request, task_vars) as trip:
            try:
                reply = self._ask(request, task_vars)
            except SshLost:
                reply = self._ask({**request, "again": True}, task_vars)
                if reply == BEGUN:
                    raise
            if reply is None:
                return None
            answer = json.loads(reply)
            if trip is not None:
                trip.answered(answer["steps"])
        return NOT_MET if answer["host"] is None else Seen.of(answer["host"]), answer["steps"]

    def _followed(self, request: JsonObject, task_vars: JsonObject) -> t.ContextManager[Trip | None]:
        """Tell what becomes of the steps of `request`, where there is somebody who hears of it."""
        if not (request["events"] and request["token"] and request["steps"]):
            return contextlib.nullcontext()
        trip = Trip(self.host_name(task_vars), request["steps"], self._home)
        return followed(self, _python(self._templar, task_vars), request["token"], trip)

    def _ask(self, request: JsonObject, task_vars: JsonObject) -> str | None:
        """Send a request, and the code where the host has it not; return the host's answer as _send()."""
        text = json.dumps(request).encode()
        reply = self._send(b"", text, task_vars)
        return self._send(zlib.compress(archive()[0]), text, task_vars) if reply == "none" else reply

    def _send(self, code: bytes, request: bytes, task_vars: JsonMapping) -> str | None:
        """Send a request; return the host's answer, or None if there is no Python, or it could not use the code.

        Raises SshLost and AnsibleConnectionFailure for a host that was lost, AnsibleActionFail for a process that was
        killed there.
        """
        # The alarm of a step interrupts nothing outside of Python: a process that hangs there is killed, undo and all.
        argv = [
            *("timeout", "-s", "KILL", str(max(0, math.ceil(self._seconds - deadlines.ANSWER)))),
            _python(self._templar, task_vars),
            "-I",
            "-c",
            BOOT,
            os.path.join(self.state_dir(task_vars), "code"),
            archive()[1],
            "0" if self._task.check_mode else "1",
        ]
        command = f"{self._compute_environment_string()} {shlex.join(argv)}".strip()
        done = self._low_level_execute_command(command, in_data=b"%d\n%s%s" % (len(code), code, request))
        for line in done["stdout_lines"]:
            _before, mark, reply = line.partition(MARK)
            if mark:
                return t.cast(str, reply)
        if done["rc"] < 0 or done["rc"] == 255:
            kind = SshLost if done["rc"] < 0 else AnsibleConnectionFailure
            raise kind(f"the host was lost during the task: {done['stderr'].strip()}")
        if done["rc"] > SIGNALLED:  # it may have begun: to have Ansible's own way do all of it again is not for us
            raise AnsibleActionFail(f"the process on the host was ended by signal {done['rc'] - SIGNALLED}: run again")
        self._display.vvv(f"no trip to the host, which said: {done['stderr']}")
        return None

    def _by_modules(
        self, steps: list[JsonObject], expected: JsonObject | None, task_vars: JsonObject
    ) -> tuple[Seen, list[Result]]:
        seen = NOT_MET
        if expected is not None:
            seen = self._met_by_module(expected, task_vars)
            if seen.refused is not None:
                return seen, []
        results: list[Result] = []
        host, uuids = self.host_name(task_vars), _events.uuids_in(steps)
        for step in steps:
            begun = _events.Event(host, step["name"], step["module"], "begin", time.monotonic(), uuids=uuids)
            _events.tell(begun, self._home)
            results.append(self._module(step, task_vars))
            _events.tell(_events.Event.of_result(host, step, results[-1], uuids), self._home)
            result = results[-1]["result"]
            if result.get("missing") or (result.get("failed") and not step["may_fail"]):
                break
        return seen, results

    def _met_by_module(self, expected: JsonObject, task_vars: JsonObject) -> Seen:
        """Compare the host by a module; it is waited for, also in an asynchronous task."""
        arguments = {"state": "present", "expected": expected, "state_dir": self.state_dir(task_vars)}
        result = self._execute_module(
            module_name=f"{COLLECTION}.host_mark", module_args=arguments, task_vars=task_vars, wrap_async=False
        )
        if "seen" not in result:
            if result.get("unreachable"):
                raise AnsibleConnectionFailure(str(result.get("msg")))
            raise AnsibleActionFail(f"the host was not compared with the ledger: {result.get('msg', 'no message')}")
        return Seen.of(result["seen"])

    def _module(self, step: JsonObject, task_vars: JsonObject) -> Result:
        began = time.monotonic()
        wrap = bool(self._task.async_val) and not self._connection.has_native_async
        name, args = step["module"], dict(step["given"])
        said = self._task.no_log
        if name in steps_of_hosts():
            name, args = "host_step", {"step": name, "args": args}
            # it does not know which of a step's arguments are secrets, and writes them all to the host's log
            self._task.no_log = said or bool(step["secrets"])
        try:
            result = self._execute_module(
                module_name=f"{COLLECTION}.{name}", module_args=args, task_vars=task_vars, wrap_async=wrap
            )
        finally:
            self._task.no_log = said
        seconds = round(time.monotonic() - began, 3)
        return {"name": step["name"], "module": step["module"], "seconds": seconds, "result": result}


def _python(templar: t.Any, task_vars: JsonMapping) -> str:
    """The host's Python that trips are taken with."""
    named = str(templar.template(task_vars.get("ansible_python_interpreter") or ""))
    return PYTHON if not named or named.startswith("auto") else named


def _checked(step: JsonMapping, state_dir: str) -> JsonObject:
    """`step` with its arguments validated as the module's own, and what among them is `secrets`. `state_dir` is the
    host's."""
    place = place_of(step["module"])
    module = importlib.import_module(f"{NAME}.{place}")
    spec = module.ARGUMENT_SPEC
    try:
        yaml_types.refuse(None, step["args"])
    except NovaliteError as error:
        raise AnsibleActionFail(f"{step['name']}: {error}") from error
    step_args = json.loads(json.dumps(step["args"]))
    if "state_dir" in spec:
        step_args.setdefault("state_dir", state_dir)
    validated = ArgumentSpecValidator(_as_text(spec), **getattr(module, "SPEC_RULES", {})).validate(step_args)
    if validated.error_messages:
        message = "; ".join(validated.error_messages)
        if validated.unsupported_parameters:
            kind = "step" if step["module"] in steps_of_hosts() else "module"
            message = f"Unsupported parameters for ({COLLECTION}.{step['module']}) {kind}: {message}"
        raise AnsibleActionFail(f"{step['name']}: {remove_values(message, validated._no_log_values)}")
    return {
        "name": step["name"],
        "module": step["module"],
        "place": place,
        "given": step_args,
        "args": validated.validated_parameters,
        "paths": [name for name, option in spec.items() if option.get("type") == "path"],
        "may_fail": bool(step.get("may_fail")),
        "secrets": validated._no_log_values,
    }


def _as_text(spec: JsonMapping) -> JsonObject:
    """`spec` whose paths are texts: what `~` means is the host's business."""
    return {
        name: {**option, "type": "str"} if option.get("type") == "path" else option for name, option in spec.items()
    }
