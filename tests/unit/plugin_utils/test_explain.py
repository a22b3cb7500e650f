# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A launch told in Nova's steps: from a recorded run, and what is never told."""

from __future__ import annotations

import copy
import json
import pathlib
import re
import types
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.callback.explain import CallbackModule
from ansible_collections.novalite.cloud.plugins.module_utils._graph.launch_steps import STEPS
from ansible_collections.novalite.cloud.plugins.plugin_utils import _explain as explain

ROOT = pathlib.Path(__file__).parents[3]
Event = dict[str, t.Any]


@pytest.fixture
def events() -> list[Event]:
    return t.cast("list[Event]", json.loads((ROOT / "docs/recorded/launch.json").read_text())["events"])


def story_lines(events: t.Iterable[Event]) -> list[str]:
    return explain.story(list(events))


def test_every_step_is_told_once_with_its_component_and_method(events: list[Event]) -> None:
    lines = story_lines(events)
    heads = [line for line in lines if line.startswith("[")]
    for step in STEPS:
        own = [head for head in heads if head.startswith(f"[{step.label:>2}] {step.component} {step.method} -> ")]
        if step.number is not None:  # the image and the disk are one step of Nova's
            assert len(own) == len(step.operations), step
    assert lines[-1] == f"---- {sum(event['seconds'] for event in events):.3f} s in all"


def test_the_articles_own_numbers_and_names_are_told_apart(events: list[Event]) -> None:
    heads = [line for line in story_lines(events) if line.startswith("[") and "; article: " in line]
    arrows = "".join(re.findall(r"; article: \(([\d,]+)\)", "\n".join(heads))).replace(",", "")
    assert arrows == "12345678"  # each arrow once, in the order of the article
    names = {name for head in heads for name in re.findall(r"[\w.]+", head.partition("; article: ")[2])}
    assert {"run_instances", "create", "rpc.cast", "to_xml", "apply_ruleset", "_link_device", "createXML"} <= names


def test_what_runs_already_and_the_names_are_told(events: list[Event]) -> None:
    assert "     already running? none of these names" in story_lines(events)
    events[0]["result"]["existing"] = [{"name": "db", "host": "hv2"}]
    lines = story_lines(events)
    assert "     already running? db on hv2, left alone" in lines
    assert [line for line in lines if line.startswith("     web: host name web; groups default")]


@pytest.mark.parametrize(("backend", "device"), [("nbd", "/dev/nbd*, locked"), ("fuse", "qemu-storage-daemon")])
def test_injection_is_told_step_by_step(events: list[Event], backend: str, device: str) -> None:
    (injection,) = [step["result"] for step in events[2]["result"]["steps"] if step["module"] == "nbd_inject"]
    injection["backend"] = backend
    injection["instances"][0]["written"].insert(0, "periodic file system checks")
    lines = [line.strip() for line in story_lines(events)]
    begin = lines.index(next(line for line in lines if line.startswith("device: ")))
    way = lines[begin : begin + 9]
    assert device in way[0] and way[1].startswith("mount: nosuid, nodev, noexec")
    assert way[3:8] == [
        "tune2fs -c 0 -i 0: no periodic check of the file system",
        "write /etc/hostname (1 lines), chown 0:0, chmod 0644",
        "mkdir /root/.ssh, chown 0:0, chmod 0700",
        "write /root/.ssh/authorized_keys (3 lines), chown 0:0, chmod 0600",
        "network configuration: none, DHCP serves it",
    ]
    assert way[8].startswith("unmount; ")


def test_a_neighbour_is_told_a_name_and_no_entry_of_others(events: list[Event]) -> None:
    before = {"hosts": ["fa:16:3e:00:00:09,demo.novalocal,10.20.0.3"], "others": [], "running": True}
    diff = {"before": {"br100": before}, "after": {"br100": {**before, "others": ["10.20.0.7 web"]}}}
    step = {"name": "Ensure which names are known", "module": "dhcp", "seconds": 0.1}
    result = {"steps": [{**step, "result": {"changed": True, "diff": diff}}]}
    lines = story_lines([*events[:2], {"operation": "host_steps", "host": "hv2", "seconds": 0.2, "result": result}])
    assert "     br100/others: 10.20.0.7 web" in lines
    assert not [line for line in lines if "demo" in line and "hosts:" in line]


def test_the_values_are_those_of_the_run(events: list[Event]) -> None:
    text = "\n".join(story_lines(events))
    (server,) = events[0]["result"]["to_build"]
    (placed,) = events[1]["result"]["instances"]
    (nic,) = placed["nics"]
    seconds = {step["module"]: step["seconds"] for step in events[2]["result"]["steps"]}
    for value in (
        *(server["uuid"], server["domain_name"], server["key"]["public_key"], placed["host"], nic["mac"], nic["ip"]),
        f"Casting to compute {placed['host']} for run_instance of {server['uuid']}",
        f"{nic['mac']},{server['name']}.novalocal,{nic['ip']}",
        f'<mac address="{nic["mac"]}"/>',
        f"-A nova-inst-{server['id']} -m conntrack --ctstate INVALID -j DROP",
        f"setup_basic_filtering -> module nwfilter on {placed['host']}, {seconds['nwfilter']:.3f} s",
    ):
        assert value in text


