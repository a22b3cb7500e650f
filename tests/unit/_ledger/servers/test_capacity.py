# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The capacity tools over a ledger: they answer, and write nothing."""

from __future__ import annotations

import json
import shlex
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_attachments
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rates import MEASURES
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rings import Record, Samples
from ansible_collections.novalite.cloud.plugins.modules import balance_plan, capacity_info, reserve_info


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
    built = _on_hv1(cloud, 3)
    result = ask(cloud, balance_plan)
    assert result["score_after"] < result["score_before"] and len(result["moves"]) == 2
    move = result["moves"][0]
    assert (move["from"], move["to"], move["project"]) == ("hv1", "hv2", "demo")
    assert move["moved_mib"] == 512 + 1024 and "hv1 is fuller than hv2" in move["why"]
    assert result["msg"].endswith("and send at most 3.0 GiB")
    assert [shlex.split(command)[:3] for command in move["commands"]] == [
        ["ansible-playbook", "novalite.cloud.live_migrate", "-e"]
    ]
    asked = json.loads(shlex.split(move["commands"][0])[3])
    assert asked == {"project": "demo", "server": move["name"], "host": "hv2"}
    assert len(ask(cloud, balance_plan, max_moves=1)["moves"]) == 1
    assert len(ask(cloud, balance_plan, max_gib=2)["moves"]) == 1
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == built[0]["uuid"]).values(locked=True))
    assert built[0]["uuid"] not in {move["uuid"] for move in ask(cloud, balance_plan)["moves"]}


@pytest.mark.usefixtures("no_domains")
def test_a_server_rests_after_a_move(cloud: t.Any) -> None:
    cloud.write(sa.update(tables.compute_host).values(last_seen_at=int(time.time())))
    uuids = [instance["uuid"] for instance in _on_hv1(cloud, 3)]
    rounds = [(uuids[0], "hv1", "hv3"), (uuids[0], "hv3", "hv1")]
    for uuid, source, target in rounds:
        begun = cloud.task("server_migration", action="live-migration", destinations={uuid: target})
        assert [(move["from_host"], move["to_host"]) for move in begun["moves"]] == [(source, target)]
        outcomes = [{"host": source, "done": [uuid]}, {"host": target, "done": [uuid]}]
        cloud.task("server_migration", action="live-migration", state="end", moves=begun["moves"], outcomes=outcomes)
    result = ask(cloud, balance_plan)
    assert len(result["moves"]) == 2 and uuids[0] not in {move["uuid"] for move in result["moves"]}
    assert "1 servers rest after a move" in result["msg"]
    assert "rest" not in ask(cloud, balance_plan, cooldown=0)["msg"]


@pytest.mark.both_databases
def test_what_was_measured_is_read_while_others_write(cloud: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _on_hv1(cloud, 3)
    read: list[str] = []
    full = dict.fromkeys(MEASURES, None) | {"cpu": 8.0, "memory": float(16 << 30)}

    def history(_samples: Samples, _kind: str, name: str, _window: object, _now: float) -> list[Record]:
        read.append(name)
        cloud.change_host("hv3", failed_builds=len(read))  # waits, and fails, if the plan has the ledger by now
        return [Record(0, 1, dict.fromkeys(MEASURES, 0.0), full)]

    monkeypatch.setattr(Samples, "knows", lambda _samples, kind, name: (kind, name) == ("host", "hv2"))
    monkeypatch.setattr(Samples, "history", history)
    moves = cloud.run("balance_plan")["moves"]
    assert read == ["hv2"]
    assert {move["to"] for move in moves} == {"hv3"}  # nothing goes to a host that was full within the last hour


def _on_hv1(cloud: t.Any, count: int) -> t.Any:
    asked = {"name": "web", "count": count, "flavor": "m1.tiny", "image": "ami-tiny", "key": "test"}
    # the host that was asked for at the launch is no wish for ever
    built = cloud.server({**asked, "metadata": {"a": "b"}, "hints": {"host": "hv1"}})["to_build"]
    for instance in built:
        cloud.place(instance["uuid"], "hv1")
        cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": "hv1"})
    return built


def test_the_reserve_for_the_death_of_a_host(cloud: t.Any) -> None:
    assert ask(cloud, reserve_info)["msg"] == "no compute host has instances"
    built = cloud.server({"name": "web", "count": 3, "flavor": "m1.large", "image": "ami-tiny", "key": "test"})[
        "to_build"
    ]
    for host, instance in zip(("hv1", "hv2", "hv3"), built):
        cloud.place(instance["uuid"], host)
        cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": host})
    result = ask(cloud, reserve_info)  # 15872 MiB each, 8192 of which are taken
    assert [(loss["host"], loss["instances"], loss["takers"]) for loss in result["hosts"]] == [
        ("hv1", 1, {}),
        ("hv2", 1, {}),
        ("hv3", 1, {}),
    ]
    assert result["msg"] == (
        "if hv1 died, 1 of its 1 instances would find no host (web-1); so it is with 2 other hosts"
    )
    assert "ram removed 2" in result["hosts"][0]["stranded"][0]["reason"]
    cloud.change_host("hv3", ram_ratio=2.0, disk_ratio=2.0)
    result = ask(cloud, reserve_info)
    assert [loss["takers"] for loss in result["hosts"]] == [{"hv3": 1}, {"hv3": 1}, {}]
    assert [loss["host"] for loss in ask(cloud, reserve_info, host="hv2")["hosts"]] == ["hv2"]
    cloud.change_host("hv2", ram_ratio=2.0, disk_ratio=2.0)
    assert ask(cloud, reserve_info)["msg"] == (
        "one host may fail: the others have room for its instances, whichever it is"
    )
    with pytest.raises(NovaliteError, match="compute host hv9 could not be found"):
        ask(cloud, reserve_info, host="hv9")


def test_who_is_bound_to_a_host_is_stranded_with_it(cloud: t.Any) -> None:
    built = cloud.server({"name": "web", "count": 2, "flavor": "m1.tiny", "image": "ami-tiny", "key": "test"})[
        "to_build"
    ]
    for instance in built:
        cloud.place(instance["uuid"], "hv1")
        cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": "hv1"})
    cloud.run("volume", volumes=[{"name": "data", "size": 1}])
    ((volume_id,),) = cloud.rows(sa.select(tables_volumes.volume.c.id))
    with transaction(cloud.engine) as connection:
        volume_attachments.begin_attach(connection, volume_id, built[0]["uuid"])
    (loss,) = ask(cloud, reserve_info)["hosts"]
    assert [(instance["name"], instance["reason"]) for instance in loss["stranded"]] == [
        ("web-1", "'web-1' has volume data, which is on hv1 alone")
    ]
    assert sum(loss["takers"].values()) == 1
