# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a launch in check mode: from a recorded run, at every width, and what is never shown."""

from __future__ import annotations

import copy
import json
import pathlib
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._screen import last_words
from ansible_collections.novalite.cloud.plugins.module_utils._screen.launch_plan import LaunchPlan

ROOT = pathlib.Path(__file__).parents[3]
Event = dict[str, t.Any]
RECORDED: list[Event] = json.loads((ROOT / "docs/recorded/launch.json").read_text())["events"][:3]


@pytest.fixture
def events() -> list[Event]:
    return copy.deepcopy(RECORDED)


def plan(events: list[Event], room: int | None = None) -> list[str]:
    heard = LaunchPlan()
    for event in events:
        heard.heard(event["operation"], event["host"], event["result"])
    return heard.lines(room)


def test_it_says_where_why_and_what_is_made(events: list[Event]) -> None:
    assert plan(events) == [
        "Launch, project demo:",
        "  +    server  web  on hv1: by filter_scheduler from 2 of 2 hosts, weight 3 (cpu 1, disk 1, ram 1); else hv2",
        "                    10.20.0.7 on private",
        "                    flavor m1.tiny (1 vCPU, 512 MiB, 1 GiB), image ami-tiny, key test, groups default",
        "  +    host    hv1  disks web; injected web",
        "                    bridge br100; DHCP br100; ways out nova-forward, nova-postrouting, nova-snat; "
        "filters nova-instance-instance-00000005; chains nova-inst-5, nova-sg-1, FORWARD, INPUT, OUTPUT, nova-host "
        "and 11 more",
        "                    domains instance-00000005 (web)",
        "Plan: 1 to launch, 0 already run.",
    ]


@given(st.integers(60, 200))
def test_no_line_is_wider_than_the_terminal(room: int) -> None:
    assert max(map(len, plan(copy.deepcopy(RECORDED), room))) <= room


def test_what_runs_and_what_finds_no_host_are_named(events: list[Event]) -> None:
    web = events[0]["result"]["to_build"][0]
    there = {**web, "uuid": "u1", "name": "db", "vm_state": "active", "host": "hv2"}
    huge = {**web, "uuid": "u2", "name": "huge"}
    events[0]["result"].update(existing=[there], to_build=[web, huge])
    events[1]["result"]["unplaced"] = [{"uuid": "u2", "name": "huge", "message": "No valid host was found for 'huge'"}]
    lines = plan(events)
    assert "  !    server  huge  No valid host was found for 'huge'" in lines
    assert "  =    server  db    runs on hv2, and is left alone" in lines
    assert lines[-1] == "Plan: 1 to launch, 1 already runs, 1 without a host."


def test_a_secret_plan_says_where_but_not_what(events: list[Event]) -> None:
    placed = {name: events[1]["result"][name] for name in ("instances", "explanations", "unplaced")}
    events[1]["result"] = events[2]["result"] = {"censored": "hidden", "changed": True}
    record = {"operation": "launch_record", "host": "localhost", "result": {"launch": {"placed": placed}}}
    lines = plan([*events, record])
    assert lines[1].startswith("  +    server  web  on hv1: by filter_scheduler")
    assert lines[4] == "  +    host    hv1  what it is given is not shown: it has a password, user data or files"


def test_placeholders_are_said_to_be_such(events: list[Event]) -> None:
    def renamed(instance: Event) -> None:
        instance["uuid"] = "00000001-0000-0000-0000-000000000000"
        instance["nics"][0].update(mac="02:00:00:01:02:03", ipv6="fd00::200:ff:fe01:203")
        instance["nics"][0]["network"]["cidr_v6"] = "fd00::/64"

    renamed(events[0]["result"]["to_build"][0])
    renamed(events[1]["result"]["instances"][0])
    lines = plan(events)
    assert "                    10.20.0.7 on private, an address of fd00::/64 on private" in lines
    assert lines[-2].startswith("UUIDs and MACs are chosen at launch")


def test_nothing_is_said_of_other_runs() -> None:
    heard = LaunchPlan()
    heard.heard("host_steps", "hv1", {"steps": []})
    assert heard.lines(80) == []


def test_differences_fit_a_terminal_and_are_whole_elsewhere() -> None:
    row = {"host": "hv2", "object": "filter nova-instance-instance-00000001", "ledger": "demo is on hv1"}
    difference = {**row, "there": "there", "repair": "removed: " + "demo left for hv1, which has it; " * 4}
    words = last_words.LastWords()
    differences = {"differences": [difference], "failures": ["hv3: it did not answer " * 6]}
    words.heard("drift_report", "localhost", {"report": differences}, check_mode=False)
    assert max(map(len, words.lines(80))) <= 80
    text = " ".join(" ".join(words.lines(80)).split())
    assert "1 difference, 1 failed." in text
    assert [line for line in words.lines(None) if difference["repair"].strip() in line]


def test_a_trace_fits_a_terminal_and_loses_no_word() -> None:
    traced = json.loads((ROOT / "docs/recorded/trace.json").read_text())
    words = last_words.LastWords()
    words.heard("reachability", "localhost", traced, check_mode=False)
    assert words.lines(None) == traced["msg"]
    assert max(map(len, words.lines(80))) <= 80
    assert " ".join(words.lines(80)).split() == " ".join(traced["msg"]).split()


def test_ways_in_are_lined_up() -> None:
    way = {"uuid": "u", "host": "hv1", "ip": "10.20.0.4", "ssh": "ssh web"}
    assert last_words.ready([way]) == ["READY instance=u host=hv1 ip=10.20.0.4 ssh='ssh web'"]
    lines = last_words.ready([way, {**way, "host": "hv10", "ip": "10.20.0.14"}])
    assert len({line.index("ssh=") for line in lines}) == 1
