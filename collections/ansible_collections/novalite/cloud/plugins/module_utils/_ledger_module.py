# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The door that every controller module shares: arguments in, one transaction over the ledger, a result out.

Two edges use it. A task runs the action plug-in of the module's name (plugin_utils/_ledger_action.py), inside the
controller's process. The module file itself (`run_module`) is for running it by hand, and for the tools that read its
arguments and documentation.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import random
import sys
import time
import types
import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib
from ansible.module_utils.common.yaml import HAS_YAML, yaml_load

from ._errors import NovaliteError, UndoneError
from ._json import Json, JsonMapping, JsonObject

Params = JsonMapping
Judge = t.Callable[[JsonMapping], None]  # raises NovaliteError where a result must not be
Operation = t.Callable[[t.Any, Params], JsonObject]  # of SQLAlchemy's connection, which is not known here

# How often a transaction is tried that the database takes back in favour of another one's (deadlocks on PostgreSQL)
ATTEMPTS = 5

# The operations that are one table, tasks/records.py
RECORDS = ("aggregate", "flavor", "floating_ip", "floating_pool", "keypair", "project", "server_group")

# What an option's documentation says that an argument spec says, too
DOCUMENTED_WORDS = ("type", "elements", "required", "choices", "default", "aliases")


def spec_of(documentation: str, no_log: t.Mapping[str, bool] | None = None) -> JsonObject:
    """Make the argument spec of a controller module from its DOCUMENTATION and the fragments which that extends.

    `no_log` has what documentation has no word for, by the option's path, such as `users.password`; False for a name
    that Ansible would take for a secret's.
    """
    document = yaml_load(documentation)
    options: JsonObject = document.get("options", {})
    for fragment in document.get("extends_documentation_fragment", ()):
        for name, option in _of_fragment(fragment).items():
            options[name] = {**option, **options.get(name, {})}
    return _spec(options, {"ledger_url": True, **(no_log or {})}, "")


@functools.cache
def _of_fragment(slug: str) -> JsonObject:
    """The options of a documentation fragment: `<collection>.<file>`, or `<collection>.<file>.<part>`."""
    name, part = [*slug.split(".")[2:], "documentation"][:2]
    file = importlib.import_module(f"{__package__.rpartition('.')[0]}.doc_fragments.{name}")
    return t.cast(JsonObject, yaml_load(getattr(file.ModuleDocFragment, part.upper())).get("options", {}))


def spec_of_step(step: types.ModuleType) -> JsonObject:
    """Make the argument spec of a step: the ledger's options, those of documentation's FRAGMENTS that the step names,
    such as `ledger.project`, and its own ARGUMENT_SPEC."""
    options: JsonObject = {}
    for name in ("ledger", *getattr(step, "FRAGMENTS", ())):
        options.update(_of_fragment(f"novalite.cloud.{name}"))
    return {**_spec(options, {"ledger_url": True}, ""), **step.ARGUMENT_SPEC}


def _spec(options: JsonMapping, no_log: t.Mapping[str, bool], path: str) -> JsonObject:
    spec: JsonObject = {}
    for name, option in options.items():
        spec[name] = {word: option[word] for word in DOCUMENTED_WORDS if word in option}
        if path + name in no_log:
            spec[name]["no_log"] = no_log[path + name]
        if "suboptions" in option:
            spec[name]["options"] = _spec(option["suboptions"], no_log, f"{path}{name}.")
    return spec


def operation_of(name: str) -> Operation:
    """The function that does the work of the module, or step, `name`. Raises ImportError without SQLAlchemy: it is
    imported only when it is used, for tools that have none import this file."""
    file = "records" if name in RECORDS else name
    room = "tasks" if importlib.util.find_spec(f"{__package__}._ledger.tasks.{file}") else "steps"
    return t.cast(Operation, getattr(importlib.import_module(f"{__package__}._ledger.{room}.{file}"), name))


def plain(value: JsonMapping) -> JsonObject:
    """A deep copy of `value` in JSON's types alone.

    Ansible's values, and the names of SQLAlchemy's columns, are subclasses of str, dict and so on, which database
    drivers here, and Ansible there, do not take. And where a playbook uses a variable twice, both places hold the same
    dictionary, which Ansible's validation fills in, in place, and then refuses the second time.
    """
    return t.cast(JsonObject, json.loads(json.dumps(value)))


