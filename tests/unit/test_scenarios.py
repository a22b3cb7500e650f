# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""tools/scenarios: which scenarios are run, in which order, and what becomes of those for which there is no time."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import pathlib
import sys
import types
import typing as t

import pytest

TOOL = pathlib.Path(__file__).parents[2] / "tools/scenarios"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The tool, whose scenarios are what a shell does with their names."""
    loader = importlib.machinery.SourceFileLoader("scenarios", str(TOOL))
    spec = importlib.util.spec_from_loader("scenarios", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "scenarios", module)
    loader.exec_module(module)
    return module


@pytest.fixture
def ran(tool: types.ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> t.Callable[..., list[str]]:
    """Runs the tool with options, one scenario at a time; returns the names in their order. `broken` fails."""
    log = tmp_path / "log"

    does = {"broken test": 'echo "TASK [Break]"; echo "fatal: it is broken"; exit 1', "endless test": "sleep 600"}
    does["new test"] = "echo what it measured"
    guest = "== instance-00000001: running, sent nothing"
    does["hanging test"] = f'echo "{guest}\n== links\nlo" >"$NOVALITE_EVIDENCE"; {does["broken test"]}'

    def command(name: str, action: str = "test") -> list[str]:
        return ["sh", "-c", f"echo {name} {action} >>{log}; {does.get(f'{name} {action}', '')}"]

    monkeypatch.setattr(tool, "command", command)
    monkeypatch.setattr(tool, "there", lambda: {*tool.CHANGE, *tool.OTHERS, "broken", "hanging", "endless", "new"})
    monkeypatch.setenv("NOVALITE_SCENARIOS", "1")

    def run(*options: str, fails: bool = False) -> list[str]:
        log.write_text("")
        monkeypatch.setattr("sys.argv", ["scenarios", *options])
        assert bool(tool.main()) is fails
        return log.read_text().split("\n")[:-1]

    return run


def test_the_tables_name_what_there_is(tool: types.ModuleType) -> None:
    assert tool.CHANGE.keys() | tool.OTHERS.keys() <= tool.there()
    assert not tool.CHANGE.keys() & tool.OTHERS.keys()


def test_a_change_gets_its_own_and_the_longest_come_first(tool: types.ModuleType, ran: t.Any) -> None:
    assert [line.split()[0] for line in ran()] == sorted(tool.CHANGE, key=lambda name: (-tool.CHANGE[name], name))


def test_what_stands_in_no_table_is_run_with_the_others(tool: types.ModuleType, ran: t.Any) -> None:
    lines = ran("new", "default")
    assert lines == ["new test", "default test"]
    assert "new" not in tool.CHANGE


def test_an_order_is_the_texts_own(ran: t.Any) -> None:
    names = ("default", "power", "moves", "networks", "reconcile")
    orders = {text: tuple(ran(*names, "--order", text)) for text in ("abc", "abd", "abe")}
    assert len(set(orders.values())) > 1
    assert tuple(ran(*names, "--order", "abc")) == orders["abc"]


def test_what_has_no_time_is_not_begun_and_said_to_be_so(
    tool: types.ModuleType, ran: t.Any, capsys: pytest.CaptureFixture[str]
) -> None:
    within = tool.ENDING + tool.CHANGE["default"] * 2 + 20
    assert ran("default", "kernel", "--within", str(within), "--slowness", "2") == ["default test"]
    said = capsys.readouterr().out
    assert "that were run: default\n" in said and "not run, or not to their end: kernel\n" in said


def test_what_takes_longer_is_cut_off_and_its_hypervisors_are_removed(
    tool: types.ModuleType, ran: t.Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "UNKNOWN", 0.1)
    assert ran("endless", "--within", str(tool.ENDING + 1)) == ["endless test", "endless destroy"]
    assert "not to their end: endless\n" in capsys.readouterr().out


def test_a_failure_is_shown_and_summed_up(ran: t.Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("broken", "default", fails=True) == ["broken test", "default test"]
    said = capsys.readouterr().out
    assert said.endswith("scenario broken failed in:\nTASK [Break]\nfatal: it is broken\n")


def test_what_hypervisors_knew_is_shown_of_a_failure_and_the_guests_last(
    ran: t.Any, capsys: pytest.CaptureFixture[str]
) -> None:
    ran("hanging", fails=True)
    shown = capsys.readouterr().out
    assert "what the hypervisors of hanging knew:\n== instance-00000001: running, sent nothing\n== links\nlo\n" in shown
    assert shown.endswith("fatal: it is broken\n== instance-00000001: running, sent nothing\n")


def test_what_a_scenario_that_passes_said_is_shown_where_that_is_asked_for(
    ran: t.Any, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for options in ((), ("--show",)):
        ran("new", *options)
        said.append(capsys.readouterr().out.splitlines()[0])
    assert said[0].startswith("scenario new: passed")
    assert said[1] == "what it measured"


def test_ansible_is_the_command_of_users_where_the_tool_says_so(
    tool: types.ModuleType, ran: t.Any, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    log = tmp_path / "commands"
    monkeypatch.setattr(tool, "command", lambda name: ["sh", "-c", f"command -v ansible-playbook >>{log}"])
    ran("default", "power")
    commands = [pathlib.Path(line) for line in log.read_text().splitlines()]
    assert sum(path.parent == TOOL.parents[1] / "tests/support/bin" for path in commands) == 1


def test_of_a_command_that_failed_its_last_words_are_told(tool: types.ModuleType) -> None:
    output = """
  │ TASK [Kill launches at random moments]
  │   ****
  │ fatal: [localhost]: FAILED! => {"cmd": ["python", "-m",
  │   "tests.reconcile.kills"], "msg": "non-zero return
  │   code", "stdout": "seed 1\\nWRONG hv1 runs [\\"a\\"]
  │   instead of [\\"b\\"]", "stdout_lines": ["..."]}
  │
  │ PLAY RECAP
"""
    assert tool.failures(output)[-3:] == ["non-zero return code", "seed 1", 'WRONG hv1 runs ["a"] instead of ["b"]']


@pytest.mark.parametrize("width", range(1, 60))
def test_the_last_words_are_told_however_lines_were_wrapped(tool: types.ModuleType, width: int) -> None:
    words = 'seed 1\n"C:\\\\hv1"\tand a_very_long_word_\\n_that_is_cut\n\u2026 is \\ WRONG'
    written = json.dumps({"stdout": words})[1:-1]
    lines = [written[start : start + width] for start in range(0, len(written), width)]
    output = "\n".join(["  │ TASK [Break]", "  │ fatal: {", *(f"  │   {line}" for line in lines), "  │"])
    if width < len('"stdout": "'):
        assert tool.failures(output)  # the name itself is cut
    else:
        shown = "".join(tool.failures(output)[2:]).split()
        assert "".join(shown) == "".join(words.replace("\u2026", "u2026").split())
