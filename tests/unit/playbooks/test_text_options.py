# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists and booleans of roles and playbooks mean the same however an inventory, INI's above all, or a play has them."""

from __future__ import annotations

import json
import pathlib
import shlex
import typing as t

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.vars.manager import VariableManager
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment, nodes

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbook_variables import options
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbooks import PLAYBOOKS
from ansible_collections.novalite.cloud.plugins.plugin_utils._settings import INVENTORY
from ansible_collections.novalite.cloud.plugins.plugin_utils._texts import as_bool, as_list

ROOT = pathlib.Path(__file__).parents[3]
FILES = [
    path
    for top in ("roles", "playbooks")
    for path in (ROOT / top).resolve().rglob("*.*")
    if path.suffix in (".yml", ".j2")
]
CONDITIONS = {"when", "that", "failed_when", "changed_when", "until"}  # expressions without braces
LISTS = sorted(name for name, variable in INVENTORY.items() if variable.kind == "list")
BOOLS = sorted(name for name, variable in INVENTORY.items() if variable.kind == "bool")
NAMES = st.lists(st.from_regex(r"%?[a-z][a-z0-9._/-]{0,8}", fullmatch=True), min_size=1, max_size=4)
WRITTEN: dict[str, t.Callable[[list[str]], str]] = {
    "names": ",".join,
    "names with blanks": ", ".join,
    "JSON": json.dumps,
    "Python's": repr,
    "YAML's": lambda names: f"[{', '.join(json.dumps(name) if name.startswith('%') else name for name in names)}]",
}
TRUE, FALSE = ("true", "True", "yes", "on", "1", "y", "TRUE"), ("false", "False", "no", "off", "0", "n", "FALSE")
WORDS = {**dict.fromkeys(TRUE, True), **dict.fromkeys(FALSE, False)}
IN_BOOK = [
    (book, word, variable.kind, variable.commas)
    for book, declared in PLAYBOOKS.items()
    for word, variable in declared.variables.items()
    if variable.kind in ("list", "bool")
]


@given(NAMES, st.sampled_from(sorted(WRITTEN)))
def test_a_list_is_the_same_in_every_spelling(names: list[str], spelling: str) -> None:
    if spelling == "YAML's" and any(name in (*TRUE, *FALSE, "null") for name in names):
        names = ["x"]  # YAML's own words
    assert as_list(WRITTEN[spelling](names)) == as_list(names) == names


def test_what_is_none_is_refused_or_empty() -> None:
    assert as_list("") == as_list(None) == [] and as_list({"name": "tank"}) == [{"name": "tank"}]
    for value in (5, True, "[a, b", "[a: b: c]"):
        with pytest.raises(ValueError, match="is not a list"):
            as_list(value)
    for word in ("maybe", "", None, [True]):
        with pytest.raises(ValueError, match="is not a boolean"):
            as_bool(word)


def of_ini(path: pathlib.Path, lines: str) -> dict[str, t.Any]:
    """What Ansible makes of an inventory by INI, for its host hv1."""
    path.write_text(lines)
    loader = DataLoader()
    inventory = InventoryManager(loader=loader, sources=[str(path)])
    return dict(VariableManager(loader=loader, inventory=inventory).get_vars(host=inventory.get_host("hv1")))


def templates(value: object, condition: bool = False) -> t.Iterator[str]:
    """The templates of a YAML document; its conditions, too."""
    if isinstance(value, str):
        yield f"{{{{ {value} }}}}" if condition and "{{" not in value else value
    elif isinstance(value, list):
        for item in value:
            yield from templates(item, condition)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from templates(item, key in CONDITIONS)


def untyped(node: nodes.Node, option: str, name: str) -> t.Iterator[bool]:
    """For each time that a template reads the option: whether it does so without this filter, before or after the one
    that has a default."""
    if isinstance(node, nodes.Filter) and node.name == name:
        inner = node.node
        if isinstance(inner, nodes.Filter) and inner.name == "default":
            inner = inner.node
        if isinstance(inner, nodes.Name) and inner.name == option:
            yield False
            return
    if isinstance(node, nodes.Test) and node.name == "defined":
        return
    if isinstance(node, nodes.Name) and node.name == option:
        yield True
    for child in node.iter_child_nodes():
        yield from untyped(child, option, name)


@pytest.mark.parametrize("option", [*LISTS, *BOOLS])
@pytest.mark.parametrize("place", ["of the group", "of the host"])
def test_a_role_reads_what_ini_means(tmp_path: pathlib.Path, option: str, place: str) -> None:
    texts = {"deploy": ["deploy"], "a,b": ["a", "b"], "[a, b]": ["a", "b"], '["a", "b"]': ["a", "b"], "['a']": ["a"]}
    values: dict[str, t.Any] = texts if option in LISTS else WORDS
    typed: t.Callable[[t.Any], object] = as_list if option in LISTS else as_bool
    for text, value in values.items():
        of_group = f"[compute]\nhv1\n[compute:vars]\n{option}={text}\n"
        of_host = f"[compute]\nhv1 {option}={shlex.quote(text)}\n"
        variables = of_ini(tmp_path / "hosts.ini", of_group if place == "of the group" else of_host)
        assert typed(variables[option]) == value, text


# Read by Python code, handed to a module's argument of that type where it may be left out, or another one's default
ELSEWHERE = {"novalite_extra_variables", "compute_node_enabled", "novalite_vnc"}


@pytest.mark.parametrize("option", sorted({*LISTS, *BOOLS} - ELSEWHERE))
def test_each_use_of_an_option_gives_it_its_type(option: str) -> None:
    name = f"novalite.cloud.{'as_list' if option in LISTS else 'as_bool'}"
    uses = {
        (path.name, text, bare)
        for path in FILES
        if "defaults" not in path.parts  # where one option is another one's default
        for text in ([path.read_text()] if path.suffix == ".j2" else templates(yaml.safe_load(path.read_text())))
        if option in text
        for bare in untyped(Environment().parse(text), option, name)
    }
    assert uses and not {use for use in uses if use[-1]}


@pytest.mark.parametrize(("book", "word", "kind", "commas"), IN_BOOK)
def test_a_play_that_imports_a_playbook_may_say_a_text(book: str, word: str, kind: str, commas: bool) -> None:
    """So does a variable of an INI inventory to which that play leads."""
    if kind == "bool":
        for text, value in WORDS.items():
            assert options(book, {word: text}, {})[word] is value
    elif commas:
        for text in ("a", "[a]", '["a"]'):
            assert options(book, {word: text}, {})[word] == ["a"]
    else:
        spellings: list[t.Any] = [{"name": "a"}, '[{"name": "a"}]', [{"name": "a"}]]
        for spelling in spellings:
            assert options(book, {word: spelling}, {})[word] == [{"name": "a"}]
        with pytest.raises(NovaliteError, match=rf"{word}(='a')? is not a list"):
            options(book, {word: "a"}, {})
