# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The call diagram of a launch, read back out of its SVG."""

from __future__ import annotations

import json
import pathlib
import re
import typing as t
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._graph import call_diagram, overview
from ansible_collections.novalite.cloud.plugins.module_utils._graph.launch_steps import BY_OPERATION, HOSTS, STEPS

ROOT = pathlib.Path(__file__).parents[3]
SVG = "{http://www.w3.org/2000/svg}"
Launch = dict[str, t.Any]


@pytest.fixture
def launch() -> Launch:
    return t.cast(Launch, json.loads((ROOT / "docs/recorded/call_diagram.json").read_text()))


def words(launch: Launch) -> list[str]:
    picture = ET.fromstring(call_diagram.svg(launch))
    return ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]


def test_each_call_is_there_with_its_number_its_time_and_its_seconds(launch: Launch) -> None:
    texts = words(launch)
    first = launch["calls"][0]["at"]
    for call in launch["calls"]:
        assert f"+{call['at'] - first:.3f} s" in texts
        where = f"{call['operation']} on {call['host']}" if "host" in call else call["operation"]
        assert where + (f", {call['seconds']:.3f} s" if call["seconds"] else "") in texts
    for step in STEPS:
        if step.number and step.number != 4 and set(step.operations) & {call["operation"] for call in launch["calls"]}:
            assert [text for text in texts if re.match(rf"(\d+, )*{step.number}\b.*{re.escape(step.method)}", text)]


def test_calls_are_in_the_order_of_time_between_the_boxes_of_novas_services(launch: Launch) -> None:
    made = call_diagram.arrows(launch)
    assert [arrow.began for arrow in made] == sorted(arrow.began for arrow in made)
    assert call_diagram.boxes(made) == [
        *("client", "launch.yml", "database", "nova-scheduler", "nova-network"),
        *("nova-compute hv1", "nova-network hv1", "libvirt hv1"),
    ]
    kinds = {arrow.detail.split(" ")[0]: arrow.kind for arrow in made}
    assert (kinds["host_steps"], kinds["bridge"], kinds["domain"]) == ("ssh", "in-process", "socket")


def test_what_the_api_was_asked_for_comes_by_http_and_as_a_job(launch: Launch) -> None:
    at = launch["calls"][0]["at"]
    launch["calls"].insert(2, {"operation": "job", "at": at + 0.1, "seconds": 0.5})
    made = {arrow.detail.split(" ")[0]: arrow for arrow in call_diagram.arrows(launch)}
    assert (made["request"].kind, made["request"].callee) == ("HTTP", "nova-api")
    assert (made["job"].caller, made["job"].callee, made["job"].kind) == ("nova-api", "launch.yml", "job")
    assert made["server"].caller == "nova-api"


def test_what_failed_is_marked_and_the_next_host_has_boxes_of_its_own(launch: Launch) -> None:
    at = launch["calls"][-1]["at"]
    launch["calls"] += [
        {"operation": "host_steps", "at": at + 1, "seconds": 1.0, "host": "hv2", "failed": True},
        {"operation": "disk", "at": at + 1, "seconds": 1.0, "host": "hv2", "failed": True},
    ]
    assert "nova-compute hv2" in call_diagram.boxes(call_diagram.arrows(launch))
    assert "disk on hv2, 1.000 s, failed" in words(launch)


def test_a_guest_that_does_not_answer_yet_is_no_failed_build(launch: Launch) -> None:
    for made in launch["calls"]:
        if made["operation"] in ("host_steps", "server_wait"):
            made["failed"] = True
    arrows = {arrow.detail.split(" ")[0]: arrow for arrow in call_diagram.arrows(launch)}
    assert not [arrow for arrow in arrows.values() if arrow.failed]
    assert arrows["server_wait"].unanswered
    assert re.search(r"server_wait on hv1, [0-9.]+ s, no answer", " ".join(words(launch)))
    launch["calls"] += [
        {"operation": "disk", "at": launch["calls"][-1]["at"], "seconds": 0, "host": "hv1", "failed": True}
    ]
    assert {arrow.detail for arrow in call_diagram.arrows(launch) if arrow.failed} == {
        "host_steps on hv1",
        "disk on hv1",
    }


def test_the_overview_has_eight_arrows_between_five_boxes_and_their_seconds(launch: Launch) -> None:
    picture = ET.fromstring(overview.svg(launch))
    texts = ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]
    numbers = [text for text in texts if re.fullmatch(r"\d(, \d)?", text)]
    assert ", ".join(numbers) == "1, 2, 3, 4, 5, 6, 7, 8"
    assert len(list(picture.iter(f"{SVG}rect"))) == 1 + 5 and "hv1" in texts
    calls = {call["operation"]: call["seconds"] for call in launch["calls"]}
    for operation in ("server", "scheduler", "host_steps", "fixed_ip"):
        assert [text for text in texts if f"here {operation}" in text and f"{calls[operation]:.3f} s" in text]


def test_a_launch_that_found_no_host_has_an_overview(launch: Launch) -> None:
    lone = {**launch, "host": None, "calls": launch["calls"][:2]}
    assert "not in this launch" in overview.svg(lone)


call = st.fixed_dictionaries(
    {
        "operation": st.sampled_from([*sorted(BY_OPERATION), "host_steps", "unheard of"]),
        "at": st.floats(0, 2e9),
        "seconds": st.floats(0, 1e5),
    },
    optional={"failed": st.booleans()},
)


@given(st.lists(call, max_size=200), st.text(min_size=1), st.text(min_size=1))
def test_whatever_is_recorded_is_a_picture(calls: list[Launch], name: str, host: str) -> None:
    for made in calls:
        if made["operation"] in HOSTS or made["operation"] == "host_steps":
            made["host"] = host
    launch = {"uuid": "u", "name": name, "host": host, "request_id": "req-1", "message": name, "calls": calls}
    picture = call_diagram.svg(launch)
    assert len(list(ET.fromstring(picture).iter(f"{SVG}line"))) < 500
