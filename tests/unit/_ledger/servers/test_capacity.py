# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The capacity tools over a ledger: they answer, and write nothing."""

from __future__ import annotations

import json
import shlex
import typing as t

from ansible_collections.novalite.cloud.plugins.modules import balance_plan, capacity_info


def ask(cloud: t.Any, module: t.Any, **args: t.Any) -> dict[str, t.Any]:
    before = cloud.dump()
    result: dict[str, t.Any] = cloud.task(module.__name__.rpartition(".")[2], **args)
    assert cloud.dump() == before and not result["changed"]
    return result


def test_how_many_more_fit(cloud: t.Any) -> None:
    # three hosts of 16384 - 512 MiB, 100 GiB: m1.large takes 8192 MiB
    result = ask(cloud, capacity_info, flavor="m1.large", image="ami-tiny")
    assert (result["fits"], result["bottleneck"]) == (3, "ram")
    assert result["msg"] == "3 more of m1.large fit; ram is in the way of more on 3 of 3 hosts"
    assert [host["fits"] for host in result["hosts"]] == [1, 1, 1]
    assert ask(cloud, capacity_info, flavor="m1.large", requirements='name = "hv2"')["fits"] == 1
    assert ask(cloud, capacity_info, flavor="m1.large", options={"enabled_filters": ["vcpu"]})["bottleneck"] == "vcpu"


def test_moves_are_proposed_as_commands(cloud: t.Any) -> None:
    built = cloud.server(
        {"name": "web", "count": 3, "flavor": "m1.large", "image": "ami-tiny", "key": "test", "metadata": {"a": "b"}}
    )["to_build"]
    cloud.change_host("hv1", ram_ratio=2.0, disk_ratio=3.0)
    for instance in built:
        cloud.place(instance["uuid"], "hv1")
        cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": "hv1"})
    cloud.change_host("hv1", ram_ratio=1.0, disk_ratio=1.0)  # less than there is on it
    result = ask(cloud, balance_plan)
    assert result["score_after"] < result["score_before"] and len(result["moves"]) == 2
    move = result["moves"][0]
    assert (move["from"], move["to"], move["project"]) == ("hv1", "hv2", "demo")
    terminate, launch = map(shlex.split, move["commands"])
    assert terminate[1] == "playbooks/terminate.yml" and json.loads(terminate[3])["servers"] == [{"name": move["name"]}]
    (server,) = json.loads(launch[3])["servers"]
    assert (server["flavor"], server["image"], server["key"], server["rank"]) == (
        "m1.large",
        "ami-tiny",
        "test",
        'name = "hv2"',
    )
    assert len(ask(cloud, balance_plan, max_moves=1)["moves"]) == 1
