# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The little of the Block Storage API that Compute's clients ask for."""

from __future__ import annotations

import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.api import applications
from tests.api.conftest import Cloud
from tests.api.doors import Doors


@pytest.fixture
def doors(cloud: Cloud) -> t.Iterator[Doors]:
    """The paths of its tests name the project themselves."""
    with applications.application(cloud.home) as app:
        yield Doors(cloud, "/volume/v3", app)


def test_anybody_reads_the_versions(doors: Doors) -> None:
    assert doors.client.get("/volume/").status_code == 300
    for path in ("/volume/v3", "/volume/v3/"):
        (version,) = doors.client.get(path).get_json()["versions"]
        assert (version["id"], version["version"], version["min_version"]) == ("v3.0", "3.71", "3.0")


def test_there_is_nothing_and_clients_can_read_that(doors: Doors) -> None:
    for path, key in (("volumes", "volumes"), ("volumes/detail", "volumes"), ("snapshots/detail", "snapshots")):
        assert doors.reader.get(f"/{doors.project}/{path}") == {key: []}
    doors.reader.get(f"/{doors.project}/attachments", 404)  # there from 3.27 on
    for path, key in (("backups", "backups"), ("os-volume-transfer/detail", "transfers")):
        assert doors.reader.get(f"/{doors.project}/{path}") == {key: []}
    absolute = doors.reader.get(f"/{doors.project}/limits")["limits"]["absolute"]
    assert absolute["maxTotalVolumes"] == 10 and absolute["totalVolumesUsed"] == 0
    assert doors.reader.get("/limits")["limits"]["absolute"] == absolute
    quota = doors.reader.get(f"/{doors.project}/os-quota-sets/{doors.project}?usage=False")["quota_set"]
    assert quota["volumes"] == 10 and quota["id"] == doors.project
    used = doors.reader.get(f"/{doors.project}/os-quota-sets/{doors.project}?usage=True")["quota_set"]
    assert used["gigabytes"] == {"limit": 1000, "in_use": 0, "reserved": 0}
    assert doors.reader.get(f"/{doors.project}/volumes/vol1", 404)["itemNotFound"]["code"] == 404


def test_another_projects_path_is_not_there(doors: Doors) -> None:
    for path in ("volumes", "limits", f"os-quota-sets/{doors.other}"):
        doors.member.get(f"/{doors.other}/{path}", 404)
    doors.member.get(f"/{doors.project}/os-quota-sets/{doors.other}", 404)
    doors.admin.get(f"/{doors.project}/os-quota-sets/{doors.other}")
    assert doors.client.get(f"/volume/v3/{doors.project}/volumes").status_code == 401


def test_quotas_are_set_as_cinderclient_says_them(doors: Doors) -> None:
    path = f"/{doors.project}/os-quota-sets/{doors.other}"
    body = {"quota_set": {"tenant_id": doors.other, "volumes": 3, "gigabytes": "7"}}
    assert doors.admin.put(path, body)["quota_set"]["volumes"] == 3
    assert doors.admin.get(path)["quota_set"]["gigabytes"] == 7
    doors.admin.put(path, {"quota_set": {"tenants": "x"}}, 400)


def test_zones_are_those_of_the_hosts(cloud: Cloud, doors: Doors) -> None:
    cloud.host("hv1")
    cloud.host("hv2", zone="edge", enabled=False)
    cloud.write(sa.update(tables.compute_host).values(last_seen_at=int(time.time())))
    zones = doors.member.get(f"/{doors.project}/os-availability-zone")["availabilityZoneInfo"]
    assert zones == [
        {"zoneName": "edge", "zoneState": {"available": False}},
        {"zoneName": "nova", "zoneState": {"available": True}},
    ]


@pytest.mark.parametrize(
    ("version", "status"),
    [("volume 3.59", 200), ("volumev3 3.59", 200), ("volume 9.9", 406), ("volumev3 9.9", 406), ("volume x", 400)],
)
def test_microversions(doors: Doors, version: str, status: int) -> None:
    headers = {**doors.member.headers, "OpenStack-API-Version": version}
    answer = doors.client.get(f"/volume/v3/{doors.project}/volumes", headers=headers)
    assert answer.status_code == status
    if status == 200:
        assert answer.headers["OpenStack-API-Version"] == "volume 3.59"
