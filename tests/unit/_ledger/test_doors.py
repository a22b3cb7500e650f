# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The two doors that lead to the operations: the action plug-ins, and the module files on their own."""

from __future__ import annotations

import importlib
import json
import pathlib
import re
import sys
import types
import typing as t
import unittest.mock

import pytest
import sqlalchemy as sa
import yaml
from ansible.errors import AnsibleActionFail
from ansible.module_utils.testing import patch_module_args

from ansible_collections.novalite.cloud.plugins.action import ledger_step as step_action
from ansible_collections.novalite.cloud.plugins.action.flavor import ActionModule
from ansible_collections.novalite.cloud.plugins.doc_fragments.ledger import ModuleDocFragment as LedgerFragment
from ansible_collections.novalite.cloud.plugins.module_utils import _ledger_module
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import spec_of
from ansible_collections.novalite.cloud.plugins.modules import flavor
from ansible_collections.novalite.cloud.plugins.plugin_utils._ledger_action import LedgerAction
from ansible_collections.novalite.cloud.plugins.plugin_utils._ledger_step_actions import ACTIONS as STEPS

PLUGINS = pathlib.Path(_ledger_module.__file__).parents[1]
TINY = {"name": "m1.tiny", "vcpus": 1, "memory_mb": 512}
SECRET = re.compile(r"(pass(?!ive)|secret|token|key|user_data$|ledger_url)[^.]*$")
SECRETS = ("admin_password", "ledger_url", "password", "password_hash", "user_data")
# `compute_host` runs on the hypervisor, and its action records what it found
DOORS = sorted(
    {path.stem for path in (PLUGINS / "module_utils/_ledger/tasks").glob("*.py")} - {"compute_host", "records"}
    | {*_ledger_module.RECORDS}
)


def act(args: dict[str, t.Any], check_mode: bool = False, diff: bool = True) -> dict[str, t.Any]:
    """Run the task `novalite.cloud.flavor` as a worker does."""
    task = types.SimpleNamespace(args=args, check_mode=check_mode, diff=diff, async_val=0)
    action = ActionModule(task, *[unittest.mock.MagicMock() for _ in range(5)])
    return action.run(task_vars={})


def flavors(home: pathlib.Path) -> list[str]:
    engine = open_ledger(str(home))
    with reading(engine) as connection:
        names = list(connection.execute(sa.select(tables.flavor.c.name)).scalars())
    engine.dispose()
    return names


def test_a_task_does_the_work_once(home: pathlib.Path) -> None:
    args = {"flavors": [TINY], "home": str(home)}
    first, again = act(args), act(args)
    assert first["changed"] and first["diff"]["before"] == {"flavors": {}}
    assert not again["changed"] and again["flavors"] == first["flavors"]
    # Ansible's variable storage takes plain types only
    assert {type(key) for key in first["flavors"][0]} == {str}


def test_a_task_in_check_mode_writes_nothing(home: pathlib.Path, tmp_path: pathlib.Path) -> None:
    assert act({"flavors": [TINY], "home": str(home)}, check_mode=True)["changed"]
    assert flavors(home) == []
    assert act({"flavors": [TINY], "home": str(tmp_path / "none")}, check_mode=True)["changed"]
    assert not (tmp_path / "none").exists()


def test_a_task_shows_a_difference_only_when_asked(home: pathlib.Path) -> None:
    result = act({"flavors": [TINY], "home": str(home)}, diff=False)
    assert result["changed"] and "diff" not in result


def test_a_task_that_fails_says_why_in_one_line(home: pathlib.Path) -> None:
    result = act({"flavors": [{"name": "x"}], "home": str(home)})
    assert result == {"failed": True, "msg": "flavor 'x' does not exist yet: give its vcpus to make it"}


