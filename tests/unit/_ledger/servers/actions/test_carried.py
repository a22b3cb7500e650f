# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host may tell of the ledger: for each table and column of the schema, and for whose rows."""

from __future__ import annotations

import json
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.slices import (
    CARRIED,
    FILES,
    IMAGES,
    POOL,
    WITHHELD,
    without_paths,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.drift.carried import Filter
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Image
from tests.support.cloud import Cloud
from tests.unit._ledger.servers.actions.test_rebuild import Host, empty, kept, rebuild

SCHEMA = tables.metadata.tables
NEVER = (
    *("user", "role", "role_assignment", "token", "trust", "domain", "user_group", "user_group_member", "access_rule"),
    *("application_credential", "ec2_credential", "credential", "auth_failure", "secret", "ledger_identity"),
    *("compute_host", "aggregate", "aggregate_host", "volume_type_access", "flavor_access", "image_member"),
    *("job", "run", "worker", "departure"),
)
# Columns of tables that hosts tell of which they are not told, and may not tell
KEPT_BACK = {
    # a host speaks for its own guests, and for no others of their projects; the watch finds the reason anew
    "instance": {*WITHHELD, "ha_reason"},
    "project": {"ha", "ha_priority", "ha_rebuild"},
    "instance_action": {"message"},
    "migration": {"message"},
    "allocation": {"compute_host_id"},
    "subnet": {"subnetpool_id"},
    "floating_ip": {"last_project_id"},  # of one that nobody has
    "image": {"source", "transfer", "fault"},
    # its owner, as long as nobody shares it; where other projects' servers go
    "network": {"made_by", "is_default"},
    "floating_pool": {"made_by"},
    "volume": {"backup_disk"},  # which is of use until the volume is made
}
EVIL = "/etc/shadow"
# what is decided here knows no database
on_sqlite_cloud = pytest.mark.parametrize("cloud", ["sqlite"], indirect=True)


def value_for(column: sa.Column[t.Any]) -> t.Any:
    """A value that the database takes for the column."""
    kind = column.type
    if isinstance(kind, sa.JSON):
        return {"evil": EVIL}
    if isinstance(kind, sa.Boolean):
        return True
    if isinstance(kind, (sa.Integer, sa.BigInteger, sa.Float)):
        return 1
    return ("evil" * 32)[: getattr(kind, "length", None) or 32]


def a_row(table: sa.Table) -> dict[str, t.Any]:
    return {column.name: value_for(column) for column in table.columns}


def records_of(host: Host) -> t.Iterator[dict[str, t.Any]]:
    for text in (*host["records"].values(), host["host_record"]):
        yield json.loads(text)["tables"]


def test_nothing_is_carried_that_says_who_may_do_what() -> None:
    assert set(NEVER) <= SCHEMA.keys()
    assert not CARRIED.keys() & set(NEVER)


def test_each_column_of_what_hosts_tell_of_is_carried_or_kept_back() -> None:
    """A new column is neither, until somebody decides."""
    left = {
        name: set(SCHEMA[name].columns.keys()) - columns
        for name, columns in CARRIED.items()
        if name != POOL and set(SCHEMA[name].columns.keys()) - columns
    }
    assert left == KEPT_BACK
    unknown = {name: columns - set(SCHEMA[name].columns.keys()) for name, columns in CARRIED.items() if name != POOL}
    assert {name: columns for name, columns in unknown.items() if columns} == {"allocation": {"host"}}


@on_sqlite_cloud
def test_hosts_are_told_no_more_than_they_may_tell(full: Cloud) -> None:
    files = [{"path": "/a", "content": "c2VjcmV0"}]
    full.write(sa.update(tables.instance).values(password_hash="$6$hash", files=files))
    for host in kept(full):
        for rows in records_of(host):
            for name, of_table in rows.items():
                assert {column for row in of_table for column in row} <= CARRIED[name]
        text = json.dumps(host)
        assert "/images/tiny" not in text and "os_host_mount" not in text


@pytest.mark.parametrize("name", sorted(SCHEMA.keys() - CARRIED.keys()))
def test_a_table_that_is_not_the_hosts_is_refused_by_name(name: str) -> None:
    reported = {name: [a_row(SCHEMA[name])]}
    for rows, refused in (filtered(reported), filtered(reported, host="hv1")):
        assert rows == {} and refused == {name: 1}


@pytest.mark.parametrize(
    ("name", "column"), [(name, column) for name, columns in KEPT_BACK.items() for column in sorted(columns)]
)
def test_a_column_that_is_not_the_hosts_is_refused_by_name(name: str, column: str) -> None:
    reported = {name: [{column: value_for(SCHEMA[name].columns[column])}]}
    rows, refused = filtered(reported)
    assert f"{name}.{column}" in refused
    assert not any(column in row for row in rows.get(name, ()))


def filtered(reported: t.Any, host: str | None = None) -> tuple[dict[str, t.Any], dict[str, int]]:
    believed = Filter(10**9)
    rows = believed.of_instance("u", reported) if host is None else believed.of_host(host, ["p"], ["v"], reported)
    return rows, dict(believed.refused)


@on_sqlite_cloud
def test_a_host_makes_nobody_an_administrator(full: Cloud) -> None:
    """A row of each table of the schema, in each record of a host: none of what is not the host's is written, into a
    ledger that is in use or one that was lost."""
    hosts = kept(full)
    for host in hosts:
        del host["marks"]
        for key, text in [*host["records"].items(), (None, host["host_record"])]:
            record = json.loads(text)
            for name in SCHEMA.keys() - CARRIED.keys():
                record["tables"][name] = [a_row(SCHEMA[name])]
            if key is None:
                host["host_record"] = json.dumps(record)
            else:
                host["records"][key] = json.dumps(record)
    for lost in (False, True):
        if lost:
            empty(full)
        before = full.dump()
        result = rebuild(full, hosts)
        after = full.dump()
        # the host that answers is recorded, as one that has nothing to give; names in the DNS follow from servers
        for name in (
            SCHEMA.keys() - CARRIED.keys() - {"ledger_identity", "dns_name", *(["compute_host"] if lost else [])}
        ):
            assert after[name] == before[name], name
        text = "\n".join(result["lost"])
        assert "what hv1 tells of" in text and "role_assignment (2)" in text and "it is not a host's to tell" in text
    assert {row.vcpus for row in full.rows(sa.select(tables.compute_host.c.vcpus))} == {0}


@pytest.mark.parametrize(("table", "column"), sorted(IMAGES | FILES))
def test_no_path_of_the_controller_comes_from_a_host(table: str, column: str) -> None:
    kernel = {"source": EVIL, "checksum": "x", "size": 1}
    image = dict.fromkeys(Image.__annotations__, "x") | {"source": EVIL, "kernel": kernel, "ramdisk": None}
    image |= {"properties": {"os_host_mount": "yes", "novalite:x": 1}}
    believed = Filter(10**9)
    reported: dict[str, t.Any] = {column: image if (table, column) in IMAGES else kernel}
    if column == "cdroms":
        reported = {column: [None, image]}
    assert EVIL not in json.dumps(believed._row(table, reported))
    assert f"{table}.{column}'s files and what hosts may do with them" in believed.refused
    assert EVIL not in json.dumps(without_paths(table, column, reported[column]))


@on_sqlite_cloud
def test_a_host_speaks_of_its_own_guests_alone(full: Cloud) -> None:
    """Rows of hv2's guests, and of what only they stand on, reported by hv1 beside its own, when the ledger is lost."""
    hosts = kept(full)
    for key, text in hosts[0]["records"].items():
        record = json.loads(text)
        for rows in records_of(hosts[1]):
            for name, of_table in rows.items():
                mine = record["tables"].setdefault(name, [])
                mine += [row for row in of_table if row not in mine and name != "instance"]
        hosts[0]["records"][key] = json.dumps(record)
    empty(full)
    result = rebuild(full, hosts[:1], partial=True)
    [server] = full.info(all_projects=True)
    assert server["name"] == "web-1"
    after = full.dump()
    assert {row.instance_uuid for name in ("vif", "allocation") for row in after[name]} == {server["uuid"]}
    assert after["volume"] == after["volume_attachment"] == [] and len(after["instance_security_group"]) == 1
    assert {row.owner for row in after["fixed_ip"]} <= {None, f"vif:{server['nics'][0]['id']}", "dhcp:hv1", "dhcp:hv2"}
    text = "\n".join(result["lost"])
    for name in ("vif", "fixed_ip", "allocation", "instance_security_group", "volume"):
        assert f"{name} of others" in text


@on_sqlite_cloud
@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("network", "bridge", "../../x"),
        ("network", "cidr", "everything"),
        ("network", "domain", "a\nhost-record=evil"),
        ("vif", "mac", "fa:16:3e:00:00:01\n"),
        ("instance", "hostname", "a,b"),
        ("instance", "id", "seven"),
        ("instance", "flavor", {"name": "m1.nano"}),
        ("instance", "ha_priority", 101),
        ("instance", "ha", "yes"),
        ("project", "id", "../" * 10),
        ("volume", "size_gb", True),
        ("pool", "ranges", [[0, 1 << 32, None]]),
    ],
)
def test_values_that_make_no_sense_are_left_out(full: Cloud, table: str, column: str, value: t.Any) -> None:
    hosts = kept(full)
    for host in hosts:
        for key, text in host["records"].items():
            record = json.loads(text)
            for row in record["tables"].get(table, ()):
                row[column] = value
            host["records"][key] = json.dumps(record)
        host["host_record"] = None
    empty(full)
    result = rebuild(full, hosts)
    assert any(f"{table} that makes no sense" in line for line in result["lost"])
    stored = [row for row in full.dump().get(table, ()) if getattr(row, column, None) == value and value is not True]
    assert stored == []


@on_sqlite_cloud
def test_nothing_told_is_yet_to_come(full: Cloud) -> None:
    """A time that lies far ahead would keep everything else from ever being called old."""
    hosts = kept(full)
    [(key, text)] = hosts[0]["records"].items()
    record = json.loads(text)
    for of_table in record["tables"].values():
        for row in of_table:
            row.update({name: 10**12 for name in row if name.endswith("_at")})
    hosts[0]["records"][key] = json.dumps({**record, "written_at": 10**12})
    empty(full)
    rebuild(full, hosts)
    for rows in full.dump().values():
        for row in rows:
            assert not any(value == 10**12 for value in row)
