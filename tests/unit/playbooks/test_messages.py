# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of tasks: texts and lines, never a dict or a list of dicts, however many servers or hosts there are."""

from __future__ import annotations

import re
import typing as t

import pytest
import yaml
from jinja2 import Environment, nodes

from tests.unit.playbooks.test_declarations import YAML

MODULES = ("ansible.builtin.debug", "ansible.builtin.fail", "ansible.builtin.assert")
LINES = {"novalite.cloud.causes", "novalite.cloud.columns", "novalite.cloud.named", "ansible.builtin.split"}
# What results call a text or lines for people: in RETURN, in the docstring of a step, or of a `set_fact` beside
TEXTS = {"console", "in_words", "msg", "ssh_public_key", "table"}
UNBOUNDED = re.compile(r"(failures|errors|messages?'?\)?)[^|]*\|[^}]*join\(")


def messages(value: object) -> t.Iterator[object]:
    """Yield what the tasks of a YAML document have to say."""
    if isinstance(value, list):
        for item in value:
            yield from messages(item)
    elif isinstance(value, dict):
        for module in MODULES:
            said = value.get(module)
            if isinstance(said, dict):
                yield from (said[option] for option in ("msg", "fail_msg", "success_msg") if option in said)
                yield from ([said] if "var" in said else [])  # of any shape
        for item in value.values():
            yield from messages(item)


def is_text(node: nodes.Node) -> bool:
    """Tell whether an expression comes to a text or to lines."""
    if isinstance(node, nodes.Filter):
        if node.name == "default":
            return all(map(is_text, [t.cast("nodes.Node", node.node), *node.args]))
        return node.name in LINES or node.name == "join"
    if isinstance(node, nodes.CondExpr):
        return is_text(node.expr1) and node.expr2 is not None and is_text(node.expr2)
    if isinstance(node, (nodes.Add, nodes.Or)):
        return is_text(node.left) and is_text(node.right)
    if isinstance(node, nodes.Getattr):
        return node.attr in TEXTS
    return isinstance(node, nodes.Const) and isinstance(node.value, str)


def is_told_plainly(message: object) -> bool:
    if isinstance(message, list):
        return all(isinstance(line, str) and is_told_plainly(line) for line in message)
    if not isinstance(message, str):
        return False
    (output,) = Environment().parse(message).body or [nodes.Output([])]
    parts = output.nodes if isinstance(output, nodes.Output) else []
    return len(parts) > 1 or not parts or isinstance(parts[0], nodes.TemplateData) or is_text(parts[0])


@pytest.mark.parametrize("path", YAML, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_task_prints_a_structure(path: t.Any) -> None:
    said = list(messages(yaml.safe_load(path.read_text())))
    assert [message for message in said if not is_told_plainly(message)] == []
    assert [message for message in said if isinstance(message, str) and UNBOUNDED.search(message)] == []


@pytest.mark.parametrize(
    "message",
    [
        "{{ placed.explanations | items2dict('name', 'lines') }}",
        "{{ unused.evicted | map(attribute='name') }}",
        "{{ rebuilt[item.key] }}",
        "{{ compared.unknown }}",
        "{{ rebuilt.servers or 'none' }}",
        {"var": "placed"},
        [["a"]],
    ],
)
def test_a_structure_is_told_from_a_text(message: object) -> None:
    assert not is_told_plainly(message)


def test_all_kinds_of_documents_were_read() -> None:
    assert len([message for path in YAML for message in messages(yaml.safe_load(path.read_text()))]) > 60
