# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The door that every module shares whose work is on a compute host: validated options in, a result out.

Two edges use it. Ansible runs the module file, whose `main()` is `run_host_module`. A trip (_host/trip.py) runs several
modules in one process, without Ansible's own code; so this file imports that only where the first edge needs it.
"""

from __future__ import annotations

import dataclasses
import types
import typing as t

from .._errors import NovaliteError
from .._json import Json, JsonMapping, JsonObject
from . import deadlines
from .own_directory import check_own

Result = JsonObject
Run = t.Callable[["HostCall"], Result]


@dataclasses.dataclass(frozen=True)
class HostCall:
    """The input of a module: its validated options by name, and what Ansible asks of every module."""

    params: JsonMapping
    check_mode: bool = False
    diff: bool = False
    log: t.Callable[[str], None] = lambda line: None
    warnings: list[str] = dataclasses.field(default_factory=list)

    def warn(self, warning: str) -> None:
        self.warnings.append(warning)


class HostModuleError(NovaliteError):
    """A failure that has more to say than its message: `result` is returned beside it."""

    def __init__(self, message: str, **result: Json) -> None:
        super().__init__(message)
        self.result = result


def compared(before: JsonObject, after: JsonObject, **more: Json) -> Result:
    """The result of a module that compares: `changed`, `more`, and the `diff` where there is one."""
    diff = {} if before == after else {"diff": {"before": before, "after": after}}
    return {"changed": bool(diff), **more, **diff}


def compared_each(names: t.Iterable[str], states: t.Iterable[tuple[JsonObject, JsonObject]], **more: Json) -> Result:
    """The result for several things of a host, by their names: the states of each before and after."""
    changed = {name: pair for name, pair in zip(names, states) if pair[0] != pair[1]}
    return compared(*({name: pair[side] for name, pair in changed.items()} for side in (0, 1)), **more)


def each_for_itself(result: Result, errors: t.Iterable[str | None]) -> Result:
    """`result`, to whose parts these `errors` belong, None where all went well. Raises HostModuleError with both."""
    if messages := [error for error in errors if error]:
        raise HostModuleError("; ".join(messages), **result)
    return result


def call_module(run: Run, call: HostCall, seconds: float) -> Result:
    """Return what a module that does `run` answers to `call`: its result, or `failed` and `msg`; always `changed`,
    and `warnings` if there are any. It fails when it takes longer than `seconds`.
    """
    late = f"not done within {seconds:.0f} s, and stopped: find out what holds it up on this host, and run again"
    try:
        with deadlines.limited(seconds, late):
            if state_dir := call.params.get("state_dir"):
                check_own(state_dir)  # all that is below it was made by root, if nobody else could
            result = {"changed": False, **run(call)}
    except deadlines.OverdueError as error:
        result = {"changed": False, "failed": True, "msg": str(error)}
    except HostModuleError as error:
        result = {"changed": False, **error.result, "failed": True, "msg": str(error)}
    except NovaliteError as error:
        result = {"changed": False, "failed": True, "msg": str(error)}
    if warnings := [*result.pop("warnings", ()), *call.warnings]:
        result["warnings"] = warnings
    return result


def run_host_module(argument_spec: JsonMapping, run: Run, **rules: Json) -> None:
    """`main()` of a module. `rules` are AnsibleModule's: required_if, mutually_exclusive, ..."""
    from ansible.module_utils.basic import AnsibleModule

    module = AnsibleModule(argument_spec=dict(argument_spec), supports_check_mode=True, **rules)
    _end(module, module._name.rpartition(".")[2], module.params, run)


def run_host_step(argument_spec: JsonMapping, steps: t.Mapping[str, types.ModuleType]) -> None:
    """`main()` of the module that runs one of these `steps`, by their names: `step`, with `args`."""
    from ansible.module_utils.basic import AnsibleModule
    from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

    module = AnsibleModule(argument_spec=dict(argument_spec), supports_check_mode=True)
    name, step = module.params["step"], steps[module.params["step"]]
    rules = getattr(step, "SPEC_RULES", {})
    validated = ArgumentSpecValidator(step.ARGUMENT_SPEC, **rules).validate(module.params["args"])
    module.no_log_values.update(validated._no_log_values)
    if validated.error_messages:
        module.fail_json(msg=f"{name}: {'; '.join(validated.error_messages)}")
    _end(module, name, validated.validated_parameters, step.run)


def _end(module: t.Any, name: str, params: JsonMapping, run: Run) -> None:
    """Run what is called `name` with `params`, and end the process of `module` with its result."""
    call = HostCall(params, module.check_mode, module._diff, module.log)
    result = call_module(run, call, deadlines.of_step(name, params))
    for warning in result.pop("warnings", ()):
        module.warn(warning)
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)
