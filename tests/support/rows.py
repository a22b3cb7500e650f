# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows of a test's cloud, each with what its table asks for; a test names only the columns that it is about.

Builders return the columns; what begins with `add_` writes them over an open connection.
"""

from __future__ import annotations

import ipaddress
import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import dns_names

GIB = 1024**3
DEMO, OTHER = "d" * 32, "e" * 32  # ids of the projects `demo` and `other`
IMAGE_ID = "6a6f9a8a-5f43-4f4e-9d0e-0d0c6a1f7a11"
QEMU = {"hypervisor_type": "QEMU", "hypervisor_version": 7002000, "arch": "x86_64"}

Columns = dict[str, t.Any]


def a_host(name: str = "hv1", **columns: t.Any) -> Columns:
    """A compute host that is up, without reserves, of which nothing is promised twice."""
    sums = dict.fromkeys(("reserved_vcpus", "reserved_memory_mb", "reserved_disk_gb"), 0)
    ratios = dict.fromkeys(("cpu_ratio", "ram_ratio", "disk_ratio"), 1.0)
    state = {"enabled": True, "up": True, "last_seen_at": 0, "aggregates": [], "traits": [], "facts": {}}
    return {"name": name, "vcpus": 4, "memory_mb": 4096, "disk_gb": 40, **sums, **ratios, **state, **columns}


def a_flavor(name: str = "m1.tiny", **columns: t.Any) -> Columns:
    """A flavor, as the ledger has it and as an instance keeps it."""
    sizes = {"vcpus": 1, "memory_mb": 512, "root_gb": 1, "ephemeral_gb": 0, "swap_mb": 0}
    return {"name": name, **sizes, "extra_specs": {}, **columns}


def an_image(name: str = "ami-tiny", **columns: t.Any) -> Columns:
    """An image of the operator, as an instance keeps it; its own row has `created_at`, too."""
    file = {"disk_format": "qcow2", "source": "/images/tiny", "checksum": "sha256:" + "0" * 64, "size": 1000}
    boot: Columns = {
        "kernel": None,
        "ramdisk": None,
        "cmdline": "",
        "min_disk_gb": 0,
        "min_ram_mb": 0,
        "properties": {},
    }
    return {"id": str(uuid.uuid4()), "name": name, **file, "virtual_size": GIB, **boot, **columns}


def an_instance(name: str = "web", **columns: t.Any) -> Columns:
    """An active instance of the project `demo`, on no host."""
    owner = {"uuid": str(uuid.uuid4()), "project_id": DEMO, "name": name, "hostname": name}
    made_of = {"flavor": a_flavor(), "image": an_image(id=IMAGE_ID), "metadata": {}}
    state = {"vm_state": "active", "attempts": [], "created_at": 0, "updated_at": 0}
    return {**owner, **made_of, **state, **columns}


def a_network(name: str = "private", cidr: str = "10.20.0.0/24", **columns: t.Any) -> Columns:
    """A network that every project sees."""
    row = {"uuid": str(uuid.uuid4()), "name": name, "cidr": cidr, "bridge": f"br-{name}"[:15], "dhcp": True, "dns": []}
    return {**row, **columns}


def insert(connection: sa.Connection, table: sa.Table, **columns: t.Any) -> t.Any:
    """Write one row; returns the value of its (first) key."""
    key = connection.execute(sa.insert(table).values(**columns)).inserted_primary_key
    assert key is not None
    return key[0]


def add_project(connection: sa.Connection, name: str, project_id: str | None = None) -> str:
    return str(insert(connection, tables.project, id=project_id or uuid.uuid4().hex, name=name, created_at=0))


def add_host(connection: sa.Connection, name: str = "hv1", **columns: t.Any) -> int:
    return int(insert(connection, tables.compute_host, **a_host(name, **columns)))


def add_image(connection: sa.Connection, name: str = "ami-tiny", **columns: t.Any) -> str:
    return str(insert(connection, tables.image, **an_image(name, **{"created_at": 0, **columns})))


def add_instance(connection: sa.Connection, name: str = "web", **columns: t.Any) -> str:
    """Returns its UUID."""
    row = an_instance(name, **columns)
    insert(connection, tables.instance, **row)
    return str(row["uuid"])


def add_vif(connection: sa.Connection, instance_uuid: str, network_id: int, **columns: t.Any) -> str:
    """An interface, the first of its instance unless `columns` say so. Returns its id."""
    number = str(uuid.uuid4())
    row = {"id": number, "position": 0, "mac": "fa:16:3e:" + ":".join(number[i : i + 2] for i in (0, 2, 4)), **columns}
    made = str(insert(connection, tables.vif, instance_uuid=instance_uuid, network_id=network_id, **row))
    dns_names.claim(connection, [instance_uuid])
    return made


def add_network(
    connection: sa.Connection, name: str = "private", cidr: str = "10.20.0.0/24", **columns: t.Any
) -> Columns:
    """A network and its pool, as the module `network` makes them. Returns the row."""
    table = tables.network
    network_id = insert(connection, table, **a_network(name, cidr, **columns))
    row = dict(connection.execute(sa.select(table).where(table.c.id == network_id)).one()._mapping)
    pool = ipaddress.IPv4Network(cidr)
    reserved = {str(pool[0]): "network", str(pool[-1]): "broadcast", row["gateway"]: "gateway"}
    connection.execute(
        sa.insert(tables.fixed_ip),
        [{"network_id": network_id, "ip": int(ip), "reserved": reserved.get(str(ip))} for ip in pool],
    )
    return row


def change_address(connection: sa.Connection, address: str, network_id: int | None = None, **columns: t.Any) -> None:
    """Write to an address in the pool of a network, or of the only one that has it."""
    pool = tables.fixed_ip
    there = pool.c.ip == int(ipaddress.IPv4Address(address))
    if network_id is not None:
        there &= pool.c.network_id == network_id
    assert connection.execute(sa.update(pool).where(there).values(**columns)).rowcount == 1
