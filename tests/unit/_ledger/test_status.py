# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ipaddress
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import status
from tests.unit._ledger.conftest import Run

DEMO, OTHER = "d" * 32, "e" * 32


def insert(ledger: sa.Engine, table: sa.Table, **values: t.Any) -> None:
    with transaction(ledger) as connection:
        connection.execute(sa.insert(table).values(**values))


def host(ledger: sa.Engine, name: str, **values: t.Any) -> None:
    known = {
        "enabled": True,
        "up": True,
        "last_seen_at": 1,
        "zone": "nova",
        "aggregates": [],
        "traits": [],
        "vcpus": 4,
        "memory_mb": 4096,
        "disk_gb": 40,
        "reserved_vcpus": 1,
        "reserved_memory_mb": 512,
        "reserved_disk_gb": 0,
        "cpu_ratio": 4.0,
        "ram_ratio": 1.5,
        "disk_ratio": 1.0,
        "facts": {"arch": "x86_64"},
    }
    insert(ledger, tables.compute_host, name=name, **{**known, **values})


def server(ledger: sa.Engine, name: str, project: str = DEMO, **values: t.Any) -> str:
    instance_uuid = str(uuid.uuid4())
    known = {
        "hostname": name,
        "flavor": {"vcpus": 2, "memory_mb": 512},
        "image": {},
        "metadata": {},
        "attempts": [],
        "vm_state": "active",
        "created_at": 0,
        "updated_at": 0,
    }
    insert(ledger, tables.instance, uuid=instance_uuid, project_id=project, name=name, **{**known, **values})
    return instance_uuid


def take(ledger: sa.Engine, address: str, owner: str | None, **values: t.Any) -> None:
    pool = tables.fixed_ip
    with transaction(ledger) as connection:
        done = connection.execute(
            sa.update(pool).where(pool.c.ip == int(ipaddress.IPv4Address(address))).values(owner=owner, **values)
        )
        assert done.rowcount == 1


def plug(ledger: sa.Engine, server_uuid: str, address: str, number: int) -> None:
    vif_id = str(uuid.uuid4())
    insert(
        ledger,
        tables.vif,
        id=vif_id,
        instance_uuid=server_uuid,
        network_id=1,
        position=0,
        mac=f"fa:16:3e:00:00:{number:02x}",
    )
    take(ledger, address, f"vif:{vif_id}")


def test_a_host_has_what_may_be_promised_however_long_ago_it_was_seen(ledger: sa.Engine) -> None:
    host(ledger, "hv2", vcpus_used=3, vcpus_others=2)
    host(ledger, "hv1", up=False, down_reason="no answer", reserved_memory_mb=8192)
    with reading(ledger) as connection:
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


def test_a_map_counts_every_address_once_and_names_only_the_projects_own(ledger: sa.Engine, run: Run) -> None:
    insert(ledger, tables.project, id=OTHER, name="other", created_at=0)
    run("network", networks=[{"name": "one", "cidr": "10.9.0.0/24", "gateway": "10.9.0.1", "reserved": ["10.9.0.250"]}])
    ours, theirs = server(ledger, "ours", display_name="<b>ours</b>"), server(ledger, "theirs", OTHER)
    plug(ledger, ours, "10.9.0.10", 1)
    plug(ledger, theirs, "10.9.0.11", 2)
    take(ledger, "10.9.0.2", "dhcp:hv1")
    take(ledger, "10.9.0.12", None, released_at=int(time.time()), last_owner="vif:gone")
    take(ledger, "10.9.0.13", None, released_at=int(time.time()) - 3600, last_owner="vif:long gone")
    counts = {"total": 256, "instances": 2, "hosts": 1, "reserved": 4, "resting": 1, "free": 248}
    with reading(ledger) as connection:
        (network,) = status.networks(connection, DEMO)
        assert network["addresses"] == counts
        found = status.address_map(connection, network["uuid"], DEMO)
        everything = status.address_map(connection, network["uuid"], None)
    assert (found["addresses"], found["block"], len(found["cells"])) == (counts, 1, 256)
    assert [cell["first"] for cell in found["cells"] if cell["instances"]] == ["10.9.0.10", "10.9.0.11"]
    assert [(owner["address"], owner["name"], owner["uuid"]) for owner in found["owners"]] == [
        ("10.9.0.10", "<b>ours</b>", ours)
    ]
    assert [owner["uuid"] for owner in everything["owners"]] == [ours, theirs]


def test_a_large_network_is_mapped_in_256_cells(ledger: sa.Engine, run: Run) -> None:
    run("network", networks=[{"name": "large", "cidr": "10.8.0.0/20"}])
    take(ledger, "10.8.1.17", "vif:somebody")
    with reading(ledger) as connection:
        (network,) = status.networks(connection, None)
        found = status.address_map(connection, network["uuid"], None)
    assert (found["block"], len(found["cells"])) == (16, 256)
    assert all(cell["total"] == 16 for cell in found["cells"])
    assert [cell["first"] for cell in found["cells"] if cell["instances"]] == ["10.8.1.16"]


def test_a_projects_network_is_nobody_elses(ledger: sa.Engine, run: Run) -> None:
    insert(ledger, tables.project, id=OTHER, name="other", created_at=0)
    run("network", project="demo", networks=[{"name": "own", "cidr": "10.7.0.0/28"}])
    with reading(ledger) as connection:
        (network,) = status.networks(connection, DEMO)
        assert status.networks(connection, OTHER) == []
        with pytest.raises(NotFoundError):
            status.address_map(connection, network["uuid"], OTHER)


def test_a_placement_is_the_latest_one_and_the_projects_own(ledger: sa.Engine) -> None:
    insert(ledger, tables.project, id=OTHER, name="other", created_at=0)
    placed, fresh = server(ledger, "one", host="hv1", attempts=["hv2"]), server(ledger, "fresh")
    for moment, lines in ((5, ["old"]), (7, ["new"])):
        insert(
            ledger,
            tables.instance_action,
            instance_uuid=placed,
            action="create",
            request_id="req-1",
            started_at=moment,
            details={"scheduler": {"lines": lines}},
        )
    with reading(ledger) as connection:
        found = status.placement(connection, placed, DEMO)
        assert (found["host"], found["attempts"], found["decided_at"]) == ("hv1", ["hv2"], 7)
        assert found["explanation"] == {"lines": ["new"]}
        assert status.placement(connection, fresh, None)["explanation"] is None
        for whom, project in ((placed, OTHER), (str(uuid.uuid4()), None)):
            with pytest.raises(NotFoundError):
                status.placement(connection, whom, project)


def test_usage_counts_the_projects_own(ledger: sa.Engine, run: Run) -> None:
    insert(ledger, tables.project, id=OTHER, name="other", created_at=0)
    server(ledger, "one")
    server(ledger, "gone", deleted=1, vm_state="deleted")
    server(ledger, "theirs", OTHER)
    run("security_group", security_groups=[{"name": "web"}])
    run("project", projects=[{"name": "demo", "quotas": {"cores": 3, "ram": -1}}])
    with reading(ledger) as connection:
        found = {quota["resource"]: (quota["used"], quota["limit"]) for quota in status.usage(connection, DEMO)}
    assert (found["instances"], found["cores"], found["ram"]) == ((1, 10), (2, 3), (512, -1))
    assert found["security_groups"] == (1, 10)
