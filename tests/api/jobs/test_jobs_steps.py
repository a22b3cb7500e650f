# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plays that a job's progress is recorded by are plays of the playbooks that the job runs."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from api.jobs import events

PLAYBOOKS = pathlib.Path(__file__).parents[3] / "playbooks"
OF_ACTION = {"create": "launch.yml", "delete": "terminate.yml"}


def plays(path: pathlib.Path) -> t.Iterator[str]:
    """The names of the plays of a playbook and of those that it imports."""
    for play in yaml.safe_load(path.read_text()):
        imported = play.get("import_playbook") or play.get("ansible.builtin.import_playbook")
        if imported:
            yield from plays(path.parent / imported)
        else:
            yield play["name"]


def test_each_action_with_steps_has_a_playbook() -> None:
    assert set(OF_ACTION) == set(events.STEPS)


@pytest.mark.parametrize("action", sorted(OF_ACTION))
def test_steps_are_plays_of_their_playbook(action: str) -> None:
    assert not set(events.STEPS[action]) - set(plays(PLAYBOOKS / OF_ACTION[action]))
