# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host with another name: whatever the ledger has of it goes along, and nothing of others."""

from __future__ import annotations

import ipaddress
import json
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_images
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_addresses import host_owner
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.host_renaming import (
    NAMES,
    OF_JOBS,
    OWNERS,
    WITHIN,
)
from api.jobs.kinds import HOST, KINDS
from tests.support.cloud import SEEN_EVER, Cloud
from tests.support.rows import DEMO, a_flavor, add_image

OLD, NEW = "hv-old", "node1"
IDENTITY = {"machine_id": "a" * 32}
MACHINE = {"identity": IDENTITY, "marks": {}}
# Words that columns with names of hosts, or with owners of addresses, have in theirs
WORDS = ("host", "owner", "attempts", "zone", "variables", "binding")
# Of them, those that hold none: of projects, of zones, of clients' machines, of guests' own names, numbers
OTHERS = {
    *("compute_host.zone", "aggregate.zone", "volume.availability_zone", "network.owner", "image.owner"),
    *("instance.hostname", "allocation.compute_host_id", "server_group.max_server_per_host", "run.attempts"),
    *("site_record.owner", "port.device_owner", "worker.hostname", "volume_reservation.host", "host_watch.attempts"),
}


# JSON that holds none: of people, images, networks and sizes; words about what was; what a host says of itself
WITHOUT_HOSTS = {
    *("aggregate.metadata", "backup_policy.keep", "ec2_request.result", "flavor.extra_specs", "image_task.input"),
    *(f"compute_host.{name}" for name in ("aggregates", "traits", "identity", "marks_sent", "facts")),
    *(f"host_watch.{name}" for name in ("reading", "proof", "moved", "fence", "means")),
    *(f"image.{name}" for name in ("kernel", "ramdisk", "properties", "tags")),
    *(f"network.{name}" for name in ("dns", "ntp", "routes")),
    *(f"subnet.{name}" for name in ("pools", "dns", "routes")),
    *(f"instance.{name}" for name in ("flavor", "image", "rescue_image", "disk_image", "cdroms", "adopted")),
    *(f"instance.{name}" for name in ("metadata", "fault", "files", "tags")),
    *(f"server_backup.{name}" for name in ("disks", "flavor", "boot", "fault")),
    *("server_snapshot.volumes", "server_snapshot.fault", "migration.old_flavor", "migration.new_flavor"),
    *(f"volume.{name}" for name in ("image", "backup_disk", "metadata", "fault")),
    *(f"{name}.{column}" for name in ("volume_backup", "volume_snapshot") for column in ("metadata", "fault")),
    *("job.result", "watch.balance", "allocation.numa", "volume_type.extra_specs"),
    *("application_credential.roles", "application_credential.access_rules", "trust.roles", "subnet_pool.prefixes"),
    *("project.extra", "user.extra", "user.options", "user_group.extra"),
    *("vif.allowed_address_pairs", "port.extra_dhcp_opts"),
}


@pytest.fixture
def cloud(ledger_url: str) -> t.Iterator[Cloud]:
    opened = Cloud(ledger_url)
    opened.project("demo", DEMO)
    opened.host(OLD, identity=IDENTITY)
    yield opened
    opened.close()


def rename(cloud: Cloud, machine: dict[str, t.Any] = MACHINE, old: str = OLD, **args: t.Any) -> dict[str, t.Any]:
    machines = {NEW: machine}
    return cloud.run("host_identity", state="renamed", name=old, new_name=NEW, machines=machines, **args)


def test_every_column_that_may_hold_a_name_is_known() -> None:
    """A new one is renamed, or named above as one that holds none."""
    known = {str(column) for column in (*NAMES, *OWNERS, *WITHIN)} | OTHERS | WITHOUT_HOSTS
    columns = {
        str(column)
        for table in tables.metadata.sorted_tables
        for column in table.columns
        if isinstance(column.type, sa.JSON) or any(word in column.name for word in WORDS)
    }
    assert columns - known == set()


def test_every_variable_of_a_job_that_may_hold_a_name_is_known() -> None:
    chosen = {name for kind in KINDS.values() for name in (*kind.hosts, *(["limit"] if kind.limit else []))}
    schemas = [item for kind in KINDS.values() for item in kind.schema["properties"].items()]
    named = {name for name, schema in schemas if HOST in (schema, schema.get("items"))}
    assert (chosen | named) - {"everywhere"} == set(OF_JOBS)


def test_a_name_is_replaced_in_patterns_and_lists_of_jobs(cloud: Cloud) -> None:
    before = {"limit": f"{OLD},x-{OLD}:!{OLD}:{OLD}2", "holders": [OLD, f"{OLD}2"], "server": OLD}
    cloud.write(a_row(tables.tables_jobs.job, id="j", kind="floating_ips", variables=before, state="queued"))
    rename(cloud)
    after = {"limit": f"{NEW},x-{OLD}:!{NEW}:{OLD}2", "holders": [NEW, f"{OLD}2"], "server": OLD}
    assert [row.variables for row in cloud.rows(sa.select(tables.tables_jobs.job.c.variables))] == [after]


