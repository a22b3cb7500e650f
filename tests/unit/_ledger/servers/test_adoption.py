# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest that somebody else made is recorded, left alone, and given back."""

from __future__ import annotations

import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    NotFoundError,
    NovaliteError,
    QuotaError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.ledger_identity import ledger_id
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.firewall_plan import firewall_plan
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.host_drift import host_drift
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_action import server_action
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_plan import server_plan
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.compute_host import compute_host
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.records import floating_ip
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.server_security_groups import (
    server_security_groups,
)
from ansible_collections.novalite.cloud.plugins.module_utils._network.ownership import Mark

FIRST = 0x0A140000  # of the network private, 10.20.0.0/28
MAC = "52:54:00:12:34:56"
GIB = 1 << 30
NOTHING: dict[str, t.Any] = {
    "disks": [],
    "files": {},
    "volumes": [],
    "missing_bases": {},
    "stale_devices": [],
    "filters": [],
    "chains": [],
    "dhcp_networks": [],
}


def domain(**fields: t.Any) -> dict[str, t.Any]:
    usual = {
        "uuid": str(uuid.uuid4()),
        "name": "db",
        "state": "running",
        "vcpus": 2,
        "memory_mb": 4096,
        "disk_gb": 30,
        "disks": [
            {"dev": "vda", "bus": "virtio", "source": "/srv/db.qcow2", "format": "qcow2", "size": 20 * GIB - 1},
            {"dev": "vdb", "bus": "virtio", "source": "/srv/data.img", "format": "raw", "size": 10 * GIB},
        ],
        "nics": [{"mac": MAC, "bridge": "br-private", "network": None, "device": "vnet3", "addresses": ["10.20.0.9"]}],
        "marked": False,
        "adopted_by": None,
    }
    return {**usual, **fields}


def adopt(cloud: t.Any, of: dict[str, t.Any], check_mode: bool = False, **params: t.Any) -> dict[str, t.Any]:
    return ask(cloud, check_mode, **{"host": "hv1", "domain": of, **params})


def release(cloud: t.Any, name: str = "db", check_mode: bool = False) -> dict[str, t.Any]:
    return ask(cloud, check_mode, state="released", name=name)


def ask(cloud: t.Any, check_mode: bool, **params: t.Any) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", cloud.task("server_adopt", check_mode=check_mode, **params))


def cloud_id(cloud: t.Any) -> str:
    with transaction(cloud.engine) as connection:
        return ledger_id(connection)


def used(cloud: t.Any) -> tuple[int, int, int]:
    c = tables.compute_host.c
    ((vcpus, memory_mb, disk_gb),) = cloud.rows(
        sa.select(c.vcpus_used, c.memory_mb_used, c.disk_gb_used).where(c.name == "hv1")
    )
    return vcpus, memory_mb, disk_gb


def owner_of(cloud: t.Any, number: int) -> tuple[str | None, str | None]:
    (row,) = cloud.rows(sa.select(tables.fixed_ip).where(tables.fixed_ip.c.ip == FIRST + number))
    return row.owner, row.reserved


def test_a_domain_is_recorded_as_it_is(cloud: t.Any) -> None:
    guest = domain()
    before = cloud.dump()
    adopt(cloud, guest, check_mode=True)
    assert cloud.dump() == before
    result = adopt(cloud, guest)
    instance = result["server"]
    assert result["changed"] and result["left_out"] == []
    assert (instance["uuid"], instance["name"], instance["domain_name"], instance["host"]) == (
        guest["uuid"],
        "db",
        "db",
        "hv1",
    )
    assert (instance["vm_state"], instance["task_state"], instance["power_state"]) == ("active", None, 1)
    assert (
        instance["flavor"]["name"] == "adopted.2c4096m20g"
        and instance["security_groups"] == []
        and instance["key"] is None
    )
    assert [(nic["mac"], nic["ip"], nic["network"]["name"]) for nic in instance["nics"]] == [
        (MAC, "10.20.0.9", "private")
    ]
    assert instance["adopted"]["disks"] == guest["disks"] and cloud.info(names=["db"]) == [instance]
    assert used(cloud) == (2, 4096, 30)
    assert f"<uuid>{guest['uuid']}</uuid>" in result["mark"] and "<adopted>true</adopted>" in result["mark"]
    again = adopt(cloud, guest)
    assert not again["changed"] and again["mark"] == result["mark"]
    assert used(cloud) == (2, 4096, 30)


