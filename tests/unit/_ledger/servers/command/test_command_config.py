# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Defaults of the command `novalite`: what the file says, the environment, and options, in this order."""

from __future__ import annotations

import json
import pathlib
import typing as t

import click.testing
import pytest

from api import cli
from api.cli import config, playbooks


@pytest.fixture
def file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The file of defaults, which is not there yet."""
    for name in ("NOVALITE_LEDGER_URL", "NOVALITE_PROJECT", "NOVALITE_INVENTORY", "NOVALITE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NOVALITE_HOME", "")  # taken back after the test, whatever the command sets
    path = tmp_path / "of me/config.yml"
    monkeypatch.setenv("NOVALITE_CONFIG", str(path))
    return path


@pytest.fixture
def argv(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command line of ansible-playbook that this process would become."""
    argv: list[str] = []

    def replace_process(command: t.Sequence[str], _environment: t.Mapping[str, str]) -> t.NoReturn:
        argv[:] = command
        raise SystemExit(0)

    monkeypatch.setattr(playbooks, "replace_process", replace_process)
    return argv


def novalite(*words: str, code: int = 0) -> str:
    done = click.testing.CliRunner().invoke(cli.main, list(words), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output


def said(argv: t.Sequence[str]) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", json.loads(argv[argv.index("-e") + 1])) if "-e" in argv else {}


def test_what_is_set_is_the_default(
    file: pathlib.Path, argv: list[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"key": "me", "flavor": "m1.tiny", "network": "lan", "inventory": "my hosts"}.items():
        novalite("config", "set", name, value)
    novalite("launch", "web")
    assert said(argv) == {"server": "web", "key": "me", "flavor": "m1.tiny", "networks": ["lan"]}
    assert argv[argv.index("-i") + 1] == str(pathlib.Path("my hosts").resolve())
    novalite("launch", "web", "-f", "m1.small", "-n", "wan", "-i", "other")
    assert said(argv) == {"server": "web", "key": "me", "flavor": "m1.small", "networks": ["wan"]}
    assert argv.count("-i") == 1 and argv[argv.index("-i") + 1] == "other"
    monkeypatch.setenv("NOVALITE_INVENTORY", "of the environment")
    novalite("launch", "-f", "m1.small")
    assert said(argv) == {"flavor": "m1.small"} and "of the environment" in argv  # a list says what its servers are
    novalite("config", "unset", "key")
    assert "key: me" not in novalite("config", "show") and "flavor: m1.tiny" in novalite("config", "show")
    novalite("reconcile")
    assert said(argv) == {}


def test_the_home_is_the_environments_first(file: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    novalite("config", "set", "home", "/nowhere/of/the/file")
    assert "there is no ledger in /nowhere/of/the/file:" in novalite("list", code=1)
    monkeypatch.setenv("NOVALITE_HOME", "/nowhere/of/the/environment")
    assert "there is no ledger in /nowhere/of/the/environment:" in novalite("list", code=1)
    by_option = novalite("--home", "/nowhere/of/the/option", "list", code=1)
    assert "there is no ledger in /nowhere/of/the/option:" in by_option


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kye: me", "there is no setting 'kye' (novalite config unset removes it): there are home, inventory"),
        ("[key]", "is not a mapping of settings"),
        ("key: [me]", "is not a mapping of settings"),
        ("key: 'me", "cannot be read"),
    ],
)
def test_a_wrong_file_is_named(file: pathlib.Path, text: str, message: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    output = novalite("list", code=1)
    assert message in output and len(output.splitlines()) <= 6


@pytest.mark.parametrize("name", [name for name, (option, _text) in config.SETTINGS.items() if option])
def test_each_setting_is_an_option_of_some_command(name: str) -> None:
    option = config.SETTINGS[name][0]
    commands = [cli.main, *cli.all_commands().values()]
    assert any(option == parameter.name for command in commands for parameter in command.params)


def test_a_wrong_name_is_taken_out_of_the_file_by_the_command(file: pathlib.Path) -> None:
    file.parent.mkdir()
    file.write_text("kye: me\nflavor: m1.tiny\n")
    novalite("config", "unset", "kye")
    assert "flavor: m1.tiny" in novalite("config", "show") and "kye" not in file.read_text()