def test_many_instances_on_several_hosts_stay_readable(events: list[Event]) -> None:
    few = len(story_lines(events))
    server, plan = events[0]["result"], events[1]["result"]
    for place in range(1, 50):
        uuid = f"uuid-{place}"
        name = f"web-{place}"
        server["to_build"].append({**server["to_build"][0], "uuid": uuid, "name": name})
        plan["instances"].append({**plan["instances"][0], "uuid": uuid, "name": name, "host": "hv2"})
        plan["explanations"].append({**plan["explanations"][0], "uuid": uuid, "name": name})
    plan["hosts"]["hv2"] = copy.deepcopy(plan["hosts"]["hv1"])
    plan["hosts"]["hv2"]["build"]["domains"] = [
        {**plan["hosts"]["hv1"]["build"]["domains"][0], "uuid": f"uuid-{place}"} for place in range(1, 50)
    ]
    lines = story_lines(events)
    assert few < len(lines) < few + 60
    assert sum("<domain " in line for line in lines) == 1
    assert "     and 46 more" in lines and "     and 49 more like it" in "\n".join(lines)


def test_no_secret_is_told(events: list[Event]) -> None:
    plan = events[1]["result"]["hosts"]["hv1"]["build"]
    plan["injections"][0]["password_hash"] = "$6$SECRET"
    plan["injections"][0]["files"] = [{"path": "/etc/token", "contents": "SECRET"}]
    plan["config_drives"] = [{"uuid": "u", "user_data": "SECRET", "metadata": {"admin_pass": "SECRET"}}]
    for step in events[2]["result"]["steps"]:
        if step["module"] == "nbd_inject":
            step["result"]["diff"]["after"] = {"u": {"/etc/shadow": {"content": ["root:SECRET"]}}}
    drive = {"changed": True, "diff": {"before": {}, "after": {"u": {"user_data": "SECRET"}}}}
    events[2]["result"]["steps"] += [
        {"name": "Write the config drives", "module": "config_drive", "seconds": 0.1, "result": drive},
        {"name": "Ensure the metadata proxies", "module": "metadata_proxy", "seconds": 0.1, "result": drive},
    ]
    lines = story_lines(events)
    assert "SECRET" not in "\n".join(lines)
    assert "     u/disk.config" in lines


def test_a_secret_trip_is_told_without_its_steps(events: list[Event]) -> None:
    events[2]["result"] = {"censored": "hidden", "changed": True}
    lines = story_lines(events)
    assert [line for line in lines if "what it carried is secret" in line]
    assert not [line for line in lines if line.startswith("[15]")]


def test_a_failure_and_the_next_attempt_are_told(events: list[Event]) -> None:
    failed = events[2]["result"]["steps"][3]
    failed["result"] = {"changed": False, "failed": True, "msg": "no\x1b[2Jroom"}
    del events[2]["result"]["steps"][4:]
    again = copy.deepcopy(events[1]["result"])
    events[3]["result"].update(again)
    lines = story_lines(events)
    assert "     failed: no [2Jroom" in lines
    assert sum(line.startswith("[ 7]") for line in lines) == 2
    assert not [line for line in lines if line.endswith("in all")]


def test_what_finds_no_host_is_told_with_each_filters_reason(events: list[Event]) -> None:
    explained = events[1]["result"]["explanations"][0]
    explained.update(host=None, weights=[], message="No valid host was found")
    explained["filters"][-1].update(removed={"hv1": "1 of 5 GiB free"}, end=1)
    events[1]["result"].update(instances=[], hosts={})
    lines = story_lines(events[:2])
    assert f"       {explained['filters'][-1]['filter']} removed hv1: 1 of 5 GiB free" in lines
    assert not [line for line in lines if line.startswith("[ 7]")]


def _play(**extra: t.Any) -> t.Any:
    manager = types.SimpleNamespace(extra_vars=extra)
    return types.SimpleNamespace(get_variable_manager=lambda: manager)


@pytest.mark.parametrize(("extra", "off"), [({}, True), ({"explain": "false"}, True), ({"explain": "yes"}, False)])
def test_the_callback_is_switched_off_unless_it_is_asked_for(extra: dict[str, t.Any], off: bool) -> None:
    callback = CallbackModule()
    callback.v2_playbook_on_play_start(_play(**extra))
    assert bool(callback.disabled) is off


def test_a_mistake_costs_the_story_alone(events: list[Event], monkeypatch: pytest.MonkeyPatch) -> None:
    callback = CallbackModule()
    warnings: list[str] = []
    monkeypatch.setattr(callback, "_display", types.SimpleNamespace(warning=warnings.append, display=print))
    callback.v2_playbook_on_play_start(_play(explain=True))
    task = types.SimpleNamespace(action="novalite.cloud.server", _uuid="1")
    host = types.SimpleNamespace(get_name=lambda: "localhost")
    result = types.SimpleNamespace(host=host, task=task, result={"to_build": [{}]})
    callback.v2_runner_on_ok(t.cast(t.Any, result))
    assert callback.disabled and re.search("explain gives up: KeyError", warnings[0])