def test_a_variable_may_be_used_twice(home: pathlib.Path) -> None:
    specs = {"a": "b"}
    again = {**TINY, "name": "m1.copy", "extra_specs": specs}
    assert act({"flavors": [{**TINY, "extra_specs": specs}, again], "home": str(home)})["changed"]
    assert specs == {"a": "b"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({}, "missing required arguments: flavors"),
        ({"flavors": [TINY], "sate": "absent"}, "sate. Supported parameters include"),
        ({"flavors": [{**TINY, "vcpus": "many"}]}, "cannot be converted to an int"),
        ({"flavors": [TINY], "state": "gone"}, "must be one of: present, absent"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_opened(args: dict[str, t.Any], message: str) -> None:
    with pytest.raises(AnsibleActionFail, match=message):
        act({**args, "home": "/no/such/place"})


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"{_ledger_module.__package__}._ledger.tasks.records"
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)

    class Action(LedgerAction):
        module = flavor

    assert Action.missing is not None
    monkeypatch.setattr(ActionModule, "missing", Action.missing)
    with pytest.raises(AnsibleActionFail, match=r"sqlalchemy.*on .*Python"):
        act({"flavors": [TINY]})
    assert name not in sys.modules


def test_the_module_on_its_own_does_the_same(home: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    with patch_module_args({"flavors": [TINY], "home": str(home), "_ansible_diff": True}), pytest.raises(SystemExit):
        flavor.main()
    result = json.loads(capsys.readouterr().out)
    assert result["changed"] and result["diff"]["after"]["flavors"]["m1.tiny"]["vcpus"] == 1
    assert flavors(home) == ["m1.tiny"]
    with patch_module_args({"flavors": [{"name": "x"}], "home": str(home)}), pytest.raises(SystemExit):
        flavor.main()
    assert json.loads(capsys.readouterr().out)["msg"] == "flavor 'x' does not exist yet: give its vcpus to make it"


@pytest.mark.parametrize("name", DOORS)
def test_every_controller_module_has_its_action_operation_and_group(name: str) -> None:
    action = importlib.import_module(f"ansible_collections.novalite.cloud.plugins.action.{name}").ActionModule
    module = importlib.import_module(f"ansible_collections.novalite.cloud.plugins.modules.{name}")
    groups = yaml.safe_load((PLUGINS.parent / "meta" / "runtime.yml").read_text())["action_groups"]
    assert issubclass(action, LedgerAction)
    assert action.module is module
    assert action.missing is None and callable(_ledger_module.operation_of(action.name()))
    assert name in groups["ledger"] and name in groups["cloud"]


def test_every_step_has_its_file_and_its_operation() -> None:
    operations = (PLUGINS / "module_utils/_ledger/steps").glob("*.py")
    assert set(STEPS) == {path.stem for path in operations if "\nARGUMENT_SPEC" in path.read_text()}
    for name, action in STEPS.items():
        assert action.missing is None and action.name() == name and callable(_ledger_module.operation_of(name))
        assert {"home", "ledger_url"} <= action.spec.keys()  # the task's own are among them


def take_step(step: str, check_mode: bool = False, **task_args: t.Any) -> dict[str, t.Any]:
    """Run the task `novalite.cloud.ledger_step` as a worker does."""
    args = {"step": step, **task_args}
    task = types.SimpleNamespace(args=args, check_mode=check_mode, diff=False, async_val=0)
    result: dict[str, t.Any] = step_action.ActionModule(task, *[unittest.mock.MagicMock() for _ in range(5)]).run()
    assert task.args == args  # Ansible runs it again with `until`
    return result


def test_a_step_is_taken_on_the_ledger_of_its_task(home: pathlib.Path) -> None:
    act({"flavors": [TINY], "home": str(home)})
    assert take_step("firewall_plan", home=str(home)) == {"changed": False, "hosts": {}}
    assert take_step("firewall_plan", args={"home": str(home), "hosts": []}) == {"changed": False, "hosts": {}}
    assert take_step("firewall_plan", home=str(home), args={"hosts": ["hv9"]})["msg"].startswith(
        "unknown compute host 'hv9'"
    )


@pytest.mark.parametrize(
    ("step", "args", "message"),
    [
        ("port_plan", {}, "missing required arguments: ports"),
        ("port_plan", {"ports": [], "port": 1}, "port. Supported parameters include"),
        ("server_interface", {"uuids": [], "interfaces": []}, "mutually exclusive"),
        ("server_state", {"outcomes": [{"uuids": [], "state": "gone"}]}, "value of state must be one of"),
        ("host_identity", {"state": "renamed", "machines": {}, "name": "hv1"}, "missing: new_name"),
        ("server_adopt", {"name": "web"}, "state is adopted but all of the following are missing: host, domain"),
        ("firewall_plan", "hosts=hv1", "args of the step firewall_plan: give a dictionary"),
        ("server_migration", {"action": "fly"}, "value of action must be one of"),
        ("nosuch", {}, "value of step must be one of"),
    ],
)
def test_the_arguments_of_a_step_are_checked(step: str, args: t.Any, message: str, home: pathlib.Path) -> None:
    with pytest.raises(AnsibleActionFail, match=message):
        take_step(step, home=str(home), args=args)


def test_what_a_step_is_not_to_tell_is_in_no_message(home: pathlib.Path) -> None:
    secret = {"admin_password": "canary-PA55", "files": [{"path": "/a", "content": "canary-PA55"}]}
    args = {"action": "canary-PA55", "servers": ["web"], "request": secret}
    with pytest.raises(AnsibleActionFail) as refused:
        take_step("server_action", home=str(home), args=args)
    assert "value of action must be one of" in str(refused.value) and "canary" not in str(refused.value)


def test_a_step_in_check_mode_writes_nothing(home: pathlib.Path) -> None:
    document = {"name": "a", "project": "demo", "flavors": [TINY]}
    args = {"phase": "records", "document": document}
    assert take_step("stack_plan", check_mode=True, home=str(home), args=args)["pending"] == 2
    assert flavors(home) == []
    assert "diff" not in take_step("stack_plan", home=str(home), args=args)
    assert flavors(home) == ["m1.tiny"]


def options_of(module: types.ModuleType) -> dict[str, dict[str, t.Any]]:
    """All options of a module, by path."""
    own = getattr(module, "ARGUMENT_SPEC", None)  # of steps, and of those that run on hosts
    todo = [("", own or spec_of(module.DOCUMENTATION, getattr(module, "NO_LOG", None)))]
    options: dict[str, dict[str, t.Any]] = {}
    for path, spec in todo:
        options |= {path + name: option for name, option in spec.items()}
        todo += [(f"{path}{name}.", option["options"]) for name, option in spec.items() if "options" in option]
    return options


@pytest.mark.parametrize(
    "path",
    sorted([*(PLUGINS / "modules").glob("*.py"), *(PLUGINS / "module_utils/_steps").glob("*.py")])
    + sorted(PLUGINS / f"module_utils/_ledger/steps/{step}.py" for step in STEPS),
    ids=lambda path: path.stem,
)
def test_every_option_named_like_a_secret_says_whether_it_is_logged(path: pathlib.Path) -> None:
    name = ".".join(path.relative_to(PLUGINS).with_suffix("").parts)
    module = importlib.import_module(f"ansible_collections.novalite.cloud.plugins.{name}")
    options = options_of(module)
    assert not [name for name, option in options.items() if SECRET.search(name) and "no_log" not in option]
    assert {**getattr(module, "NO_LOG", {})}.keys() <= options.keys()
    assert all(options[name]["no_log"] for name in options if name.rpartition(".")[2] in SECRETS)


def test_modules_say_which_action_groups_they_are_in() -> None:
    groups = yaml.safe_load((PLUGINS.parent / "meta" / "runtime.yml").read_text())["action_groups"]
    groups_by_module = {}
    for path in sorted((PLUGINS / "modules").glob("*.py")):
        module = importlib.import_module(f"ansible_collections.novalite.cloud.plugins.modules.{path.stem}")
        documents = [yaml.safe_load(module.DOCUMENTATION)]
        for name in documents[0].get("extends_documentation_fragment", ()):
            if name.startswith("novalite.cloud.ledger"):
                part = name.removeprefix("novalite.cloud.ledger").lstrip(".") or "documentation"
                documents.append(yaml.safe_load(getattr(LedgerFragment, part.upper())))
        for document in documents:
            if group := document.get("attributes", {}).get("action_group"):
                groups_by_module[path.stem] = {name.rpartition(".")[2] for name in group["membership"]}
    assert len(groups_by_module) > 25
    assert groups_by_module == {
        name: {group for group, names in groups.items() if name in names} for name in groups_by_module
    }
