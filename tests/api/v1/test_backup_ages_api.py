# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ages of servers' newest backups, in /v1 and on the pages; those that are late need attention."""

from __future__ import annotations

import time
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_images
from tests.api import scenes, seeds
from tests.api.dashboard.visitor import Visitor
from tests.support.grown import costs

DAY = 86400


def keep(api: seeds.Api, server: str, number: int, age: int, **more: t.Any) -> None:
    """Record a backup of a server of demo that was taken so many seconds ago."""
    backup: dict[str, t.Any] = {
        "id": f"{number:08}-0000-4000-8000-000000000001",
        "instance_uuid": server,
        "name": f"b{number}",
    }
    backup |= {"project_id": api.projects["demo"], "server": "s", "status": "available", "kind": "full", "disks": []}
    at = int(time.time()) - age
    times = {"created_at": at, "updated_at": at}
    api.insert(tables_images.server_backup, **{**backup, "gigabytes": 1, "flavor": {}, "host": "hv1", **times, **more})


def policy(api: seeds.Api, **more: t.Any) -> None:
    """Have a policy for all servers: each is backed up each day, and a backup booted each week."""
    daily = {"name": "nightly", "scope": "all", "target": "", "every": DAY, "keep": {}, "boot_every": 7 * DAY}
    api.insert(tables_images.backup_policy, **{**daily, "created_at": 1, "updated_at": 1, **more})


def test_ages_are_of_each_server_of_the_project(api: seeds.Api) -> None:
    web, db = (api.instance("demo", name) for name in ("web", "db"))
    other = api.instance("alt", "other")
    keep(api, web, 1, 3 * DAY, verified_at=5, booted_at=6, proven_at=6)
    keep(api, web, 2, 2 * DAY, verified_at=5)
    keep(api, web, 3, DAY)
    keep(api, web, 4, 0, status="creating", kind=None)
    member = api.client_as("demo")
    ages = {each["instance_uuid"]: each for each in member.get("/v1/backup-ages").get_json()["ages"]}
    assert set(ages) == {web, db} and other not in ages
    shown = [ages[web][f"{name}_at"] for name in ("proven", "whole", "newest")]
    assert shown == sorted(shown) and len(set(shown)) == 3 and ages[web]["late"] is None
    assert [ages[db][f"{name}_at"] for name in ("newest", "whole", "proven")] == [None] * 3
    first = member.get("/v1/backup-ages?limit=1").get_json()
    second = member.get(first["next"]).get_json()
    assert [each["server"] for each in (*first["ages"], *second["ages"])] == ["web", "db"]
    assert member.get(second["next"]).get_json() == {"ages": [], "next": None}
    assert api.client_as("reader").get("/v1/backup-ages").status_code == 200
    page = Visitor(api, "demo").get(f"/instances/{web}")
    assert "Newest backup1 d ago" in page.words and "Newest one booted3 d ago" in page.words
    assert "Newest backupnever" in Visitor(api, "demo").get(f"/instances/{db}").words


def test_what_is_late_by_its_policy_needs_attention(api: seeds.Api) -> None:
    scenes.build(api)
    late, good = (api.instance("demo", name) for name in ("late-one", "good-one"))
    for number, (server, age) in enumerate(((late, 3 * DAY), (good, DAY)), start=1):
        keep(api, server, number, age, verified_at=5, booted_at=6, proven_at=6)
    assert "too old for its policy" not in Visitor(api, "demo").get("/").words
    policy(api)
    api.write(sa.update(tables.instance).values(created_at=int(time.time())))  # the rest has time until then
    ages = {each["server"]: each for each in api.client_as("demo").get("/v1/backup-ages").get_json()["ages"]}
    assert ages["late-one"]["late"] == "its newest backup is too old for its policy"
    assert (ages["good-one"]["late"], ages["good-one"]["policy"]) == (None, "nightly")
    overview = Visitor(api, "demo").get("/").words
    assert "late-one" in overview and "its newest backup is too old" in overview and "good-one" not in overview
    listed = Visitor(api, "demo").get("/backups").words
    assert listed.index("late-one") < listed.index("good-one") and "nightly" in listed
    assert "too old for its policy" in Visitor(api, "demo").get(f"/instances/{late}").words
    assert "late-one" not in Visitor(api, "alt").get("/").words
    api.write(sa.update(tables.instance).values(created_at=1))
    assert "it has no backup, which its policy asks for" in Visitor(api, "demo").get("/backups").words
    api.write(sa.update(tables_images.server_backup).values(proven_at=None, created_at=int(time.time())))
    assert "it has no backup that was booted" in Visitor(api, "demo").get("/backups").words


def test_ages_of_many_servers_are_one_question(api: seeds.Api) -> None:
    policy(api)
    statements = []
    for count in (2, 12):
        for number in range(count):
            keep(api, api.instance("demo", f"s{count}-{number}"), count * 100 + number, DAY)
        client = api.client_as("demo")
        client.get("/v1/backup-ages?limit=100")
        with costs(api.app.extensions["ledger"].engine) as cost:
            answer = client.get("/v1/backup-ages?limit=100")
        statements.append(cost.statements)
        assert len(answer.get_json()["ages"]) >= count
    assert statements[0] == statements[1]
