# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger with much in it, for tests of what hosts carry of it."""

from __future__ import annotations

import pathlib
import shutil
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_attachments, volumes
from tests.support.cloud import Cloud, sqlite
from tests.support.leaving import WatchedCloud
from tests.support.rows import OTHER


def fill(cloud: Cloud) -> None:
    """Write what `full` has."""
    cloud.network("inner", "10.21.0.0/28", owner=OTHER)
    row = {"project_id": OTHER, "name": "test", "public_key": "ssh-ed25519 BBBB", "fingerprint": "1", "created_at": 1}
    with transaction(cloud.engine) as connection:
        connection.execute(sa.insert(tables.keypair).values(**row))
        connection.execute(sa.insert(tables.quota).values(project_id=OTHER, resource="cores", hard_limit=3))
        record = {"uuid": str(uuid.uuid4()), "project_id": OTHER, "name": "db"}
        number = connection.execute(
            sa.insert(tables.security_group).values(**record).returning(tables.security_group.c.id)
        ).scalar_one()
        connection.execute(
            sa.insert(tables.security_group_rule).values(
                id=str(uuid.uuid4()),
                group_id=number,
                ethertype="IPv4",
                protocol="tcp",
                port_min=5432,
                port_max=5432,
                remote_group_id=number,
            )
        )
    base = {"image": "ami-tiny", "key": "test"}
    web = cloud.server(
        {"name": "web", "count": 2, "flavor": "m1.nano", "metadata": {"a": "b"}, "user_data": "aGVsbG8=", **base}
    )["to_build"]
    [shop] = cloud.server(
        {"name": "shop", "flavor": "m1.tiny", "networks": ["private", "inner"], "security_groups": ["db"], **base},
        project="other",
    )["to_build"]
    [gone] = cloud.server({"name": "gone", "flavor": "m1.tiny", **base})["to_build"]
    for server, host in ((web[0], "hv1"), (web[1], "hv2"), (shop, "hv2")):
        cloud.place(server["uuid"], host)
        cloud.state({"uuids": [server["uuid"]], "state": "active", "host": host})
    with transaction(cloud.engine) as connection:
        connection.execute(sa.delete(tables.instance).where(tables.instance.c.uuid == gone["uuid"]))
        volume = volumes.create_volume(connection, OTHER, {"size_gb": 1, "name": "data"})
        volume_attachments.attach_new(
            connection, shop["uuid"], volume, device=None, boot_index=None, tag=None, delete_on_termination=False
        )
        connection.execute(sa.update(tables.tables_volumes.volume).values(status="in-use", host="hv2", made_at=5))
        connection.execute(sa.update(tables.tables_volumes.volume_attachment).values(attached_at=6))


@pytest.fixture(scope="session")
def filled(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A full ledger to copy: to make it takes longer than most of its tests."""
    home = tmp_path_factory.mktemp("filled")
    made = WatchedCloud(sqlite(pathlib.Path(shutil.copy(seeded, home)).parent))
    fill(made)
    made.close()
    return home / seeded.name


@pytest.fixture
def full(cloud: Cloud, request: pytest.FixtureRequest) -> Cloud:
    """Three servers of two projects on two hosts, with groups that name each other, volumes, user data and ids gone."""
    if isinstance(cloud, WatchedCloud):
        cloud.engine.dispose()
        shutil.copy(request.getfixturevalue("filled"), str(cloud.engine.url.database))
    else:
        fill(cloud)
    return cloud
