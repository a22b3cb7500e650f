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

from ..module_utils._errors import NovaliteError
from ..module_utils._ledger_module import LEDGER_ARGUMENTS, operation_of, plain, run_operation
from . import _decision_log, _home, _reach


class LedgerAction(ActionBase):
    """Runs the operation of a controller module in the controller's process.

    A module process costs 0.2 s, and importing SQLAlchemy in it 0.3 s more. Ansible's strategy loads an action plug-in
    in the parent of all workers, so here the import is paid once a playbook. `plugins/action/<name>.py` is a link to
    ledger.py there, or a subclass of its own, whose `module` holds ARGUMENT_SPEC and SPEC_RULES.

    The operation is found by the module's name; a subclass may set `operation` itself.
    """

    module: types.ModuleType
    operation: t.ClassVar[t.Any] = None  # an Operation, as a staticmethod
    missing: t.ClassVar[str | None] = None

    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def __init_subclass__(cls, **kwargs: t.Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.operation is None and hasattr(cls, "module"):  # not in a base
            try:
                cls.operation = staticmethod(operation_of(cls.module.__name__.rpartition(".")[2]))
            except ImportError as error:
                cls.missing = missing_required_lib(error.name or "SQLAlchemy")

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        spec = {**self.module.ARGUMENT_SPEC, **LEDGER_ARGUMENTS}
        validated = ArgumentSpecValidator(spec, **self.module.SPEC_RULES).validate(plain(self._task.args))
        if validated.error_messages:
            raise AnsibleActionFail(remove_values("; ".join(validated.error_messages), validated._no_log_values))
        if self.operation is None:
            raise AnsibleActionFail(self.missing)
        task_vars = task_vars or {}
        params = {**validated.validated_parameters}
        params.update(_home.ledger(params, task_vars, self._templar))
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
            _decision_log.write(_decision_log.decisions(self.operation.__name__, result))
        return result

    def _within_limit(self, params: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """The operation's result, which chooses and needs no host that `--limit` leaves out. Raises NovaliteError."""
        reach = task_vars.get("novalite_limit")  # set by the lookup plug-in playbook_variables
        if reach is None:
            return run_operation(self.operation, params, self._task.check_mode)
        if "limit_to" in self.module.ARGUMENT_SPEC:
            chosen = params["limit_to"]
            params["limit_to"] = [host for host in reach if chosen is None or host in chosen]
        name, warnings = self.operation.__name__, []
        result = run_operation(
            self.operation,
            params,
            self._task.check_mode,
            lambda result: warnings.extend(_reach.warnings(name, result, reach)),
        )
        return {**result, "warnings": warnings} if warnings else result

    def complete(self, params: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """`params` with what only the controller's process knows; a subclass may add some."""
        return params
