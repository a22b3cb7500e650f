# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every playbook begins with the check of what it was told, and what is declared is what is used."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml
from ansible.vars.reserved import get_reserved_names
from jinja2 import Environment, nodes

from ansible_collections.novalite.cloud.plugins.modules import host_step
from ansible_collections.novalite.cloud.plugins.plugin_utils._ledger_step_actions import ACTIONS
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbook_variables import NAMESPACES, OPTIONS
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbooks import PLAYBOOKS, WORDS
from ansible_collections.novalite.cloud.plugins.plugin_utils._settings import INVENTORY
from api.jobs.kinds import KINDS

ROOT = pathlib.Path(__file__).parents[3]
BOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
ROLES = sorted((ROOT / "roles").glob("*/meta/argument_specs.yml"))
YAML = sorted([*(ROOT / "playbooks").rglob("*.yml"), *(ROOT / "roles").glob("*/[tvdh]*/**/*.yml")])
DESTRUCTIVE = {
    *("confirm_resize", "evacuate", "host_evacuate", "interface_detach", "migrate", "rebuild", "release", "resize"),
    *("revert_resize", "security_groups", "shelve", "shelve_offload", "stack", "stop", "terminate", "unrescue"),
    *("volume_detach", "volume_snapshot", "volumes"),
}
CONDITIONS = {"when", "that", "failed_when", "changed_when", "until"}  # expressions without braces
ANSIBLES = {"dict", "groups", "hostvars", "inventory_hostname", "item", "lookup", "omit", "range", "role_path", "undef"}

SPECS = {
    "novalite.cloud.host_step": {name: step.ARGUMENT_SPEC for name, step in host_step.STEPS.items()},
    "novalite.cloud.ledger_step": {name: action.spec for name, action in ACTIONS.items()},
}


def _plays(path: pathlib.Path) -> list[dict[str, t.Any]]:
    return t.cast("list[dict[str, t.Any]]", yaml.safe_load(path.read_text()))


def _everything(path: pathlib.Path, seen: set[pathlib.Path] | None = None) -> str:
    """A playbook's text without comments, with that of all that it imports and includes, and of the roles."""
    seen = set() if seen is None else seen
    if path in seen:
        return ""
    seen.add(path)
    text = re.sub(r"^#.*$", "", path.read_text(), flags=re.MULTILINE)
    for name in re.findall(r"(?:import_playbook|import_tasks|include_tasks): ([\w./]+\.yml)", text):
        text += _everything((path.parent / name).resolve(), seen)
    return text


def _variables(value: object, condition: bool = False) -> set[str]:
    """Names of the variables that the templates and conditions in a YAML document read, but for a template's own."""
    if isinstance(value, str):
        text = f"{{{{ {value} }}}}" if condition and "{{" not in value else value
        names = list(Environment().parse(text).find_all(nodes.Name))
        return {name.name for name in names} - {name.name for name in names if name.ctx == "store"}
    if isinstance(value, list):
        return {name for item in value for name in _variables(item, condition)}
    if isinstance(value, dict):
        return {name for key, item in value.items() for name in _variables(item, key in CONDITIONS)}
    return set()


def _set_by_tasks(value: object) -> set[str]:
    """Names that the tasks of a YAML document give themselves, which wins over any inventory."""
    if isinstance(value, list):
        return {name for item in value for name in _set_by_tasks(item)}
    return set(value.get("vars", ())).union(*map(_set_by_tasks, value.values())) if isinstance(value, dict) else set()


def test_each_has_a_declaration() -> None:
    assert {path.stem for path in BOOKS} == set(PLAYBOOKS)


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_begins_with_the_check(path: pathlib.Path) -> None:
    first = _plays(path)[0]
    assert first["ansible.builtin.import_playbook"] == "parts/check.yml"
    assert first["vars"] == {"novalite_playbook": path.stem}


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_what_is_declared_is_used(path: pathlib.Path) -> None:
    text = _everything(path.resolve())
    unused = [name for name in PLAYBOOKS[path.stem].variables if not re.search(rf"\b{OPTIONS}\.{name}\b", text)]
    assert not unused


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_read_that_the_inventory_may_have_for_other_purposes(path: pathlib.Path) -> None:
    """Options are read from one dictionary, which the inventory has no part in; all else carries a name of ours."""
    document = yaml.safe_load(path.read_text())
    foreign = _variables(document) - (_set_by_tasks(document) if "roles" in path.parts else set()) - ANSIBLES
    assert not {name for name in foreign if not name.startswith(("ansible_", "seed_", *NAMESPACES))}


def test_no_option_is_named_like_a_method_of_a_dictionary() -> None:
    """Jinja takes the method in `novalite_options.items`."""
    assert not WORDS & set(dir(dict))


@pytest.mark.parametrize("name", sorted(PLAYBOOKS))
def test_needs_are_variables(name: str) -> None:
    book = PLAYBOOKS[name]
    assert {word for words in book.needs for word in words} <= set(book.variables)
    words = [word for variable in book.variables.values() for word in variable.aliases] + list(book.variables)
    assert len(words) == len(set(words))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_jobs_of_the_api_say_what_their_playbook_knows(kind: str) -> None:
    book = PLAYBOOKS[KINDS[kind].playbook.removesuffix(".yml")]
    known = {word for name, variable in book.variables.items() for word in (name, *variable.aliases)}
    assert not KINDS[kind].merge or "uuids" in known
    assert set(KINDS[kind].schema["properties"]) - {"limit"} <= known