def test_what_was_others_is_counted_once(cloud: t.Any) -> None:
    guest = domain()
    seen = {key: guest[key] for key in ("uuid", "name", "state", "vcpus", "memory_mb", "disk_gb")}
    facts = {"name": "hv1", "up": True, "vcpus": 8, "memory_mb": 16384, "disk_gb": 100, "domains": [seen]}
    c = tables.compute_host.c
    query = sa.select(c.memory_mb_used, c.memory_mb_others).where(c.name == "hv1")

    def look() -> tuple[int, int]:
        with transaction(cloud.engine) as connection:
            compute_host(connection, {"compute_hosts": [facts]})
        ((mine, others),) = cloud.rows(query)
        return mine, others

    assert look() == (0, 4096)
    adopt(cloud, guest)
    assert look() == (4096, 0)
    release(cloud)
    assert look() == (0, 4096)


def test_a_flavor_that_fits_exactly_is_its_flavor(cloud: t.Any) -> None:
    small = domain(vcpus=1, memory_mb=512, disks=[{"dev": "vda", "source": "/d", "format": "raw", "size": GIB}])
    assert adopt(cloud, small, check_mode=True)["server"]["flavor"]["name"] == "m1.tiny"
    assert adopt(cloud, small, check_mode=True, flavor="m1.tiny")["server"]["flavor"]["name"] == "m1.tiny"
    with pytest.raises(NovaliteError, match=r"has 1 vCPUs and 512 MiB, flavor 'm1\.nano' 1 and 96"):
        adopt(cloud, small, flavor="m1.nano")


@pytest.mark.parametrize(
    ("fields", "params", "message"),
    [
        ({"marked": True}, {}, "carries the mark of another ledger"),
        ({"marked": True, "adopted_by": str(uuid.uuid4())}, {}, "carries the mark of another ledger"),
        ({"state": "shutting down"}, {}, "is shutting down: wait"),
        ({"name": "my_db"}, {}, "server name 'my_db' is not a host name"),
        ({}, {"host": "hv9"}, "unknown compute host 'hv9'"),
        ({}, {"project": "nobody"}, "unknown project 'nobody'"),
        ({}, {"network": "lan"}, "unknown network 'lan'"),
        ({}, {"address": "10.99.0.1"}, "outside of network 'private'"),
        ({}, {"address": "10.20.0.15"}, "is reserved in network 'private'"),
        ({}, {"address": "x"}, "address 'x' is not an IPv4 address"),
        ({}, {"network": "none", "address": "10.20.0.9"}, "no interface of 'db' is to be recorded"),
        (
            {"nics": [{"mac": MAC, "bridge": "virbr0", "network": "default", "addresses": []}]},
            {},
            "is on a network of this project .private is bridge br-private.",
        ),
        (
            {"nics": [{"mac": MAC, "bridge": "br-private", "network": None, "addresses": []}]},
            {},
            "10.20.0.0/28. is not known here: give address=",
        ),
        (
            {"nics": [{"mac": MAC, "bridge": "br-private", "network": None, "addresses": ["10.20.0.5", "10.20.0.6"]}]},
            {},
            "is one of 10.20.0.5, 10.20.0.6: give address=",
        ),
    ],
)
def test_what_cannot_be_told_or_had_is_said_and_nothing_is_written(
    fields: dict[str, t.Any], params: dict[str, t.Any], message: str, cloud: t.Any
) -> None:
    before = cloud.dump()
    with pytest.raises((NovaliteError, NotFoundError), match=message):
        adopt(cloud, domain(**fields), **params)
    assert cloud.dump() == before


def test_an_address_mac_or_name_that_is_taken_is_refused(cloud: t.Any) -> None:
    adopt(cloud, domain())
    before = cloud.dump()
    other = {"bridge": "br-private", "network": None}
    with pytest.raises(ConflictError, match="has a server 'db' already"):
        adopt(cloud, domain())
    with pytest.raises(ConflictError, match="is in use by instance 'db'"):
        adopt(cloud, domain(name="db2", nics=[{"mac": "52:54:00:00:00:01", "addresses": ["10.20.0.9"], **other}]))
    with pytest.raises(ConflictError, match=f"MAC {MAC} is another server's"):
        adopt(cloud, domain(name="db2", nics=[{"mac": MAC, "addresses": ["10.20.0.10"], **other}]))
    assert cloud.dump() == before


