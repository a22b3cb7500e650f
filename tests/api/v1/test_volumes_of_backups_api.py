# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A disk of a server's backup as a new volume, through /v1: recorded, with a job."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables_images
from tests.api.seeds import Api

BACKUP, SERVER = "11111111-0000-4000-8000-000000000001", "22222222-0000-4000-8000-000000000002"
DISK = {"name": "vda", "size": 1 << 30, "kind": "full", "reason": "it is the first backup"}


def keep(api: Api) -> None:
    """Record a backup of a server of demo that is gone."""
    of_server = {"id": BACKUP, "instance_uuid": SERVER, "project_id": api.projects["demo"], "server": "web"}
    taken = {"name": "friday", "status": "available", "kind": "full", "disks": [DISK], "gigabytes": 1, "host": "hv1"}
    api.insert(tables_images.server_backup, **of_server, **taken, flavor={}, created_at=1, updated_at=1)


def test_a_volume_is_recorded_and_a_job_makes_it(api: Api) -> None:
    keep(api)
    member = api.client_as("demo")
    answer = member.post(f"/v1/backups/{BACKUP}/volumes", json={"disk": "vda", "name": "copy", "size": 2})
    made = answer.get_json()["volume"]
    assert (answer.status_code, made["name"], made["status"], made["size"]) == (202, "copy", "creating", 2)
    assert (made["backup"], made["disk"]) == (BACKUP, "vda")
    (job,) = member.get("/v1/jobs").get_json()["jobs"]
    assert job["kind"] == "volume_restore"
    assert member.delete(f"/v1/backups/{BACKUP}").status_code == 409  # it is being read
    (shown,) = member.get("/v1/backups").get_json()["backups"]
    assert shown["disks"] == [{**DISK, "volume": None}]


def test_who_may_not_or_asks_for_what_is_not_there_gets_nothing(api: Api) -> None:
    keep(api)
    path = f"/v1/backups/{BACKUP}/volumes"
    assert api.client_as("reader").post(path, json={"disk": "vda"}).status_code == 403
    assert api.client_as("alt").post(path, json={"disk": "vda"}).status_code == 404
    member = api.client_as("demo")
    assert member.post(path, json={"disk": "vdb"}).status_code == 404
    assert member.post(path, json={"disk": "vda", "size": 10**9}).status_code == 403  # the quota
    assert member.post(path, json={}).status_code == 400
    assert member.get("/v1/jobs").get_json()["jobs"] == []
