# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compiled templates of playbooks and roles, kept for all processes that are forked later.

Ansible does each task in a process of its own, which compiles all that the task uses anew: a third of its time. What
Jinja makes of a text depends on the text, and on how its environment reads it; what it stands for is looked up when it
is rendered.
"""

from __future__ import annotations

import contextlib
import pathlib
import types
import typing as t

import jinja2
import yaml

# Attributes of an environment by which it reads a text
SYNTAX = (
    *("block_start_string", "block_end_string", "variable_start_string", "variable_end_string"),
    *("comment_start_string", "comment_end_string", "line_statement_prefix", "line_comment_prefix"),
    *("trim_blocks", "lstrip_blocks", "newline_sequence", "keep_trailing_newline"),
)
CONDITIONS = {"when", "until", "changed_when", "failed_when", "that"}  # keys of expressions without braces


class Kept:
    """Memory of `jinja2.Environment`, which is asked before a text is compiled."""

    def __init__(self) -> None:
        self._codes: dict[tuple[object, ...], types.CodeType] = {}
        self._expression: str | None = None  # the one that is compiled now
        self.environment: jinja2.Environment | None = None  # the last that compiled something

    def install(self) -> None:
        """Have all environments of this process, and of those that it forks, ask this memory."""
        compile_anew, expression_anew = jinja2.Environment.compile, jinja2.Environment.compile_expression

        def compile_once(environment: jinja2.Environment, source: t.Any, *places: t.Any, **more: t.Any) -> t.Any:
            self.environment = environment
            text = source if isinstance(source, str) else self._expression
            # how Ansible reads a backslash depends on who asks, and a file's name stands in its code
            if text is None or "\\" in text or any(places) or any(more.values()):
                return compile_anew(environment, source, *places, **more)
            key = (text, source is text, type(environment), *(getattr(environment, name) for name in SYNTAX))
            if key not in self._codes:
                self._codes[key] = compile_anew(environment, source)
            return self._codes[key]

        def expression_once(environment: jinja2.Environment, source: str, *more: t.Any, **named: t.Any) -> t.Any:
            self._expression = source
            try:
                return expression_anew(environment, source, *more, **named)
            finally:
                self._expression = None

        for name, once in (("compile", compile_once), ("compile_expression", expression_once)):
            setattr(jinja2.Environment, name, once)

    def fill(self, collection: pathlib.Path) -> None:
        """Compile the templates of all playbooks and roles of a collection, as Ansible's environment reads them."""
        from ansible.template import Templar, trust_as_template

        Templar(loader=None).template(trust_as_template("{{ 1 }}"))  # which makes one
        environment = self.environment
        if environment is None:
            return
        for folder in ("playbooks", "roles"):
            for path in sorted((collection / folder).rglob("*.yml")):
                for text, compiled in set(_texts(yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader))):
                    with contextlib.suppress(jinja2.TemplateError):  # whoever uses it is told
                        environment.compile(text) if compiled else environment.compile_expression(text, False)


def _texts(data: object, key: object = None) -> t.Iterator[tuple[str, bool]]:
    """List what a file of YAML has for Jinja, each with whether it is a template, or an expression alone."""
    if isinstance(data, str):
        if "{{" in data or "{%" in data:
            yield data, True
        elif key in CONDITIONS:
            yield data, False
    elif isinstance(data, dict):
        yield from (text for name, value in data.items() for text in _texts(value, name))
    elif isinstance(data, list):
        yield from (text for value in data for text in _texts(value, key))
