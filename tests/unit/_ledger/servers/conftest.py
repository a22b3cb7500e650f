# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small cloud in a ledger of its own: project demo, flavors, an image, a key, one network."""

from __future__ import annotations

import pathlib
import shutil
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.server import server
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.server_info import server_info
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.server_state import server_state

GIB = 1024**3
DEMO = "d" * 32


class Cloud:
    """The ledger, and each operation in a transaction of its own."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = open_ledger(url=url)

    def server(self, *servers: dict[str, t.Any], check_mode: bool = False, **params: t.Any) -> dict[str, t.Any]:
        with transaction(self.engine, check_mode) as connection:
            return server(connection, {"servers": list(servers), **params})

    def state(self, *outcomes: dict[str, t.Any], **params: t.Any) -> dict[str, t.Any]:
        with transaction(self.engine) as connection:
            return server_state(connection, {"outcomes": list(outcomes), **params})

    def info(self, **params: t.Any) -> list[dict[str, t.Any]]:
        with transaction(self.engine) as connection:
            return server_info(connection, params)["servers"]

    def rows(self, query: t.Any) -> list[t.Any]:
        with transaction(self.engine) as connection:
            return list(connection.execute(query).all())

    def write(self, *statements: t.Any) -> None:
        with transaction(self.engine) as connection:
            for statement in statements:
                connection.execute(statement)

    def dump(self) -> dict[str, list[t.Any]]:
        """Everything that is in the ledger."""
        return {table.name: self.rows(sa.select(table)) for table in tables.metadata.sorted_tables}

    def place(self, server_uuid: str, host: str = "hv1") -> None:
        """Write what the scheduler and fixed_ip write: host, claim, the first free address of each interface."""
        with transaction(self.engine) as connection:
            row = connection.execute(sa.select(tables.instance).where(tables.instance.c.uuid == server_uuid)).one()
            host_id = connection.execute(
                sa.select(tables.compute_host.c.id).where(tables.compute_host.c.name == host)
            ).scalar_one()
            connection.execute(
                sa.insert(tables.allocation).values(
                    instance_uuid=server_uuid,
                    compute_host_id=host_id,
                    vcpus=row.flavor["vcpus"],
                    memory_mb=row.flavor["memory_mb"],
                    disk_gb=row.flavor["root_gb"],
                    created_at=1,
                )
            )
            connection.execute(
                sa.update(tables.compute_host)
                .where(tables.compute_host.c.id == host_id)
                .values(
                    vcpus_used=tables.compute_host.c.vcpus_used + row.flavor["vcpus"],
                    memory_mb_used=tables.compute_host.c.memory_mb_used + row.flavor["memory_mb"],
                    disk_gb_used=tables.compute_host.c.disk_gb_used + row.flavor["root_gb"],
                )
            )
            connection.execute(
                sa.update(tables.instance)
                .where(tables.instance.c.uuid == server_uuid)
                .values(host=host, task_state="networking")
            )
            owners = [f"dhcp:{host}"]
            for vif in connection.execute(sa.select(tables.vif).where(tables.vif.c.instance_uuid == server_uuid)):
                owners.append(f"vif:{vif.id}")
            for owner in owners:
                if connection.execute(sa.select(tables.fixed_ip).where(tables.fixed_ip.c.owner == owner)).first():
                    continue
                free = connection.execute(
                    sa.select(sa.func.min(tables.fixed_ip.c.ip)).where(
                        tables.fixed_ip.c.owner.is_(None), tables.fixed_ip.c.reserved.is_(None)
                    )
                ).scalar_one()
                connection.execute(sa.update(tables.fixed_ip).where(tables.fixed_ip.c.ip == free).values(owner=owner))

    def add_network(self, name: str, first: int, owner: str = "") -> None:
        """A /28 whose first address is the number `first`."""
        octets = ".".join(str(first >> shift & 255) for shift in (24, 16, 8, 0))
        with transaction(self.engine) as connection:
            network_id = connection.execute(
                sa.insert(tables.network)
                .values(
                    uuid=str(uuid.uuid4()),
                    owner=owner,
                    name=name,
                    cidr=f"{octets}/28",
                    bridge=f"br-{name}",
                    dhcp=True,
                    dns=[],
                )
                .returning(tables.network.c.id)
            ).scalar_one()
            connection.execute(
                sa.insert(tables.fixed_ip),
                [
                    {
                        "network_id": network_id,
                        "ip": first + offset,
                        "reserved": {0: "network", 15: "broadcast"}.get(offset),
                    }
                    for offset in range(16)
                ],
            )


def seed(cloud: Cloud) -> None:
    """Project demo with what a launch needs, and two hosts."""
    flavors = {"m1.nano": (1, 96, 0), "m1.tiny": (1, 512, 1), "m1.large": (4, 8192, 80)}
    image = {
        "disk_format": "qcow2",
        "source": "/images/tiny",
        "checksum": "sha256:" + "0" * 64,
        "size": 1000,
        "virtual_size": GIB,
        "properties": {"os_host_mount": "yes"},  # as of one that the module `image` recorded
        "created_at": 1,
    }
    host = {
        "enabled": True,
        "up": True,
        "last_seen_at": 1,
        "aggregates": [],
        "traits": [],
        "vcpus": 8,
        "memory_mb": 16384,
        "disk_gb": 100,
        "reserved_vcpus": 0,
        "reserved_memory_mb": 512,
        "reserved_disk_gb": 0,
        "cpu_ratio": 4.0,
        "ram_ratio": 1.0,
        "disk_ratio": 1.0,
        "facts": {},
    }
    cloud.write(
        sa.insert(tables.project).values(
            [{"id": DEMO, "name": "demo", "created_at": 1}, {"id": "e" * 32, "name": "other", "created_at": 1}]
        ),
        sa.insert(tables.flavor).values(
            [
                {"name": name, "vcpus": vcpus, "memory_mb": memory, "root_gb": root, "extra_specs": {}}
                for name, (vcpus, memory, root) in flavors.items()
            ]
        ),
        sa.insert(tables.image).values(
            [
                {"id": str(uuid.uuid4()), "name": "ami-tiny", "min_disk_gb": 0, "min_ram_mb": 0, **image},
                {"id": str(uuid.uuid4()), "name": "ami-ram", "min_disk_gb": 0, "min_ram_mb": 1024, **image},
                {"id": str(uuid.uuid4()), "name": "ami-disk", "min_disk_gb": 2, "min_ram_mb": 0, **image},
                {
                    "id": str(uuid.uuid4()),
                    "name": "ami-wide",
                    "min_disk_gb": 0,
                    "min_ram_mb": 0,
                    **image,
                    "virtual_size": GIB + 1,
                },
            ]
        ),
        sa.insert(tables.keypair).values(
            project_id=DEMO, name="test", public_key="ssh-ed25519 AAAA test", fingerprint="00", created_at=1
        ),
        sa.insert(tables.compute_host).values([{"name": name, **host} for name in ("hv1", "hv2", "hv3")]),
    )
    cloud.add_network("private", 0x0A140000)


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A seeded ledger to copy: migrating one for each test would take most of their time."""
    home = tmp_path_factory.mktemp("seeded")
    made = Cloud(f"sqlite:///{home}/ledger.sqlite")
    seed(made)
    made.engine.dispose()
    return home / "ledger.sqlite"


@pytest.fixture(params=["sqlite", "postgresql"])
def cloud(request: pytest.FixtureRequest, seeded: pathlib.Path, tmp_path: pathlib.Path) -> t.Iterator[Cloud]:
    if request.param == "sqlite":
        shutil.copy(seeded, tmp_path)
        made = Cloud(f"sqlite:///{tmp_path}/ledger.sqlite")
    else:
        made = Cloud(request.getfixturevalue("postgresql_ledger")())
        seed(made)
    yield made
    made.engine.dispose()
