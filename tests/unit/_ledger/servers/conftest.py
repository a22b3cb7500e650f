# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A small cloud in a ledger of its own: project demo, flavors, an image, a key, one network."""

from __future__ import annotations

import pathlib
import shutil
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import plans
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from tests.support.cloud import Cloud, sqlite
from tests.support.leaving import WatchedCloud, watch
from tests.support.rows import DEMO, GIB, OTHER, a_flavor, add_host, add_image, add_network, add_project, insert


def seed(cloud: Cloud) -> None:
    """Project demo with what a launch needs, and three hosts."""
    with transaction(cloud.engine) as connection:
        add_project(connection, "demo", DEMO)
        add_project(connection, "other", OTHER)
        for name, sizes in {"m1.nano": (1, 96, 0), "m1.tiny": (1, 512, 1), "m1.large": (4, 8192, 80)}.items():
            flavor = dict(zip(("vcpus", "memory_mb", "root_gb"), sizes))
            insert(connection, tables.flavor, **a_flavor(name, **flavor))
        for name, needs in {
            "ami-tiny": {},
            "ami-ram": {"min_ram_mb": 1024},
            "ami-disk": {"min_disk_gb": 2},
            "ami-wide": {"virtual_size": GIB + 1},
        }.items():
            # as of one that the module `image` recorded
            add_image(connection, name, properties={"os_host_mount": "yes"}, **needs)
        key = {"public_key": "ssh-ed25519 AAAA test", "fingerprint": "00"}
        insert(connection, tables.keypair, project_id=DEMO, name="test", created_at=1, **key)
        for name in ("hv1", "hv2", "hv3"):
            size = {"vcpus": 8, "memory_mb": 16384, "disk_gb": 100, "reserved_memory_mb": 512, "cpu_ratio": 4.0}
            add_host(connection, name, last_seen_at=1, **size)
        add_network(connection, "private", "10.20.0.0/28")


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A seeded ledger to copy: migrating one for each test would take most of their time."""
    home = tmp_path_factory.mktemp("seeded")
    made = Cloud(sqlite(home))
    seed(made)
    made.close()
    watch(home / "ledger.sqlite")
    return home / "ledger.sqlite"


@pytest.fixture(params=["sqlite", "postgresql"])
def cloud(request: pytest.FixtureRequest, seeded: pathlib.Path, tmp_path: pathlib.Path) -> t.Iterator[Cloud]:
    if request.param == "sqlite":
        shutil.copy(seeded, tmp_path)
        made: Cloud = WatchedCloud(sqlite(tmp_path))
    else:
        made = Cloud(request.getfixturevalue("postgresql_ledger")())
        seed(made)
    yield made
    made.close()
    if isinstance(made, WatchedCloud):
        assert made.unsaid() == ([], [])


@pytest.fixture
def two_hosts(cloud: Cloud) -> None:
    c = tables.compute_host.c
    cloud.write(
        sa.update(tables.compute_host).values(last_seen_at=int(time.time())),
        sa.update(tables.compute_host).where(c.name == "hv3").values(enabled=False),
    )


@pytest.fixture
def no_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "guest_of", lambda instance, facts, **_where: instance)
    monkeypatch.setattr(plans, "render", lambda guest: f"<domain>{guest['uuid']} on {guest['host']}</domain>")
