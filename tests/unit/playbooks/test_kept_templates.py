# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compiled templates that are kept: each text is compiled once, and reads as it did for each environment."""

from __future__ import annotations

import pathlib
import typing as t

import jinja2
import pytest

from api.kept_templates import Kept


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """List what Jinja compiles from now on, while a memory is asked before."""
    anew, sources = jinja2.Environment.compile, list[object]()

    def counted(environment: jinja2.Environment, source: t.Any, *more: t.Any, **named: t.Any) -> t.Any:
        sources.append(source)
        return anew(environment, source, *more, **named)

    monkeypatch.setattr(jinja2.Environment, "compile", counted)
    monkeypatch.setattr(jinja2.Environment, "compile_expression", jinja2.Environment.compile_expression)
    return sources


def templar(**variables: object) -> t.Any:
    from ansible.template import Templar  # which is not for collecting

    return Templar(loader=None, variables=variables)


def trusted(text: str) -> str:
    from ansible.template import trust_as_template

    return trust_as_template(text)


def templated(text: str, **variables: object) -> object:
    return templar(**variables).template(trusted(text))


def test_templates_of_playbooks_are_not_compiled_again(tmp_path: pathlib.Path, compiled: list[object]) -> None:
    tasks = tmp_path / "roles/spawn/tasks/main.yml"
    tasks.parent.mkdir(parents=True)
    tasks.write_text("- name: 'Start {{ server }}'\n  when: ['server == \"web\"', 'of (']\n  vars: {a: '{{ broken'}\n")
    kept = Kept()
    kept.install()
    kept.fill(tmp_path)
    compiled.clear()
    assert templated("Start {{ server }}", server="web") == "Start web"
    assert templated("Start {{ server }}", server=[7]) == "Start [7]"
    assert templar(server="web").evaluate_conditional(trusted('server == "web"')) is True
    assert compiled == []
    assert templated("Stop {{ server }}", server="web") == "Stop web"
    assert compiled == ["Stop {{ server }}"]


def test_a_text_reads_as_its_environment_does(compiled: list[object]) -> None:
    Kept().install()
    plain, other = jinja2.Environment(), jinja2.Environment(variable_start_string="[[", variable_end_string="]]")
    trimmed = jinja2.Environment(trim_blocks=True)
    text = "{% if a %}\n{{ a }}[[ a ]]\n{% endif %}"
    for _time in range(2):
        assert plain.from_string(text).render(a=1) == "\n1[[ a ]]\n"
        assert other.from_string(text).render(a=1) == "\n{{ a }}1\n"
        assert trimmed.from_string(text).render(a=1) == "1[[ a ]]\n"
    assert len(compiled) == 3


def test_backslashes_read_as_who_asks_says(compiled: list[object]) -> None:
    Kept().install()
    text = trusted(r"{{ 'a\\b' }}")
    for _time in range(2):
        assert templar().template(text, escape_backslashes=True) == r"a\\b"
        assert templar().template(text, escape_backslashes=False) == r"a\b"


def test_an_error_is_said_each_time(compiled: list[object]) -> None:
    Kept().install()
    for _time in range(2):
        with pytest.raises(jinja2.TemplateSyntaxError):
            jinja2.Environment().from_string("{{ a")
        with pytest.raises(jinja2.TemplateSyntaxError):
            jinja2.Environment().compile_expression("a b")
    assert jinja2.Environment().compile_expression("a + 1")(a=1) == 2
    assert jinja2.Environment().from_string("a + 1").render() == "a + 1"