@pytest.mark.parametrize("wish", [{"hints": {"host": OLD}}, {"availability_zone": f"nova:{OLD}"}])
def test_a_server_that_waits_for_its_host_goes_there_under_the_new_name(cloud: Cloud, wish: dict[str, t.Any]) -> None:
    cloud.host("other")
    cloud.change_host(OLD, vcpus=4, memory_mb=4096, disk_gb=40, up=True, last_seen_at=1)
    cloud.insert(tables.flavor, **a_flavor())
    with transaction(cloud.engine) as connection:
        add_image(connection)
    cloud.network()
    asked = {"name": "web", "flavor": "m1.tiny", "image": "ami-tiny", **wish}
    (uuid,) = [server["uuid"] for server in cloud.server(asked)["to_build"]]
    launch = {"servers": [{"name": "db", **wish}, {"name": "free", "hints": {"group": OLD}}]}
    cloud.write(a_row(tables.tables_jobs.job, id="j", kind="launch", variables=launch, state="queued"))
    rename(cloud)
    instances = cloud.server(uuids=[uuid])["to_build"]
    placed = cloud.operate("scheduler", instances=instances, service_down_time=SEEN_EVER)
    assert [server["host"] for server in placed["instances"]] == [NEW]
    (job,) = cloud.rows(sa.select(tables.tables_jobs.job.c.variables))
    renamed = json.loads(json.dumps(wish).replace(OLD, NEW))
    assert job.variables == {"servers": [{"name": "db", **renamed}, {"name": "free", "hints": {"group": OLD}}]}


def test_a_type_of_volumes_names_a_host_once(cloud: Cloud) -> None:
    options = {"hosts": [NEW, OLD, "other"], "format": "raw"}  # the host had the new name once
    of_type = tables.tables_volumes.volume_type
    cloud.write(a_row(of_type, id="t", name="t", backend="file", options=options))
    rename(cloud)
    assert cloud.rows(sa.select(of_type.c.options)) == [({"hosts": [NEW, "other"], "format": "raw"},)]


def a_row(table: sa.Table, **columns: t.Any) -> sa.Insert:
    """Write one with these columns, and something in all others that need it."""
    fillers: dict[type, t.Any] = {str: "", int: 1, float: 1.0, bool: False}
    needed = [
        each for each in table.columns if not (each.nullable or each.server_default or each.autoincrement is True)
    ]
    return sa.insert(table).values({each.name: fillers.get(each.type.python_type, {}) for each in needed} | columns)


def fill(cloud: Cloud, host: str) -> None:
    """Have the host wherever the ledger can have one."""
    if host != OLD:
        cloud.host(host)
    network = cloud.network(f"net-{host}", "10.20.0.0/24")
    instance = cloud.instance(
        DEMO, f"web-{host}", host=host, attempts=["other", host], availability_zone=f"nova:{host}"
    )
    vif = cloud.vif(instance, network.id)
    networking, volumes = tables.tables_networking, tables.tables_volumes
    jobs, moves, images = tables.tables_jobs, tables.tables_migrations, tables_images
    key = str(uuid.uuid4())
    of_network, ip = tables.fixed_ip.c.network_id == network.id, tables.fixed_ip.c.ip
    first = int(ipaddress.ip_network(network.cidr).network_address)
    number = cloud.insert(tables.aggregate, name=f"fast-{host}", metadata={}, created_at=0)
    cloud.write(
        a_row(tables.aggregate_host, aggregate_id=number, host=host),
        a_row(
            tables.instance_action,
            id=number,
            instance_uuid=instance,
            action="create",
            details={"host": host, "hints": {"host": host}},
        ),
        a_row(tables.instance_action_event, action_id=number, host=host),
        a_row(moves.migration, uuid=key, instance_uuid=instance, source_host=host, dest_host=host, type="resize"),
        a_row(moves.departure, instance_uuid=instance, host=host),
        a_row(moves.rolling_host, host=host),
        a_row(moves.host_watch, host=host),
        a_row(moves.watch_event, host=host),
        a_row(volumes.volume_type, id=key, name=f"type-{host}", backend="file", options={"hosts": ["other", host]}),
        a_row(volumes.volume, id=key, project_id=DEMO, name=f"data-{host}", type_id=key, format="raw", host=host),
        a_row(volumes.volume_backup, id=key, volume_id=key, project_id=DEMO, host=host, incremental=False),
        a_row(images.server_backup, id=key, instance_uuid=instance, project_id=DEMO, host=host, disks=[], flavor={}),
        a_row(
            images.replica,
            instance_uuid=instance,
            **dict.fromkeys(("host", "next_host", "requested_host"), host),
            former=["other", host],
        ),
        a_row(images.server_snapshot, id=key, instance_uuid=instance, name="before", host=host, volumes=[]),
        a_row(jobs.job, id=key, kind="host_evacuate", variables={"host": host}, state="queued"),
        a_row(jobs.run, id=key, state="ended"),
        a_row(jobs.job_event, run_id=key, host=host),
        a_row(networking.port, vif_id=vif, project_id=DEMO, binding={"host_id": host}),
        sa.update(tables.fixed_ip).where(of_network, ip == first + 5).values(owner=host_owner(host)),
        sa.update(tables.fixed_ip).where(of_network, ip == first + 6).values(last_owner=host_owner(host)),
        sa.update(tables.fixed_ip).where(of_network, ip == first + 7).values(owner=host_owner(host, 3)),
    )


