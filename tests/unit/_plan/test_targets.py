# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that each play is for, and what the steps of a move are told."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml

from ansible_collections.novalite.cloud.plugins.module_utils._plan import targets
from ansible_collections.novalite.cloud.plugins.module_utils._plan.targets import domains_there, summary

Plans = dict[str, dict[str, t.Any]]

ROOT = pathlib.Path(__file__).parents[3]
MOVES: Plans = {
    "hv1": {"leaving": [{}], "leave": {}},
    "hv2": {"arriving": [{}], "build": {}, "peers": {}},
    "hv3": {"staying": [{}], "build": {}},
    "hv4": {"peers": {}},
}


def test_a_plan_names_the_hosts_of_each_play() -> None:
    hosts: Plans = {"hv1": {"build": {}, "keep": {}}, "hv2": {"peers": {}, "groups": {}}, "hv3": {"build": {}}}
    none: dict[str, list[str]] = {"remove": [], "vacate": [], "network": []}
    there = {"build": ["hv1", "hv3"], "keep": ["hv1"], "peers": ["hv2"], "groups": ["hv2"]}
    assert targets.of_plan(hosts) == {**there, **none, "controller": ["localhost"]}


def test_the_controller_records_builds_alone() -> None:
    assert targets.of_plan({"hv1": {"peers": {}}})["controller"] == []
    assert targets.of_hosts({}, looks={"hv1": {}}) == {"hosts": [], "controller": [], "looks": ["hv1"]}
    assert targets.controller({}, {"hv1": {}}) == ["localhost"]


@pytest.mark.parametrize("action", ["migrate", "confirmResize"])
def test_each_step_of_a_move_has_its_hosts(action: str) -> None:
    steps = targets.of_moves(MOVES, action)
    assert steps["stop"] == steps["send"] == ["hv1", "hv3"]
    assert steps["dest_open_channel"] == steps["rebuild"] == ["hv2"]
    assert steps["build"] == ["hv2", "hv3"] and steps["peers"] == ["hv2", "hv4"]
    # what is kept for a revert where an instance stays is no use to anybody after the confirmation
    assert steps["source_cleanup"] == (["hv1", "hv3"] if action == "confirmResize" else ["hv1"])
    assert steps["hosts"] == list(MOVES) and steps["controller"] == ["localhost"]


def test_without_moves_no_step_has_a_host() -> None:
    assert not any(targets.of_lost(targets.of_moves({}, "migrate"), [{"uuid": "u"}]).values())


def test_what_is_lost_is_undone_where_it_was_done() -> None:
    steps = targets.of_moves(MOVES, "migrate")
    assert targets.of_lost(steps, []) == {**steps, "dest_rollback": [], "restore": []}
    assert targets.of_lost(steps, [{"uuid": "u"}]) == {**steps, "dest_rollback": ["hv2"], "restore": ["hv1", "hv3"]}


def test_the_steps_are_those_of_the_role_and_of_the_playbooks() -> None:
    role = yaml.safe_load((ROOT / "roles/move/meta/argument_specs.yml").read_text())["argument_specs"]["main"]
    text = "".join(path.read_text() for path in (ROOT / "playbooks").rglob("*.yml"))
    steps = {*targets.STEPS, *targets.UNDOING}
    assert steps == set(role["options"]["move_step"]["choices"])
    assert steps == set(re.findall(r"move_step: (\w+)", text))


def test_a_host_is_told_what_follows_from_its_moves() -> None:
    def move(uuid: str, source: str, destination: str, starts: bool) -> dict[str, object]:
        return {"uuid": uuid, "from_host": source, "to_host": destination, "starts": starts}

    plan = {
        "arriving": [move("a", "hv2", "hv1", True), move("b", "hv2", "hv1", False)],
        "leaving": [move("c", "hv1", "hv3", True), move("d", "hv1", "hv2", False), move("e", "hv1", "hv3", True)],
        "staying": [move("f", "hv1", "hv1", True)],
    }
    assert summary(plan) == {
        "sources": ["hv2"],
        "destinations": ["hv3", "hv2"],
        "starts": {"arriving": ["a"], "leaving": ["c", "e"], "staying": ["f"]},
        "rests": ["b"],
    }
    none: dict[str, list[str]] = {"arriving": [], "leaving": [], "staying": []}
    assert summary({"peers": {}}) == {"sources": [], "destinations": [], "starts": none, "rests": []}


def test_what_leaves_is_defined_as_its_new_hosts_have_it() -> None:
    plans: Plans = {host: {"build": {"domains": [{"uuid": uuid}]}} for host, uuid in (("hv2", "d"), ("hv3", "c"))}
    plans["hv4"] = {}
    assert domains_there({"destinations": ["hv3", "hv4", "hv2"]}, plans) == [{"uuid": "c"}, {"uuid": "d"}]
