# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The actions of the steps in the ledger: that of all controller modules, and those that do more than the task says."""

from __future__ import annotations

import importlib
import os
import time
import typing as t

from ansible import context
from ansible.template import trust_as_template

from ..module_utils._errors import NovaliteError
from ..module_utils._json import Json, JsonMapping, JsonObject
from ..module_utils._ledger_module import Judge, plain, spec_of
from ..module_utils._model import yaml_types
from ..module_utils._stack import source
from ..modules import ledger_step
from . import _host_expectations
from ._ledger_action import LedgerAction
from ._startup import Actions


class LaunchPlan(LedgerAction):
    """Plans after a look at what the inventory says of the hosts that it may choose from."""

    def complete(self, params: JsonObject, task_vars: JsonObject) -> JsonObject:
        if params["hosts"] is None or not params["instances"]:
            return params
        reach = task_vars.get("novalite_limit")  # see LedgerAction
        names = [name for name in params["hosts"] if reach is None or name in reach]
        return {**params, "expected": _host_expectations.of_hosts(names, task_vars, self._templar, self._loader)}


class StackPlan(LedgerAction):
    """Reads the document, and refuses what JSON has no word for."""

    def refuse_converted(self, spec: JsonMapping) -> None:
        _refuse_converted(source.unwrapped(self._task.args.get("document")), _extra_vars_file())
        super().refuse_converted(spec)

    def complete(self, params: JsonObject, task_vars: JsonObject) -> JsonObject:
        """Add the document of a file, its templates resolved, or the file that a document came from."""
        if params["document"] is not None:
            return {**params, "path": _extra_vars_file()}
        path = os.path.abspath(os.path.expanduser(params["path"]))
        written = source.unwrapped(source.read(path))
        _refuse_converted(written, path)
        document = self._templar.template(_trusted(written))
        return {**params, "path": path, "document": plain({"": document})[""]}


class Repair(LedgerAction):
    """Repairs the ledger, and returns in a later second of its clock than it wrote in.

    The ledger keeps whole seconds, and a comparison with a host judges no instance that was changed in the second in
    which the look began, or later: in the same one, what was just repaired would be left to the next run.
    """

    def operate(self, params: JsonMapping, judge: Judge | None = None) -> JsonObject:
        result = super().operate(params, judge)
        repairs = params.get("state", "resolve") == "resolve"  # the other states are a migration's own
        if repairs and result["changed"] and not self._task.check_mode:
            time.sleep(1.0)
        return result


def _refuse_converted(document: Json, path: str | None) -> None:
    """Raise NovaliteError, with its place, for what JSON, and so the document's schema, has no word for."""
    if isinstance(document, dict) and (converted := yaml_types.first(None, document)) is not None:
        what = yaml_types.described(converted.where, document)
        raise NovaliteError(f"{source.place(path, converted.where)}{converted.complaint(what)}")


def _trusted(value: Json) -> Json:
    """`value`, whose texts may be templates: whoever runs the playbook wrote the document."""
    if isinstance(value, dict):
        return {key: _trusted(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_trusted(item) for item in value]
    return trust_as_template(value) if isinstance(value, str) and "{" in value else value


def _extra_vars_file() -> str | None:
    """The last file of `-e @file` that holds a document; for the line numbers in errors."""
    files = [os.path.abspath(text[1:]) for text in context.CLIARGS.get("extra_vars", ()) if text.startswith("@")]
    for path in reversed(files):
        try:
            data = source.read(path)
        except source.NovaliteError:
            continue
        if isinstance(data, dict) and source.WRAPPER in data:
            return path
    return None


SPEC = spec_of(ledger_step.DOCUMENTATION)
_OWN: t.Mapping[str, type[LedgerAction]] = {
    "launch_plan": LaunchPlan,
    "ledger_heal": Repair,
    "server_migration": Repair,
    "stack_plan": StackPlan,
}
_OPERATIONS = f"{__package__.rpartition('.')[0]}.module_utils._ledger.steps"


def _action_of(step: str) -> type[LedgerAction]:
    module = importlib.import_module(f"{_OPERATIONS}.{step}")
    return type(step, (_OWN.get(step, LedgerAction),), {"module": module})


ACTIONS = Actions(SPEC["step"]["choices"], _action_of)