def test_a_mark_of_its_own_without_a_record_is_no_hindrance(cloud: t.Any) -> None:
    """Of a guest that was moved by hand and released, or that a lost ledger forgot."""
    assert adopt(cloud, domain(marked=True, adopted_by=cloud_id(cloud)))["changed"]


@pytest.mark.both_databases
def test_a_quota_counts(cloud: t.Any) -> None:
    with pytest.raises(QuotaError, match="cores"):
        adopt(cloud, domain(vcpus=21))


def test_no_host_is_too_full_for_what_it_runs_already(cloud: t.Any) -> None:
    adopt(cloud, domain(memory_mb=40000))
    assert used(cloud) == (2, 40000, 30)


def test_what_is_moved_by_hand_is_left_where_it_is(cloud: t.Any) -> None:
    guest = adopt(cloud, domain())["server"]
    mark = Mark(cloud_id(cloud)).text
    seen = {"uuid": guest["uuid"], "name": "db", "state": "running", "reason": "", "macs": [MAC], "taps": []}
    look = {**NOTHING, "domains": [seen], "bridges": ["br-private"], "bridge_owners": {"br-private": [mark]}}
    with transaction(cloud.engine) as connection:
        params = {"host": "hv2", "found": look, "began": time.monotonic(), "state_dir": "/s"}
        result = host_drift(connection, params)
    assert not result["left"] and result["unknown"] == []
    (row,) = result["rows"]
    assert (row["ledger"], row["there"]) == ("adopted on hv1", "here")


def test_interfaces_on_networks_of_others_are_left_out_and_named(cloud: t.Any) -> None:
    nics = [*domain()["nics"], {"mac": "52:54:00:00:00:02", "bridge": "virbr0", "network": "default", "addresses": []}]
    assert adopt(cloud, domain(nics=nics), check_mode=True)["left_out"] == ["52:54:00:00:00:02 on virbr0"]
    result = adopt(cloud, domain(nics=nics), network="none")
    assert result["server"]["nics"] == [] and len(result["left_out"]) == 2


@pytest.mark.parametrize("reserved", [None, "user"])
def test_a_released_server_leaves_the_ledger_as_it_was(reserved: str | None, cloud: t.Any) -> None:
    free = tables.fixed_ip.c.ip == FIRST + 9
    cloud.write(sa.update(tables.fixed_ip).where(free).values(reserved=reserved))
    before = cloud.dump()
    adopt(cloud, domain())
    assert owner_of(cloud, 9)[0] is not None
    held = cloud.dump()
    release(cloud, check_mode=True)
    assert cloud.dump() == held
    result = release(cloud)
    assert result["changed"] and result["host"] == "hv1"
    assert owner_of(cloud, 9) == (None, reserved)
    after = cloud.dump()
    # history, generations, quarantine
    changed = {"instance_action", "instance_action_event", "compute_host", "fixed_ip"}
    for table in before.keys() - changed:
        assert after[table] == before[table], table
    assert used(cloud) == (0, 0, 0)


def test_only_what_was_adopted_is_released(cloud: t.Any) -> None:
    cloud.server({"name": "web", "flavor": "m1.nano", "image": "ami-tiny"})
    with pytest.raises(ConflictError, match="'web' was made by novalite: only what was adopted is released"):
        release(cloud, "web")
    with pytest.raises(NotFoundError, match="unknown adopted server 'nobody'"):
        release(cloud, "nobody")
    guest = adopt(cloud, domain())["server"]
    mine = tables.instance.c.uuid == guest["uuid"]
    cloud.write(sa.update(tables.instance).where(mine).values(task_state="rebooting"))
    with pytest.raises(ConflictError, match="is in task_state rebooting"):
        release(cloud)


# those of states that it never has
NEVER = {"unrescue", "confirmResize", "revertResize", "shelveOffload", "unshelve"}