def run_operation(operation: Operation, params: Params, check_mode: bool, judge: Judge | None = None) -> JsonObject:
    """Open the ledger that `params` name and run `operation` in one transaction. Raises NovaliteError.

    `judge` is shown the result before it is committed; what it raises takes everything back. What the database takes
    back is tried again, up to ATTEMPTS times, from the same `params`.

    One that `brings_up_to_date` is run although the ledger is gone, or behind its hosts, one of which that is to be
    done before (`while_behind`) although it is behind; the others end in a BehindError as soon as they write.

    What takes long and needs no lock comes before it, in the function `prepare_<operation>(engine, params) -> params`
    that may stand beside the operation; its params have `check_mode` as well. What goes in and out is plain(). One that
    `opens_by_itself` is a function of (params, check_mode), and is left to open the ledger.
    """
    if getattr(operation, "opens_by_itself", False):
        return plain(t.cast("t.Callable[[Params, bool], JsonObject]", operation)(plain(params), check_mode))
    from ._ledger.db.engine import open_ledger, place_of, remember, transaction

    prepare = getattr(sys.modules[operation.__module__], f"prepare_{operation.__name__}", None)
    where, anew = (params.get("home"), params.get("ledger_url")), getattr(operation, "brings_up_to_date", False)
    while_behind = anew or getattr(operation, "while_behind", False)
    engine = open_ledger(*where, check_mode=check_mode, anew=anew)

    def attempt() -> JsonObject:
        # prepared anew each time: an operation may change what it is given
        asked = plain(params)
        prepared = asked if prepare is None else prepare(engine, {**asked, "check_mode": check_mode})
        with transaction(engine, check_mode, while_behind=while_behind) as connection:
            result = plain(operation(connection, prepared))
            if judge is not None:
                judge(result)
        if anew and not check_mode:  # it may have become the ledger that its hosts know
            remember(engine, place_of(*where))
        return result

    try:
        for number in range(1, ATTEMPTS):
            try:
                return attempt()
            except UndoneError:
                # whoever begins again at once takes its first rows before the other run, woken up just now, gets them
                time.sleep(random.uniform(0.05, 0.2 * number))
        return attempt()
    finally:
        engine.dispose()


def check_changeable(home: str | None, url: str | None) -> None:
    """Raise NovaliteError where the ledger is gone, or behind its hosts, so that nothing is to be begun with it. One
    that is not there yet, or is older than the code, is made or migrated by whoever uses it first."""
    from ._ledger.db import behind, known
    from ._ledger.db.engine import HEAD, open_as_it_is, place_of, reading
    from ._ledger.db.made import revision_of

    place = place_of(home, url)
    if place.url is None and not os.path.exists(place.path):
        known.check(place, None)
        return
    engine = open_as_it_is(place)
    try:
        with reading(engine) as connection:
            refusal = behind.refusal(connection) if revision_of(connection) == HEAD else None
    finally:
        engine.dispose()
    if refusal is not None:
        raise refusal


def module_of(documentation: str, no_log: t.Mapping[str, bool] | None = None, **rules: Json) -> AnsibleModule:
    """The AnsibleModule of the controller module with this DOCUMENTATION. `no_log` is spec_of()'s; `rules` are
    AnsibleModule's: required_if, mutually_exclusive, ..."""
    if not HAS_YAML:
        AnsibleModule({}).fail_json(msg=missing_required_lib("PyYAML"))
    return AnsibleModule(argument_spec=spec_of(documentation, no_log), supports_check_mode=True, **rules)


def run_module(documentation: str, no_log: t.Mapping[str, bool] | None = None, **rules: Json) -> None:
    """`main()` of the controller module with this DOCUMENTATION: see module_of()."""
    module = module_of(documentation, no_log, **rules)
    try:
        operation = operation_of(yaml_load(documentation)["module"])
    except ImportError as error:
        module.fail_json(msg=missing_required_lib(error.name or "SQLAlchemy"))
    try:
        result = run_operation(operation, module.params, module.check_mode)
    except NovaliteError as error:
        module.fail_json(msg=str(error))
    if not module._diff:
        result.pop("diff", None)
    module.exit_json(**result)
