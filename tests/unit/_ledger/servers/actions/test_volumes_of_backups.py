# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes that are made of a disk of a server's backup: what is recorded, and what hosts are given."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import server_backup
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import job_outcomes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Volume,
    volumes_by,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.backup_files import backup_files
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.volume_action import volume_action
from tests.unit._ledger.servers.actions.test_reimage import server
from tests.unit._ledger.servers.actions.test_server_backups import DISK, begin, no_domains, take

__all__ = ["no_domains"]
VOLUME = "eeeeeeee-0000-4000-8000-000000000001"
DATA = {**DISK, "name": "vdb", "size": (2 << 30) + 1, "volume": VOLUME}


def restore(cloud: t.Any, **item: t.Any) -> t.Any:
    with transaction(cloud.engine) as connection:
        asked = {"backup": "friday", "of_server": True, "disk": "vdb", "volume": "copy", **item}
        return volume_action(connection, {"backups": [asked], "project": "demo"})


def volumes(cloud: t.Any) -> list[Volume]:
    with transaction(cloud.engine) as connection:
        return volumes_by(connection)


def record(cloud: t.Any, begun: t.Any, results: list[dict[str, t.Any]], error: str | None = None) -> t.Any:
    with transaction(cloud.engine) as connection:
        outcomes = [{"host": host, "results": results, "error": error} for host in begun["hosts"]]
        return volume_action(connection, {"plans": begun["hosts"], "outcomes": outcomes})


@pytest.fixture
def backup(cloud: t.Any) -> str:
    server(cloud)
    return take(cloud, "friday", disks=[DISK, DATA])


@pytest.mark.parametrize("disk", ["vdb", VOLUME])
def test_a_volume_is_there_once_its_data_is(cloud: t.Any, backup: str, disk: str) -> None:
    begun = restore(cloud, disk=disk)
    (volume,) = volumes(cloud)
    assert (volume.name, volume.status, volume.size_gb, volume.bootable) == ("copy", "creating", 3, False)
    plan = begun["hosts"][volume.host]
    (entry,) = plan["restored"]
    of_server = volume.backup_disk and volume.backup_disk["server"]
    assert (entry["backup_id"], entry["chain"], entry["disk"]) == (backup, of_server, "vdb")
    assert entry["volume"]["id"] == volume.id and plan["volumes"] == []  # no blank one is made before
    again = restore(cloud, disk=disk)
    assert not again["changed"] and again["hosts"] == begun["hosts"]  # a run that was cut off is gone on with
    assert record(cloud, begun, [{"id": volume.id, "error": None}])["errors"] == []
    (volume,) = volumes(cloud)
    assert (volume.status, volume.made_at is not None) == ("available", True)
    again = restore(cloud, disk=disk)
    assert not again["changed"] and again["hosts"] == {}
    with pytest.raises(ConflictError, match="has a volume 'copy', which is not of that backup"):
        take(cloud, "monday", disks=[DISK, DATA])
        restore(cloud, backup="monday")


def test_a_root_disk_can_be_started_from(cloud: t.Any, backup: str) -> None:
    restore(cloud, disk="vda", volume=None)
    (volume,) = volumes(cloud)
    assert (volume.name, volume.bootable, volume.size_gb) == ("web-vda", True, 1)


def test_what_is_not_there_makes_no_volume(cloud: t.Any, backup: str) -> None:
    with pytest.raises(NotFoundError, match="has no disk 'vdz': name one of vda, vdb"):
        restore(cloud, disk="vdz")
    with pytest.raises(NotFoundError, match="no backup has the name or id 'monday'"):
        restore(cloud, backup="monday")
    cloud.write(sa.update(server_backup).values(status="verifying"))
    with pytest.raises(ConflictError, match="is verifying: try later"):
        restore(cloud)
    cloud.write(sa.update(server_backup).values(status="available"))
    cloud.run("project", projects=[{"name": "demo", "quotas": {"gigabytes": 2}}])
    with pytest.raises(QuotaError):
        restore(cloud)
    assert volumes(cloud) == []


@pytest.mark.parametrize("dies", [False, True])
def test_a_volume_that_failed_is_none(cloud: t.Any, backup: str, dies: bool) -> None:
    begun = restore(cloud)
    (volume,) = volumes(cloud)
    if dies:
        with transaction(cloud.engine) as connection:
            job_outcomes.settle_volumes(connection, "volume_restore", {"volumes": [volume.id]}, "its job is dead")
    else:
        record(cloud, begun, [], "its host does not answer")
    (volume,) = volumes(cloud)
    assert (volume.status, volume.made_at) == ("error", None)
    with pytest.raises(ConflictError, match="volume 'copy' is an error, and has no data: delete it first"):
        restore(cloud)


def test_a_backup_stays_while_it_is_read(cloud: t.Any, backup: str) -> None:
    begun = restore(cloud)
    (volume,) = volumes(cloud)
    with pytest.raises(ConflictError, match=f"becomes volume {volume.id}: try later"):
        begin(cloud, "deleteBackup", "friday")
    planned = begin(cloud, "createBackup", "monday", keep_last=1)["hosts"]["hv1"]["server_backups"]
    assert planned[0].get("replaced", []) == []
    record(cloud, begun, [{"id": volume.id, "error": None}])
    assert volumes(cloud)[0].status == "available"


def test_files_are_read_by_the_host_that_took_the_backup(cloud: t.Any, backup: str) -> None:
    def chosen(**params: t.Any) -> t.Any:
        with transaction(cloud.engine) as connection:
            return backup_files(connection, {"backup": "friday", "project": "demo", **params})

    dump = cloud.dump()
    plan = chosen()
    ((host, source),) = plan["hosts"].items()
    assert (host, source["backup_id"], plan["targets"]["hosts"]) == ("hv1", backup, ["hv1"])
    assert list(chosen(backup=backup, limit_to=["hv2"])["hosts"]) == ["hv2"]
    assert cloud.dump() == dump
    with pytest.raises(ConflictError, match="no compute host can be reached"):
        chosen(limit_to=[])
    with pytest.raises(NotFoundError, match="no backup has the name or id 'monday'"):
        chosen(backup="monday")
    cloud.write(sa.update(server_backup).values(kind=None, status="creating"))
    with pytest.raises(ConflictError, match="is creating: try later"):
        chosen()