@pytest.mark.parametrize("action", sorted(set(server_actions.NAMES) - NEVER))
def test_what_may_be_done_with_it(action: str, cloud: t.Any) -> None:
    allowed = {"start", "stop", "reboot", "pause", "unpause", "suspend", "resume"}
    guest = adopt(cloud, domain())["server"]
    state = {"start": "stopped", "unpause": "paused", "resume": "suspended"}.get(action, "active")
    cloud.write(sa.update(tables.instance).values(vm_state=state))
    with transaction(cloud.engine) as connection:
        if action in allowed:
            assert server_actions.begin(connection, action, [guest["uuid"]], request_id="req-1")
        else:
            with pytest.raises(ConflictError, match=rf"Cannot '{action}' instance .* it was adopted.*release it first"):
                server_actions.begin(connection, action, [guest["uuid"]], request_id="req-1")


def test_it_is_not_deleted_nor_put_into_groups(cloud: t.Any) -> None:
    adopt(cloud, domain())
    before = cloud.dump()
    with pytest.raises(ConflictError, match=r"Cannot 'delete' instance .*adopted"):
        cloud.server({"name": "db"}, state="absent")
    joining = {"name": "db", "security_groups": ["default"]}
    with transaction(cloud.engine, check_mode=True) as connection, pytest.raises(ConflictError, match="adopted"):
        asked = {"project": "demo", "servers": [joining], "state": "present", "exclusive": False}
        server_security_groups(connection, asked)
    leading = {"address": None, "pool": "pool", "server": "db", "fixed_ip": None}
    cloud.write(sa.insert(tables.floating_pool).values(name="pool", cidr="203.0.113.0/24", interface="eth0"))
    before = cloud.dump()
    with transaction(cloud.engine) as connection, pytest.raises(ConflictError, match=r"floating IP.*adopted"):
        floating_ip(connection, {"project": "demo", "state": "present", "floating_ips": [leading]})
    assert cloud.dump() == before


def test_it_is_started_as_it_is_defined(cloud: t.Any) -> None:
    guest = adopt(cloud, domain(state="shutoff"))["server"]
    with transaction(cloud.engine) as connection:
        params = {"action": "start", "project": "demo", "servers": [{"name": "db"}], "state_dir": "/var/lib/novalite"}
        (plan,) = server_action(connection, params)["hosts"].values()
    (spec,) = plan["domains"]
    assert (spec["uuid"], spec["name"], spec["xml"], spec["as_defined"]) == (guest["uuid"], "db", None, True)
    assert not plan["starts"]  # nothing is made on its networks for it


def test_no_host_is_told_to_do_anything_for_it(cloud: t.Any) -> None:
    guest = adopt(cloud, domain())["server"]
    with transaction(cloud.engine) as connection:
        params: dict[str, t.Any] = {"instances": [], "leaving": [], "compute_hosts": [], "state_dir": "/s"}
        assert server_plan(connection, {**params, "existing": [guest]})["hosts"] == {}
        assert firewall_plan(connection, {"hosts": ["hv1"]})["hosts"]["hv1"]["instances"] == []


@pytest.mark.parametrize(
    ("there", "vm_state", "rows"),
    [
        ("running", "active", []),
        ("shutoff", "stopped", ["recorded as stopped"]),
        (None, "active", ["none: define it, mark it anew (adopt.yml), or release it (release.yml)"]),
    ],
)
def test_reconcile_follows_it_and_repairs_nothing(
    there: str | None, vm_state: str, rows: list[str], cloud: t.Any
) -> None:
    guest = adopt(cloud, domain())["server"]
    cloud.write(sa.update(tables.instance).values(updated_at=1))
    seen = {"uuid": guest["uuid"], "name": "db", "state": there, "reason": "destroyed", "macs": [MAC], "taps": []}
    look = {**NOTHING, "domains": [] if there is None else [seen], "bridges": ["br-private"]}
    with transaction(cloud.engine) as connection:
        params = {"host": "hv1", "found": look, "began": time.monotonic(), "state_dir": "/s"}
        result = host_drift(connection, params)
    assert [row["repair"] for row in result["rows"]] == rows
    assert not result["left"] and result["keep"] is None and result["define"] == [] and result["restart"] == []
    assert result["unknown"] == []
    ((now,),) = cloud.rows(sa.select(tables.instance.c.vm_state))
    assert now == vm_state
