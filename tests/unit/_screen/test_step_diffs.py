# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Differences of a host's steps as people read them: of a recorded launch."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._screen import step_diffs

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture
def steps() -> dict[str, dict[str, t.Any]]:
    """The steps of a host, by module."""
    events = json.loads((ROOT / "docs/recorded/launch.json").read_text())["events"]
    return {step["module"]: step for step in events[2]["result"]["steps"]}


def after(step: dict[str, t.Any]) -> list[str]:
    (diff, *_others) = step_diffs.titled("hv1", step)
    return [line.strip() for line in diff["after"].splitlines()]


def test_each_difference_has_a_title_and_none_is_json(steps: dict[str, dict[str, t.Any]]) -> None:
    for step in steps.values():
        for diff in step_diffs.titled("hv1", step):
            assert diff["before_header"].startswith(f"hv1: {step['name']}") and "\\n" not in diff["after"]
            assert not [line for line in diff["after"].splitlines() if line.strip() in ("{", "}", "[", "]")]
    assert step_diffs.titled("hv1", steps["image_cache"]) == []  # nothing differs


def test_a_filter_is_shown_as_xml(steps: dict[str, dict[str, t.Any]]) -> None:
    name = "nova-instance-instance-00000005"
    assert after(steps["nwfilter"])[:2] == [f"{name}:", f'<filter name="{name}" chain="root">']


def test_chains_are_in_the_order_of_a_packet(steps: dict[str, dict[str, t.Any]]) -> None:
    lines = after(steps["firewall"])
    way = ["FORWARD:", "nova-local:", "nova-tap:", "nova-inst-5:", "nova-sg-1:", "nova-ipv4-fallback:"]
    assert sorted(way, key=lines.index) == way
    rules = [rule for chain in steps["firewall"]["result"]["diff"]["after"]["IPv4"].values() for rule in chain]
    assert set(rules) <= set(lines)  # as iptables takes them
    assert "bytecode" in "".join(lines) and not [line for line in lines if "48 0 0" in line]
