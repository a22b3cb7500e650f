# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names that tenants give what they have, in the operator's command: no template of Ansible's, no line of a shell."""

from __future__ import annotations

import pathlib
import typing as t

import click
import click.testing
import pytest
import sqlalchemy as sa
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api import cli
from api.cli import actions, playbooks
from tests.support.cloud import Cloud
from tests.unit._ledger.servers.command.test_command import active, novalite, on_sqlite

__all__ = ["novalite"]  # a fixture

MARKS = (
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{{ 6 * 7 }}",
    "{",
    "\\",
    '"',
    "'",
    "\\ud83d",
    "\x85",
    "\u2028",
    "\U0001f600",
)
TEXTS = st.lists(st.sampled_from(MARKS) | st.text(st.characters(codec="utf-8"), max_size=4), max_size=6).map("".join)
VALUES = st.recursive(TEXTS | st.none() | st.booleans() | st.integers(), lambda inner: st.lists(inner, max_size=3))
EVIL = "web {{ lookup('pipe', 'touch taken') }}"
# Commands on one server, with what they need besides
OTHERS = (
    ("attach", "SERVER", EVIL),
    ("attach-interface", "SERVER", "-n", EVIL),
    ("detach-interface", "SERVER", "-n", EVIL),
    ("cdrom", "SERVER", "--insert", EVIL),
    ("detach", EVIL),
    ("launch", "web", "-I", EVIL, "-n", EVIL),
    ("floating-ip", "SERVER"),
    ("ha", "set", "SERVER", "--on"),
    ("backup", "restore", "SERVER", "-b", EVIL),
    ("delete", "-y", "SERVER"),
    ("log", "SERVER"),
)


def understood(word: str) -> t.Any:
    """Return what Ansible makes of a word behind -e, when a playbook uses it."""
    loader = DataLoader()
    variables = loader.load(word)
    return Templar(loader=loader, variables=variables).template(variables)


@given(st.dictionaries(st.sampled_from(("server", "image", "networks")), VALUES, max_size=3))
def test_ansible_gets_each_text_as_it_is(variables: dict[str, t.Any]) -> None:
    assert understood(playbooks.as_texts(variables)) == variables


@on_sqlite
def test_no_name_of_a_tenants_is_a_template(
    cloud: Cloud, novalite: t.Callable[..., str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    uuid, ran = active(cloud, "web"), []
    cloud.write(sa.update(tables.instance).values(name=EVIL))

    def replace_process(command: t.Sequence[str], _environment: t.Mapping[str, str]) -> t.NoReturn:
        ran.append(list(command))
        raise SystemExit(0)

    monkeypatch.setattr(playbooks, "replace_process", replace_process)
    needed = {"flavor": ("-f", "m1.tiny"), "snapshot": ("-s", EVIL)}
    commands = [*OTHERS]
    for name in actions.ACTIONS:
        required = [option.name for option in cli.all_commands()[name].params if option.required]
        commands.append((name, "SERVER", *(word for option in required for word in needed.get(option or "", ()))))
    for words in commands:
        novalite(*(uuid if word == "SERVER" else word for word in words))
        understood(ran[-1][ran[-1].index("-e") + 1])
        assert not (tmp_path / "taken").exists(), words
    assert len(ran) == len(commands) > 30


@on_sqlite
@pytest.mark.parametrize(
    "name", ["web;reboot", "web$(reboot)", "web`reboot`", "web&", "web x", "web>y", "web'", "web*"]
)
def test_completion_offers_no_line_of_a_shell(cloud: Cloud, novalite: t.Callable[..., str], name: str) -> None:
    active(cloud, "web")
    active(cloud, "web-2", "hv2")
    cloud.write(sa.update(tables.instance).where(tables.instance.c.name == "web-2").values(name=name))
    variables = {"_NOVALITE_COMPLETE": "bash_complete", "COMP_WORDS": "novalite stop w", "COMP_CWORD": "2"}
    offered = click.testing.CliRunner().invoke(cli.main, env=variables, prog_name="novalite")
    assert offered.output.split() == ["plain,web"]
