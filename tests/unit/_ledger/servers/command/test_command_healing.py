# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands `novalite ha` and `novalite host`: which playbook they run with what, and what they show."""

from __future__ import annotations

import typing as t

import pytest
from click.testing import CliRunner

from api.cli import healing

Run = tuple[str, dict[str, t.Any], bool]
HOST = {"host": "hv1", "state": "up", "armed": True, "means": ["agent"], "epoch": 2, "note": ""}
SERVER = {"name": "web", "host": "hv1", "ha_reason": "no host has room"}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Runs of playbooks, each by its name, its variables and whether it only checks; none of them is carried out."""
    made: list[Run] = []
    monkeypatch.setattr(
        healing.playbooks, "run", lambda name, variables, options: made.append((name, dict(variables), options.check))
    )
    monkeypatch.setattr(healing.getpass, "getuser", lambda: "alice")
    return made


@pytest.mark.parametrize(
    ("group", "words", "expected"),
    [
        (healing.group, ["arm"], ("ha", {"ha_state": "armed", "host": None}, False)),
        (healing.group, ["disarm"], ("ha", {"ha_state": "disarmed", "host": None}, False)),
        (healing.group, ["disarm", "hv1"], ("ha", {"ha_state": "disarmed", "host": "hv1"}, False)),
        (healing.host_group, ["confirm-dead", "hv3"], ("ha", {"ha_state": "confirmed", "host": "hv3"}, False)),
        (healing.host_group, ["fence-test", "hv3"], ("fence_test", {"host": "hv3"}, False)),
        (healing.host_group, ["fence-test", "hv3", "--dry-run"], ("fence_test", {"host": "hv3"}, True)),
    ],
)
def test_a_command_runs_its_playbook_with_the_name_of_who_decides(
    runs: list[Run], group: t.Any, words: list[str], expected: Run
) -> None:
    done = CliRunner().invoke(group, words)
    assert done.exit_code == 0, done.output
    name, variables, check = expected
    signed = {"confirmed_by": "alice"} if name == "ha" else {}
    assert runs == [(name, {**variables, **signed}, check)]


def of_demo(name: str, _project: str | None, _everywhere: bool) -> dict[str, t.Any]:
    """Return the server of this name, as the ledger has it."""
    return {"name": name, "project": {"name": "demo"}}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--on", "--rebuild", "--priority", "7"], {"ha": True, "ha_rebuild": True, "ha_priority": 7}),
        (["--off", "--no-rebuild"], {"ha": False, "ha_rebuild": False}),
        (["--priority", "0"], {"ha_priority": 0}),
    ],
)
def test_what_is_not_said_of_a_server_stays_as_it_is(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch, words: list[str], said: dict[str, t.Any]
) -> None:
    monkeypatch.setattr(healing.looking, "server", of_demo)
    done = CliRunner().invoke(healing.group, ["set", "web", "db", *words])
    assert done.exit_code == 0, done.output
    servers = [{"name": "web", **said}, {"name": "db", **said}]
    assert runs == [("server_ha", {"servers": servers, "project": "demo"}, False)]


@pytest.mark.parametrize("words", [["set", "web"], ["set", "web", "--priority", "101"], ["set", "--on"]])
def test_nothing_is_changed_unless_it_is_said_what_and_of_whom(runs: list[Run], words: list[str]) -> None:
    assert CliRunner().invoke(healing.group, words).exit_code == 2
    assert not runs


@pytest.mark.parametrize("words", [["confirm-dead"], ["fence-test"]])
def test_a_host_has_to_be_named_whose_death_is_proven(runs: list[Run], words: list[str]) -> None:
    assert CliRunner().invoke(healing.host_group, words).exit_code == 2
    assert not runs


@pytest.mark.parametrize(("armed", "watching"), [(True, True), (False, True), (True, False)])
def test_the_status_says_who_does_not_run_and_that_nothing_is_healed(
    monkeypatch: pytest.MonkeyPatch, armed: bool, watching: bool
) -> None:
    plan = {"plan": "a", "at": 1.0, "moves": 3, "text": "3 moves would help"} if armed else None
    hosts = [{**HOST, "armed": armed}]
    shown = {"armed": armed, "watching": watching, "balance": plan, "hosts": hosts, "servers": [SERVER]}
    monkeypatch.setattr(healing.looking, "healing", lambda: shown)
    done = CliRunner().invoke(healing.group, ["status"])
    assert done.exit_code == 0, done.output
    assert "hv1" in done.output and "no host has room" in done.output
    assert ("Healing is DISARMED" in done.output) is not armed
    assert ("Nobody watches" in done.output) is not watching
    assert ("Suggested, by novalite balance: 3 moves would help." in done.output) is armed
