# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compute host leaves the cloud when nothing is on it, and comes back."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import HostInUseError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import departure, migration
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_volumes import volume, volume_type
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import departures
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.compute_host import compute_host
from tests.support.rows import DEMO


def leave(cloud: t.Any, host: str = "hv1", check_mode: bool = False) -> dict[str, t.Any]:
    with transaction(cloud.engine, check_mode) as connection:
        return compute_host(connection, {"name": host, "state": "absent"})


def names(cloud: t.Any) -> list[str]:
    return [row.name for row in cloud.rows(sa.select(tables.compute_host.c.name).order_by(tables.compute_host.c.id))]


def server(cloud: t.Any, host: str = "hv1") -> dict[str, t.Any]:
    (instance,) = cloud.server({"name": "web", "flavor": "m1.tiny", "image": "ami-tiny"})["to_build"]
    cloud.place(instance["uuid"], host)
    cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": host})
    return instance


def test_a_host_with_nothing_on_it_leaves_and_comes_back(cloud: t.Any) -> None:
    instance = server(cloud)
    cloud.server({"name": "web"}, state="absent")
    cloud.state({"uuids": [instance["uuid"]], "state": "deleted", "host": "hv1"})
    cloud.write(
        sa.insert(tables.aggregate).values(id=1, name="fast", metadata={}),
        sa.insert(tables.aggregate_host).values(aggregate_id=1, host="hv1"),
    )
    before = cloud.dump()
    result = leave(cloud, check_mode=True)
    assert result["changed"] and result["diff"]["before"].keys() == {"hv1"}
    assert cloud.dump() == before
    assert leave(cloud)["changed"]
    assert names(cloud) == ["hv2", "hv3"]
    assert cloud.rows(sa.select(tables.aggregate_host)) == []
    assert not leave(cloud)["changed"]
    facts = {"name": "hv1", "up": True, "vcpus": 8, "memory_mb": 16384, "disk_gb": 100}
    with transaction(cloud.engine) as connection:
        assert compute_host(connection, {"compute_hosts": [facts]})["changed"]
    assert names(cloud) == ["hv2", "hv3", "hv1"]


def test_what_left_a_host_is_forgotten_with_it(cloud: t.Any) -> None:
    """Another machine may get its name, and what is there is no leftover of ours."""
    uuid = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
    with transaction(cloud.engine) as connection:
        for host in ("hv1", "hv2"):
            departures.leave(connection, [uuid], host, departures.EVACUATED, 1)
    leave(cloud, "hv1")
    assert [row.host for row in cloud.rows(sa.select(departure))] == ["hv2"]


def test_an_instance_keeps_its_host(cloud: t.Any) -> None:
    server(cloud)
    before = cloud.dump()
    with pytest.raises(HostInUseError, match="compute host 'hv1' cannot leave, for it has instances: web"):
        leave(cloud)
    assert cloud.dump() == before
    assert leave(cloud, "hv2")["changed"]


@pytest.mark.both_databases
def test_a_claim_keeps_its_host(cloud: t.Any) -> None:
    """Its instance is on its way there, or a killed run left it, and reconcile.yml is going to give it back."""
    instance = server(cloud)
    cloud.write(sa.update(tables.instance).values(host="hv2"))
    with pytest.raises(HostInUseError, match="instances: web"):
        leave(cloud)
    cloud.write(sa.update(tables.instance).values(deleted=tables.instance.c.id))
    with pytest.raises(HostInUseError, match=f"instances: {instance['uuid']}"):
        leave(cloud)


@pytest.mark.both_databases
@pytest.mark.parametrize("side", ["source_host", "dest_host"])
def test_a_move_that_waits_for_its_end_keeps_both_hosts(side: str, cloud: t.Any) -> None:
    instance = server(cloud, "hv2")
    flavor = {"name": "m1.tiny"}
    move = {
        "uuid": "m",
        "instance_uuid": instance["uuid"],
        "type": "resize",
        "old_flavor": flavor,
        "new_flavor": flavor,
        "old_vm_state": "active",
        "created_at": 1,
        "updated_at": 1,
        side: "hv1",
    }
    cloud.write(sa.insert(migration).values(**move, status="finished"))
    with pytest.raises(HostInUseError, match="moves that are not done: resize of web"):
        leave(cloud)
    cloud.write(sa.update(migration).values(status="confirmed"))
    assert leave(cloud)["changed"]


def test_a_volume_keeps_its_host(cloud: t.Any) -> None:
    row = {
        "id": "v",
        "project_id": DEMO,
        "name": "data",
        "size_gb": 1,
        "type_id": "t",
        "format": "raw",
        "host": "hv1",
        "status": "available",
        "metadata": {},
        "created_at": 1,
        "updated_at": 1,
    }
    kind = {"id": "t", "name": "local", "backend": "file", "options": {}, "extra_specs": {}, "created_at": 1}
    cloud.write(sa.insert(volume_type).values(**kind), sa.insert(volume).values(**row))
    with pytest.raises(HostInUseError, match="volumes: data"):
        leave(cloud)


@pytest.mark.parametrize("owner", ["dhcp:hv1", "dhcp:hv1/1"])
def test_what_the_host_took_of_networks_is_given_back(cloud: t.Any, owner: str) -> None:
    free = cloud.rows(sa.select(sa.func.min(tables.fixed_ip.c.ip)).where(tables.fixed_ip.c.reserved.is_(None)))[0][0]
    cloud.write(sa.update(tables.fixed_ip).where(tables.fixed_ip.c.ip == free).values(owner=owner))
    leave(cloud)
    (row,) = cloud.rows(sa.select(tables.fixed_ip).where(tables.fixed_ip.c.ip == free))
    assert (row.owner, row.last_owner) == (None, owner) and row.released_at > 0


def test_an_empty_host_alone_may_keep_its_files_elsewhere(cloud: t.Any) -> None:
    def report(**said: str) -> str:
        facts = {"name": "hv1", "up": True, "vcpus": 8, "memory_mb": 16384, "disk_gb": 100, **said}
        with transaction(cloud.engine) as connection:
            (host,) = compute_host(connection, {"compute_hosts": [facts]})["compute_hosts"]
        assert "state_dir" not in host["facts"]
        return str(host["state_dir"])

    assert report() == "/var/lib/novalite"
    assert report(state_dir="/srv/nv") == "/srv/nv"
    server(cloud)
    assert report() == report(state_dir="/srv/nv") == "/srv/nv"
    refused = "compute host 'hv1' cannot have the state directory /data, for it has instances: web"
    with pytest.raises(HostInUseError, match=refused):
        report(state_dir="/data")
    out_of_order = {"name": "hv1", "up": False, "down_reason": "x" * 300}  # what look.yml makes of a long refusal
    with transaction(cloud.engine) as connection:
        (host,) = compute_host(connection, {"compute_hosts": [out_of_order]})["compute_hosts"]
    assert (host["down_reason"], host["state_dir"]) == ("x" * 255, "/srv/nv")
