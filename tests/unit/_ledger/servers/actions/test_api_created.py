# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers that were recorded earlier: what a run that is given their UUIDs finds to do."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.server import server

WEB = {"name": "web", "flavor": "m1.tiny", "image": "ami-tiny", "key": "test"}


def _of(cloud: t.Any, uuids: list[str], **params: t.Any) -> dict[str, t.Any]:
    with transaction(cloud.engine) as connection:
        return server(connection, {"uuids": uuids, **params})


def _names(instances: list[dict[str, t.Any]]) -> list[str]:
    return [instance["name"] for instance in instances]


def test_what_is_recorded_is_built_and_what_runs_is_left(cloud: t.Any) -> None:
    made = cloud.server({**WEB, "count": 3})["to_build"]
    first, second, third = (instance["uuid"] for instance in made)
    cloud.place(first)
    cloud.state({"uuids": [first], "state": "active", "host": "hv1"})
    cloud.server({"name": "web-3"}, state="absent")
    plan = _of(cloud, [first, second, third, "no-such-uuid"])
    assert (_names(plan["to_build"]), _names(plan["existing"]), plan["to_delete"]) == (["web-2"], ["web-1"], [])
    assert plan["changed"]
    assert not _of(cloud, [first, third])["changed"]


def test_a_build_that_was_cut_off_goes_on_on_its_host(cloud: t.Any) -> None:
    uuid = cloud.server(WEB)["to_build"][0]["uuid"]
    cloud.place(uuid)
    cloud.write(sa.update(tables.instance).values(task_state="spawning"))
    (again,) = _of(cloud, [uuid])["to_build"]
    assert (again["host"], again["task_state"]) == ("hv1", "scheduling")


def test_what_leaves_is_marked_once(cloud: t.Any) -> None:
    uuid = cloud.server(WEB)["to_build"][0]["uuid"]
    (first,) = _of(cloud, [uuid], state="absent")["to_delete"]
    (second,) = _of(cloud, [uuid], state="absent")["to_delete"]
    assert first["task_state"] == second["task_state"] == "deleting"
    assert len(cloud.rows(sa.select(tables.instance_action).where(tables.instance_action.c.action == "delete"))) == 1
    cloud.state({"uuids": [uuid], "state": "deleted"})
    assert _of(cloud, [uuid], state="absent") == {
        "changed": False,
        "to_build": [],
        "existing": [],
        "differences": [],
        "to_delete": [],
    }