def holding(cloud: Cloud, host: str) -> set[str]:
    """The columns that have this name, or an owner of it, in any row."""
    words = {host, f"nova:{host}", *(host_owner(host, position) for position in range(5))}
    return {
        f"{table.name}.{column}"
        for table in tables.metadata.sorted_tables
        for row in cloud.rows(sa.select(table))
        for column, value in row._mapping.items()
        if any(f'"{word}"' in json.dumps(value, default=str) for word in words)
    }


def test_a_name_is_replaced_wherever_it_is(cloud: Cloud) -> None:
    everywhere = {str(column) for column in (*NAMES, *OWNERS, *WITHIN)}
    for host in (OLD, "hv-old2", "x-hv-old"):
        fill(cloud, host)
        assert holding(cloud, host) == everywhere
    of_another = sa.select(tables.instance).where(tables.instance.c.host == "hv-old2")
    others = cloud.rows(of_another)
    result = rename(cloud)
    assert result["changed"] and set(result["renamed"]) == {column.partition(".")[0] for column in everywhere}
    assert holding(cloud, OLD) == set() and holding(cloud, NEW) == everywhere
    assert holding(cloud, "hv-old2") == holding(cloud, "x-hv-old") == everywhere
    assert cloud.rows(of_another) == others
    before = cloud.dump()
    assert not rename(cloud)["changed"] and cloud.dump() == before


def test_check_mode_says_what_would_be_renamed(cloud: Cloud) -> None:
    before = cloud.dump()
    assert rename(cloud, check_mode=True)["renamed"] == {"compute_host": 1}
    assert cloud.dump() == before


@pytest.mark.parametrize(
    ("machine", "sentence"),
    [
        ({"identity": {"machine_id": "b" * 32}, "marks": {}}, "this is not the machine that the ledger has as hv-old"),
        ({"identity": IDENTITY, "marks": {"LEDGER": {"host": "hv9", "mark": "0"}}}, "has the mark of hv9"),
    ],
)
def test_another_machine_is_not_renamed(cloud: Cloud, machine: dict[str, t.Any], sentence: str) -> None:
    (identity,) = cloud.rows(sa.select(tables.ledger_identity.c.uuid))[0]
    machine = json.loads(json.dumps(machine).replace("LEDGER", identity))
    with pytest.raises(NovaliteError, match=sentence):
        rename(cloud, machine)
    assert holding(cloud, OLD) == {"compute_host.name"}


def test_a_host_is_not_renamed_while_something_is_under_way(cloud: Cloud) -> None:
    cloud.instance(DEMO, "web", host=OLD, vm_state="building", task_state="spawning")
    with pytest.raises(ConflictError, match=r"cannot be renamed while something is under way on it \(web\)"):
        rename(cloud)


def test_a_restored_ledger_is_told_of_a_new_name_before_its_hosts_are_asked(cloud: Cloud) -> None:
    assert rename(cloud, check_mode=True)["behind"] is False
    cloud.write(sa.update(tables.ledger_identity).values(behind="restored", behind_since=0))
    assert rename(cloud)["behind"] is True and holding(cloud, OLD) == set()


def test_names_of_others_are_refused(cloud: Cloud) -> None:
    cloud.host(NEW)
    with pytest.raises(ConflictError, match="there is another host of this name"):
        rename(cloud)
    with pytest.raises(NotFoundError, match="there is no compute host 'hv7'"):
        cloud.run("host_identity", state="renamed", name="hv7", new_name="hv8", machines={"hv8": MACHINE})
    with pytest.raises(NovaliteError, match="'hv8' has not told which machine it is: put it into the inventory"):
        cloud.run("host_identity", state="renamed", name=OLD, new_name="hv8", machines={})
    with pytest.raises(NovaliteError, match="give 'hv-old' another name"):
        cloud.run("host_identity", state="renamed", name=OLD, new_name=OLD, machines={OLD: MACHINE})


def test_departures_from_an_earlier_host_of_the_new_name_are_none_of_this_one(cloud: Cloud) -> None:
    departure = tables.tables_migrations.departure
    cloud.write(*(a_row(departure, instance_uuid="u", host=host, left_at=n) for n, host in enumerate((OLD, NEW))))
    rename(cloud)
    assert cloud.rows(sa.select(departure.c.host, departure.c.left_at)) == [(NEW, 0)]
