# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The base of the controller modules' action plug-ins."""

from __future__ import annotations

import types
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.basic import missing_required_lib
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase

from ..module_utils._errors import ImageNotFoundError, NovaliteError
from ..module_utils._json import JsonMapping, JsonObject
from ..module_utils._ledger_module import Judge, operation_of, plain, run_operation, spec_of, spec_of_step
from ..module_utils._model import yaml_types
from . import _decision_log, _home, _reach


class LedgerAction(ActionBase):
    """Runs the operation of a controller module in the controller's process.

    A module process costs 0.2 s, and importing SQLAlchemy in it 0.3 s more. Ansible's strategy loads an action plug-in
    in the parent of all workers, so here the import is paid once a playbook. `plugins/action/<name>.py` is a link to
    ledger.py there, or a subclass of its own, whose `module` holds DOCUMENTATION, and NO_LOG and SPEC_RULES if it needs
    them. Of a step (_ledger_step_actions.py) it is the file of the operation, with an ARGUMENT_SPEC instead.

    The operation is found by the module's name.
    """

    module: types.ModuleType
    spec: t.ClassVar[JsonObject]  # made of the documentation once, in the parent of all workers
    missing: t.ClassVar[str | None] = None  # what the controller lacks for the operation

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if hasattr(cls, "module"):  # not in a base
            if hasattr(cls.module, "ARGUMENT_SPEC"):  # of steps, and of what runs on hosts, without YAML
                cls.spec = spec_of_step(cls.module)
            else:
                cls.spec = spec_of(cls.module.DOCUMENTATION, getattr(cls.module, "NO_LOG", None))
            try:
                operation_of(cls.name())
            except ImportError as error:
                cls.missing = missing_required_lib(error.name or "SQLAlchemy")

    @classmethod
    def name(cls) -> str:
        """The name of the module, and of its operation."""
        return cls.module.__name__.rpartition(".")[2]

    def operate(self, params: JsonMapping, judge: Judge | None = None) -> JsonObject:
        """Run the operation on the ledger that `params` name, as run_operation() does. Raises NovaliteError.

        An image that the ledger does not know, and the catalogue does, is fetched and recorded first.
        """
        fetched: dict[str, tuple[str, ...]] = {}
        while True:
            try:
                result = run_operation(operation_of(self.name()), params, self._task.check_mode, judge)
            except ImageNotFoundError as error:
                if error.image in fetched:
                    raise
                from ..module_utils._image_catalog.recorded import record

                fetched[error.image] = record(error, params, self._task.check_mode, self._display.display)
                continue
            warnings = [*result.get("warnings", ()), *(warning for each in fetched.values() for warning in each)]
            return {**result, "warnings": warnings} if warnings else result

    def where(self, params: JsonMapping, task_vars: JsonMapping) -> JsonObject:
        """The ledger of a task with these `params`: `home`, `ledger_url`. AnsibleActionFail without SQLAlchemy."""
        if self.missing is not None:
            raise AnsibleActionFail(self.missing)
        return _home.ledger(params, task_vars, self._templar)

    def run(self, tmp: str | None = None, task_vars: JsonObject | None = None) -> JsonObject:
        super().run(tmp, task_vars)
        rules = getattr(self.module, "SPEC_RULES", {})
        self.check_types()
        validated = ArgumentSpecValidator(self.spec, **rules).validate(plain(self._task.args))
        if validated.error_messages:
            raise AnsibleActionFail(remove_values("; ".join(validated.error_messages), validated._no_log_values))
        task_vars = task_vars or {}
        params = {**validated.validated_parameters}
        params.update(self.where(params, task_vars))
        try:
            params = self.complete(params, task_vars)
            result = self._within_limit(params, task_vars)
        except NovaliteError as error:
            result = {"failed": True, "msg": str(error)}
        if not self._task.diff:
            result.pop("diff", None)
        if result.pop("secret", False):
            result["_ansible_no_log"] = True  # for the steps that follow, not for the screen
        # An error could hold the ledger's URL. What else is secret is in no result by construction; to blot out every
        # occurrence of it, as modules do, would garble each name that a weak password happens to be.
        result = remove_values(result, {params["ledger_url"]} if params["ledger_url"] else set())
        if not self._task.check_mode:
            _decision_log.write(_decision_log.decisions(self.name(), result))
        return result

    def _within_limit(self, params: JsonObject, task_vars: JsonObject) -> JsonObject:
        """The operation's result, which chooses and needs no host that `--limit` leaves out. Raises NovaliteError."""
        reach = task_vars.get("novalite_limit")  # set by the lookup plug-in playbook_variables
        if reach is None:
            return self.operate(params)
        if "limit_to" in self.spec:
            chosen = params["limit_to"]
            params["limit_to"] = [host for host in reach if chosen is None or host in chosen]
        warnings: list[str] = []
        result = self.operate(params, lambda result: warnings.extend(_reach.warnings(self.name(), result, reach)))
        return {**result, "warnings": warnings} if warnings else result

    def check_types(self) -> None:
        """Raise AnsibleActionFail for what YAML converted among the task's arguments."""
        try:
            self.refuse_converted(self.spec)
        except NovaliteError as error:
            raise AnsibleActionFail(str(error)) from error

    def refuse_converted(self, spec: JsonMapping) -> None:
        """Raise NovaliteError for what YAML converted among the task's arguments: Ansible would make texts of it."""
        yaml_types.refuse(spec, self._task.args)

    def complete(self, params: JsonObject, task_vars: JsonObject) -> JsonObject:
        """`params` with what only the controller's process knows; a subclass may add some."""
        return params
