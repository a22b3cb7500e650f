# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turns of a rolling maintenance: each host has one, however often the run is cut off."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from tests.support.cloud import Cloud
from tests.support.examples import part_of

HOSTS = ["hv1", "hv2", "hv10"]


@pytest.fixture
def cloud(ledger_url: str) -> t.Iterator[Cloud]:
    opened = Cloud(ledger_url)
    for name in HOSTS:
        opened.host(name)
    yield opened
    opened.close()


def begin(cloud: Cloud, task: str = "upgrade.yml", hosts: t.Sequence[str] = tuple(HOSTS), **more: t.Any) -> t.Any:
    return cloud.run("rolling", state="begin", task=task, hosts=list(hosts), **more)


def note(cloud: Cloud, state: str, host: str) -> None:
    cloud.run("rolling", state=state, host=host)


def test_a_run_that_was_cut_off_is_taken_up_where_it_was(cloud: Cloud) -> None:
    assert begin(cloud)["waiting"] == HOSTS  # in natural order
    note(cloud, "under way", "hv1")
    note(cloud, "done", "hv1")
    note(cloud, "under way", "hv10")
    again = begin(cloud)
    assert again["waiting"] == ["hv10", "hv2"]
    assert again["in_words"] == "in turn: hv10, hv2; done: hv1"
    assert cloud.run("rolling", state="end")["done"] == []  # it is not over
    for host in again["waiting"]:
        note(cloud, "done", host)
    assert cloud.run("rolling", state="end")["done"] == HOSTS
    assert begin(cloud)["waiting"] == HOSTS


def test_a_task_that_ended_well_is_not_run_again(cloud: Cloud) -> None:
    assert begin(cloud)["worked"] == []
    note(cloud, "under way", "hv10")
    note(cloud, "worked", "hv10")
    again = begin(cloud)
    assert (again["waiting"], again["worked"]) == (["hv10", "hv1", "hv2"], ["hv10"])


def test_there_is_one_at_a_time(cloud: Cloud) -> None:
    begin(cloud, hosts=["hv1", "hv2"])
    note(cloud, "done", "hv2")
    with pytest.raises(ConflictError, match=r"'upgrade\.yml' is not finished: hv1 are left"):
        begin(cloud, "reboot.yml")
    assert begin(cloud, "reboot.yml", anew=True)["waiting"] == HOSTS


def test_what_an_operator_closed_is_left_alone(cloud: Cloud) -> None:
    cloud.change_host("hv2", enabled=False, disabled_reason="new memory")
    begun = begin(cloud, hosts=[*HOSTS, "hv7"])
    assert begun["waiting"] == ["hv1", "hv10"]
    assert begun["in_words"] == (
        "in turn: hv1, hv10; hv2 is left out, for it was disabled before: new memory; "
        "hv7 is left out, for the ledger does not know it: run compute_nodes.yml"
    )
    cloud.change_host("hv1", enabled=False, disabled_reason="rolling maintenance upgrade.yml")
    assert begin(cloud)["waiting"] == ["hv1", "hv10"]  # closed by the maintenance itself


def test_a_plan_begins_nothing(cloud: Cloud) -> None:
    assert begin(cloud, check_mode=True)["waiting"] == HOSTS
    assert begin(cloud, "reboot.yml", check_mode=True)["waiting"] == HOSTS


@settings(max_examples=part_of(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 7), max_size=12))
def test_each_host_has_one_turn_however_often_it_is_cut_off(cloud: Cloud, cuts: list[int]) -> None:
    """Runs that end after so many notes, and a last one that is left alone."""
    begin(cloud, anew=True)
    turns: list[str] = []
    for length in [*cuts, 1000]:
        notes = 0
        for host in begin(cloud)["waiting"]:
            for state in ("under way", "done"):
                if notes >= length:
                    break
                note(cloud, state, host)
                notes += 1
                turns += [host] if state == "done" else []
        if sorted(turns) == sorted(HOSTS):
            break
    assert sorted(turns) == sorted(HOSTS)
    assert cloud.run("rolling", state="end")["done"] == HOSTS
