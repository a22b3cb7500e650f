# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Results of a trip's steps, put together: differences, as `--diff` shows them, warnings, and the outcome."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleError
from ansible.plugins.callback.default import CallbackModule
from ansible.template import Templar, trust_as_template

from ansible_collections.novalite.cloud.plugins.action import host_steps


def step(diff: t.Any) -> dict[str, t.Any]:
    return {"name": "A step", "module": "domain", "result": {"changed": bool(diff), "diff": diff}}


def test_all_differences_of_all_steps_are_shown() -> None:
    several = [{"before": "", "after": "<domain/>\n"}, {"before": "", "after": "<filter/>\n"}]
    steps = [step({"before": {}, "after": {"br100": "there"}}), step([]), step(several)]
    result = host_steps._sum("hv1", steps, steps)
    shown = CallbackModule()._get_diff(result["diff"])
    assert all(text in shown for text in ("br100", "<domain/>", "<filter/>"))
    assert shown.count("+++ after: hv1: A step") == 3


def test_a_failure_that_may_be_is_a_warning() -> None:
    failed = {"name": "Tell it", "module": "dhcp", "result": {"failed": True, "msg": "no dnsmasq"}}
    result = host_steps._sum("hv1", [failed, step({})], [failed])
    assert not result["changed"] and result["warnings"] == ["Tell it: no dnsmasq"]
    assert "warnings" not in host_steps._sum("hv1", [step({}), failed], [step({})])


def test_what_the_steps_saw_of_the_host_and_of_silent_guests_is_kept() -> None:
    seen = {"module": "compute_host", "result": {"compute_host": {"name": "hv1", "vcpus": 8}}}
    waited = {"module": "server_wait", "result": {"failed": True, "silent": [{"name": "web"}]}}
    assert host_steps._seen([seen, step({}), waited]) == {
        "facts": {"name": "hv1", "vcpus": 8},
        "silent": [{"name": "web"}],
    }
    assert host_steps._seen([step({})]) == {"silent": []}


def test_differences_that_nobody_asked_for_are_not_returned() -> None:
    steps = [step({"before": {}, "after": {"br100": "there"}}), step([])]
    host_steps._drop_diffs(steps)
    assert [done["result"] for done in steps] == [{"changed": True}, {"changed": False}]


class Hosts(dict[str, t.Any]):
    """Variables of hosts, which counts how often it is asked."""

    asked = 0

    def __getitem__(self, name: str) -> t.Any:
        self.asked += 1
        return super().__getitem__(name)


def arguments(variables: dict[str, t.Any], **args: t.Any) -> dict[str, t.Any]:
    """Return the arguments of a task of host_steps as its action gets them."""
    action, engine = host_steps.ActionModule, Templar(variables=variables)._engine
    with action.get_finalize_task_args_context() as context:
        return {name: action.finalize_task_arg(name, value, engine, context) for name, value in args.items()}


def test_a_plan_is_templated_once_for_all_arguments_and_no_text_in_it() -> None:
    hosts = Hosts(localhost={"plan": {"disks": ["{{ 1 + 1 }}"], "uuids": ["a", "b"]}})
    variables = {"hosts": hosts, "spawn_plan": trust_as_template("{{ hosts['localhost'].plan }}")}
    steps = [{"name": "A step", "module": "disk", "args": {"disks": trust_as_template("{{ spawn_plan.disks }}")}}] * 3
    args = arguments(variables, steps=steps, outcome={"uuids": trust_as_template("{{ spawn_plan.uuids }}")})
    assert [step["args"] for step in args["steps"]] == [{"disks": ["{{ 1 + 1 }}"]}] * 3
    assert args["outcome"] == {"uuids": ["a", "b"]}
    assert hosts.asked == 1


def test_a_plan_that_is_not_there_fails_those_who_need_it() -> None:
    variables = {"spawn_plan": trust_as_template("{{ nowhere.plan }}")}
    assert arguments(variables, steps=[]) == {"steps": []}
    with pytest.raises(AnsibleError, match="nowhere"):
        arguments(variables, steps=[{"name": trust_as_template("{{ spawn_plan.uuids }}")}])
