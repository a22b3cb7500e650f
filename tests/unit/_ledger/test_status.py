# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import playbook_runs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import status
from tests.support.cloud import Cloud
from tests.support.rows import DEMO, OTHER, a_flavor, change_address
from tests.unit._ledger.conftest import Run


@pytest.fixture
def cloud(ledger: sa.Engine, ledger_url: str) -> Cloud:
    return Cloud(ledger_url, ledger)


def server(cloud: Cloud, name: str, project: str = DEMO, **values: t.Any) -> str:
    return cloud.instance(project, name, flavor=a_flavor(vcpus=2), **values)


def take(cloud: Cloud, address: str, owner: str | None, **values: t.Any) -> None:
    with transaction(cloud.engine) as connection:
        change_address(connection, address, owner=owner, **values)


def test_a_host_has_what_may_be_promised_however_long_ago_it_was_seen(cloud: Cloud) -> None:
    host = {"reserved_vcpus": 1, "cpu_ratio": 4.0, "ram_ratio": 1.5, "last_seen_at": 1, "facts": {"arch": "x86_64"}}
    cloud.host("hv2", vcpus_used=3, vcpus_others=2, reserved_memory_mb=512, **host)
    cloud.host("hv1", up=False, down_reason="no answer", reserved_memory_mb=8192, **host)
    with reading(cloud.engine) as connection:
        first, second = status.hosts(connection)
        assert status.host(connection, "hv1") == first
        with pytest.raises(NotFoundError, match="hv3"):
            status.host(connection, "hv3")
    assert (first["name"], first["up"], first["down_reason"]) == ("hv1", False, "no answer")
    assert first["capacity"]["memory_mb"]["limit"] == 0  # not below it
    assert (second["up"], second["last_seen_at"], second["facts"]) == (True, 1, {"arch": "x86_64"})
    assert second["capacity"] == {
        "vcpus": {"total": 4, "reserved": 1, "ratio": 4.0, "limit": 12, "used": 5, "others": 2},
        "memory_mb": {"total": 4096, "reserved": 512, "ratio": 1.5, "limit": 5376, "used": 0, "others": 0},
        "disk_gb": {"total": 40, "reserved": 0, "ratio": 1.0, "limit": 40, "used": 0, "others": 0},
    }


def test_a_map_counts_every_address_once_and_names_only_the_projects_own(cloud: Cloud, run: Run) -> None:
    cloud.project("other", OTHER)
    run("network", networks=[{"name": "one", "cidr": "10.9.0.0/24", "gateway": "10.9.0.1", "reserved": ["10.9.0.250"]}])
    ours, theirs = server(cloud, "ours", display_name="<b>ours</b>"), server(cloud, "theirs", OTHER)
    cloud.vif(ours, 1, "10.9.0.10")
    cloud.vif(theirs, 1, "10.9.0.11")
    take(cloud, "10.9.0.2", "dhcp:hv1")
    take(cloud, "10.9.0.12", None, released_at=int(time.time()), last_owner="vif:gone")
    take(cloud, "10.9.0.13", None, released_at=int(time.time()) - 3600, last_owner="vif:long gone")
    counts = {"total": 256, "instances": 2, "hosts": 1, "reserved": 4, "resting": 1, "free": 248}
    with reading(cloud.engine) as connection:
        (network,) = status.networks(connection, DEMO)
        assert network["addresses"] == counts
        address_map = status.address_map(connection, network["uuid"], DEMO)
        everything = status.address_map(connection, network["uuid"], None)
    assert (address_map["addresses"], address_map["block"], len(address_map["cells"])) == (counts, 1, 256)
    assert [cell["first"] for cell in address_map["cells"] if cell["instances"]] == ["10.9.0.10", "10.9.0.11"]
    assert [(owner["address"], owner["name"], owner["uuid"]) for owner in address_map["owners"]] == [
        ("10.9.0.10", "<b>ours</b>", ours)
    ]
    assert [owner["uuid"] for owner in everything["owners"]] == [ours, theirs]


def test_a_large_network_is_mapped_in_256_cells(cloud: Cloud, run: Run) -> None:
    run("network", networks=[{"name": "large", "cidr": "10.8.0.0/20"}])
    take(cloud, "10.8.1.17", "vif:somebody")
    with reading(cloud.engine) as connection:
        (network,) = status.networks(connection, None)
        address_map = status.address_map(connection, network["uuid"], None)
    assert (address_map["block"], len(address_map["cells"])) == (16, 256)
    assert all(cell["total"] == 16 for cell in address_map["cells"])
    assert [cell["first"] for cell in address_map["cells"] if cell["instances"]] == ["10.8.1.16"]