@pytest.mark.parametrize(
    "path", sorted((ROOT / "playbooks").rglob("*.yml")), ids=lambda path: str(path.relative_to(ROOT / "playbooks"))
)
def test_where_the_ledger_is_stands_in_no_playbook(path: pathlib.Path) -> None:
    """It is decided in one place, plugin_utils/_home.py; a copy was forgotten more than once."""
    text = re.sub(r"^#.*$", "", path.read_text(), flags=re.MULTILINE)
    assert not re.search(r"\b(NOVALITE_HOME|NOVALITE_LEDGER_URL|novalite_ledger_url|novalite_home)\b", text)


def test_no_variable_is_reserved_by_ansible() -> None:
    assert not {name for book in PLAYBOOKS.values() for name in book.variables} & get_reserved_names()


def test_the_roles_options_are_known_with_their_types() -> None:
    options: dict[str, str] = {}
    for path in ROLES:
        for entry in yaml.safe_load(path.read_text())["argument_specs"].values():
            options.update({name: option["type"] for name, option in entry["options"].items()})
    # what playbooks hand to roles is nothing for a person to say
    internal = (
        "_plan",
        "_diffs",
        "_peers",
        "_groups",
        "_state",
        "_step",
        "_failed",
        "_keep_disks",
        "_transfers",
        "_leaving",
    )
    declared = {
        name: variable.kind if variable.kind != "str" or options.get(name) != "path" else "path"
        for name, variable in INVENTORY.items()
        if not name.startswith("novalite_")
    }
    assert declared == {name: kind for name, kind in options.items() if not name.endswith(internal)}


@pytest.mark.parametrize("path", [path for path in YAML if "playbooks" in path.parts], ids=lambda path: path.stem)
def test_the_users_ansible_cfg_ends_no_play(path: pathlib.Path) -> None:
    """Hosts that do not answer are the controller's to judge; a build that is cut off goes on there, and what was done
    and not recorded has to be found again."""
    for play in _plays(path):
        if play.get("tasks") or play.get("roles"):
            assert play["timeout"] == 0, play["name"]
            assert play.get("connection") == "local" or play["any_errors_fatal"] is False, play["name"]


@pytest.mark.parametrize("name", sorted(DESTRUCTIVE))
def test_destructive_playbooks_name_what_they_touch(name: str) -> None:
    """Of those that do it, test_named_first.py plays some."""
    assert "novalite.cloud.named" in _everything((ROOT / f"playbooks/{name}.yml").resolve())


def test_no_task_is_tagged() -> None:
    """The lookup playbook_variables relies on it when it refuses what would leave all tasks out."""
    assert not [path for path in YAML if re.search(r"^[ -]*tags:", path.read_text(), re.MULTILINE)]


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_of_plays_and_tasks_say_what_they_are_about(path: pathlib.Path) -> None:
    """A run prints them without the names before them: a pronoun refers to nothing there."""
    pronouns = re.compile(r"\b(it|them|they|these|those|this|one)\b(?! (host|ledger|release)\b)", re.I)
    names = re.findall(r"^ *- name: ([^#\n]*)", path.read_text(), flags=re.MULTILINE)
    assert not [name for name in names if pronouns.search(name)]


def _steps(value: object) -> t.Iterator[tuple[str, dict[str, t.Any]]]:
    """The tasks in a YAML document that take a step: the module, and what it is given."""
    for item in value if isinstance(value, list) else ():
        yield from _steps(item)
    for key, item in value.items() if isinstance(value, dict) else ():
        if key in SPECS:
            yield key, item
        yield from _steps(item)


@pytest.mark.parametrize("path", YAML, ids=lambda path: str(path.relative_to(ROOT)))
def test_steps_that_are_taken_are_there_with_their_options(path: pathlib.Path) -> None:
    """Checks of modules by ansible-lint."""
    for module, task in _steps(yaml.safe_load(path.read_text())):
        spec, args = SPECS[module][task["step"]], task.get("args", {})
        missing = {name for name, option in spec.items() if option.get("required")} - args.keys()
        assert not args.keys() - spec.keys() and not missing, (task["step"], args)


def test_each_step_is_taken() -> None:
    taken = {(module, task["step"]) for path in YAML for module, task in _steps(yaml.safe_load(path.read_text()))}
    assert {("novalite.cloud.ledger_step", step) for step in ACTIONS} <= taken


@pytest.mark.parametrize("name", [name for name in PLAYBOOKS if PLAYBOOKS[name].steps is not None])
def test_steps_that_are_declared_are_those_that_are_taken(name: str) -> None:
    """Another one would be right, and imported anew by each worker that takes it."""
    text = _everything(ROOT / "playbooks" / f"{name}.yml")
    for file in set(re.findall(r"novalite_steps: (\w+\.yml)", text)):
        text += _everything(ROOT / "roles/spawn/tasks" / file)
    assert set(re.findall(r"(?m)^ +step: (\w+)$", text)) == set(PLAYBOOKS[name].steps or ())