def test_a_projects_network_is_nobody_elses(cloud: Cloud, run: Run) -> None:
    cloud.project("other", OTHER)
    run("network", project="demo", networks=[{"name": "own", "cidr": "10.7.0.0/28"}])
    with reading(cloud.engine) as connection:
        (network,) = status.networks(connection, DEMO)
        assert status.networks(connection, OTHER) == []
        with pytest.raises(NotFoundError):
            status.address_map(connection, network["uuid"], OTHER)


def test_a_placement_is_the_latest_one_and_the_projects_own(cloud: Cloud) -> None:
    cloud.project("other", OTHER)
    placed, fresh = server(cloud, "one", host="hv1", attempts=["hv2"]), server(cloud, "fresh")
    for moment, lines in ((5, ["old"]), (7, ["new"])):
        cloud.insert(
            tables.instance_action,
            instance_uuid=placed,
            action="create",
            request_id="req-1",
            started_at=moment,
            details={"scheduler": {"lines": lines}},
        )
    with reading(cloud.engine) as connection:
        placement = status.placement(connection, placed, DEMO)
        assert (placement["host"], placement["attempts"], placement["decided_at"]) == ("hv1", ["hv2"], 7)
        assert placement["explanation"] == {"lines": ["new"]}
        assert status.placement(connection, fresh, None)["explanation"] is None
        for whom, project in ((placed, OTHER), (str(uuid.uuid4()), None)):
            with pytest.raises(NotFoundError):
                status.placement(connection, whom, project)


def test_usage_counts_the_projects_own(cloud: Cloud, run: Run) -> None:
    cloud.project("other", OTHER)
    server(cloud, "one")
    server(cloud, "gone", deleted=1, vm_state="deleted")
    server(cloud, "theirs", OTHER)
    run("security_group", security_groups=[{"name": "web"}])
    run("project", projects=[{"name": "demo", "quotas": {"cores": 3, "ram": -1}}])
    with reading(cloud.engine) as connection:
        usage = {quota["resource"]: (quota["used"], quota["limit"]) for quota in status.usage(connection, DEMO)}
    assert (usage["instances"], usage["cores"], usage["ram"]) == ((1, 10), (2, 3), (512, -1))
    assert usage["security_groups"] == (1, 10)


@pytest.mark.both_databases
def test_runs_of_playbooks_have_what_they_left(cloud: Cloud) -> None:
    """Nothing that a user asked for, nothing that a guest did by itself, and no more than is looked at."""
    now = int(time.time())
    numbers = {}
    actions: dict[str, dict[str, t.Any]] = {
        "ours": {"finished_at": now, "message": "the disk is full"},
        "asked for": {"user_id": "u"},
        "seen": {"action": "power_state", "finished_at": now},
        "going": {},
    }
    for name, values in actions.items():
        row = {"action": "stop", "request_id": f"req-{name}", "started_at": now - 9, "details": {}, **values}
        numbers[name] = cloud.insert(tables.instance_action, instance_uuid=server(cloud, name), **row)
    cloud.insert(
        tables.instance_action_event,
        action_id=numbers["ours"],
        event="stop_on_host",
        host="hv1",
        started_at=now - 8,
        finished_at=now,
        result="Error",
    )
    with reading(cloud.engine) as connection:
        runs = playbook_runs.list_runs(connection, DEMO, 10)
        assert [(run.id, run.state, list(run.servers.values())) for run in runs] == [
            (numbers["going"], "running", ["going"]),
            (numbers["ours"], "failed", ["ours"]),
        ]
        assert playbook_runs.list_runs(connection, DEMO, 10, marker=numbers["ours"]) == []
        assert playbook_runs.list_runs(connection, OTHER, 10) == []
        assert [run.id for run in playbook_runs.list_runs(connection, None, 1)] == [numbers["going"]]
        run, steps = playbook_runs.one_run(connection, numbers["ours"], DEMO)
        assert run == runs[1]
        assert [(step.name, step.host, step.seconds, step.failed) for step in steps] == [
            ("stop_on_host", "hv1", 8, True)
        ]
        for number, project in ((numbers["ours"], OTHER), (numbers["seen"], DEMO), (numbers["asked for"], DEMO)):
            with pytest.raises(NotFoundError, match=str(number)):
                playbook_runs.one_run(connection, number, project)
