# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of volumes, asked for as Cinder's clients do, and carried out as the playbook does."""

from __future__ import annotations

import base64
import json
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import volume_backup_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.volume_action import volume_action
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_backups, volume_heal, volumes
from tests.api.conftest import Cloud
from tests.api.doors import Doors, User
from tests.api.volume.test_volumes_api import NOWHERE, hung, made, shown


def asked_for(user: User, number: str, status: int = 202, **more: t.Any) -> t.Any:
    """Ask for a backup of a volume; return its id, or the refusal."""
    answer = user.post("/backups", {"backup": {"volume_id": number, **more}}, status)
    return answer["backup"]["id"] if status == 202 else json.dumps(answer)


def backup(user: User, number: str) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", user.get(f"/backups/{number}")["backup"])


def carry_out(cloud: Cloud, number: str, error: str | None = None, **record: t.Any) -> JsonObject:
    """Do as the playbook does: the host gets its plan, and says how it went. Return the plan of the backup's step."""
    with transaction(cloud.engine) as connection:
        begun = volume_action(connection, {"backups": [number], "project": "demo"})
        ((host, plan),) = begun["hosts"].items()
        said = {"id": number, "error": error, "record": {"parent_id": None, "reason": "asked for", **record}}
        outcomes = [{"host": host, "results": [said]}]
        ended = volume_action(connection, {"plans": begun["hosts"], "outcomes": outcomes})
    assert [failed["id"] for failed in ended["errors"]] == ([] if error is None else [number])
    return {"host": host, **plan}


def test_a_backup_and_one_of_what_changed(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member, name="data")
    assert "No backups available" in asked_for(doors.member, number, 400, incremental=True)
    first = asked_for(doors.member, number, name="friday", description="d")
    assert shown(doors.member, number)["status"] == "backing-up"
    assert (backup(doors.reader, first)["status"], backup(doors.reader, first)["size"]) == ("creating", 1)
    assert "status" in asked_for(doors.member, number, 400)
    doors.member.delete(f"/backups/{first}", 400)
    doors.member.post(f"/backups/{first}/restore", {"restore": {}}, 400)
    job = doors.jobs()[-1]
    assert (job["kind"], job["variables"]) == ("volume_backup", {"backups": [first]})
    plan = carry_out(cloud, first, size=5)
    (entry,) = plan["taken"]
    assert (entry["full"], entry["chain"], entry["volume"]["id"]) == (True, number, number)
    assert [each["create"] for each in plan["volumes"]] == [True]  # blank until now
    assert shown(doors.member, number)["status"] == "available"
    second = asked_for(doors.member, number, incremental="true")
    assert carry_out(cloud, second, parent_id=first)["taken"][0]["full"] is False
    older, newer = backup(doors.member, first), backup(doors.member, second)
    assert (older["is_incremental"], older["has_dependent_backups"], older["name"]) == (False, True, "friday")
    assert (newer["is_incremental"], newer["has_dependent_backups"], newer["fail_reason"]) == (True, False, None)
    assert "Incremental backups exist" in json.dumps(doors.member.ask("DELETE", f"/backups/{first}").get_json())
    doors.member.delete(f"/backups/{second}", 202)
    assert carry_out(cloud, second)["absent"] == [{"backup_id": second, "chain": number, "full": False}]
    doors.member.get(f"/backups/{second}", 404)
    doors.member.delete(f"/volumes/{number}", 202)  # its backups outlive it
    assert backup(doors.member, first)["volume_id"] == number


def test_what_a_project_sees(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    first = asked_for(doors.member, number)
    doors.reader.post("/backups", {"backup": {"volume_id": number}}, 403)
    doors.stranger.post("/backups", {"backup": {"volume_id": number}}, 404)
    doors.stranger.get(f"/backups/{first}", 404)
    assert doors.stranger.get("/backups/detail") == {"backups": []}
    assert [each["id"] for each in doors.reader.get(f"/backups?volume_id={number}")["backups"]] == [first]
    assert doors.reader.get("/backups?status=error")["backups"] == []
    doors.stranger.post(f"/backups/{first}/restore", {"restore": {}}, 404)
    doors.member.get(f"/backups/{first}/export_record", 403)
    doors.member.post(f"/backups/{first}/action", {"os-reset_status": {"status": "error"}}, 403)
    doors.admin.post(f"/backups/{first}/action", {"os-reset_status": {"status": "error"}}, 202)
    assert backup(doors.member, first)["status"] == "error"


def test_a_volume_in_use_takes_force(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    server, _attachment = hung(cloud, doors, number)
    assert "must use the force flag" in asked_for(doors.member, number, 400)
    first = asked_for(doors.member, number, force=True)
    job = doors.jobs()[-1]
    assert job["kind"] == "volume_backup"
    plan = carry_out(cloud, first, "the store is full")
    assert (plan["host"], plan["taken"][0]["volume"]["instance_uuid"]) == ("hv1", server)
    assert shown(doors.member, number)["status"] == "in-use"
    assert backup(doors.member, first)["status"] == "error"
    assert "the store is full" in backup(doors.member, first)["fail_reason"]
    assert "No backups available" in asked_for(doors.member, number, 400, incremental=True, force=True)


def test_a_restore(cloud: Cloud, doors: Doors) -> None:
    number, small = made(doors.member, size=2, name="data"), made(doors.member, size=1)
    first = asked_for(doors.member, number)
    carry_out(cloud, first)

    def restore(status: int = 202, **body: t.Any) -> t.Any:
        return doors.member.post(f"/backups/{first}/restore", {"restore": body}, status)

    assert "is too small to restore backup of size 2" in json.dumps(restore(400, volume_id=small))
    restore(404, volume_id=NOWHERE)
    assert restore(volume_id=number)["restore"] == {"backup_id": first, "volume_id": number, "volume_name": "data"}
    assert shown(doors.member, number)["status"] == "restoring-backup"
    assert backup(doors.member, first)["status"] == "restoring"
    restore(400, volume_id=number)
    (entry,) = carry_out(cloud, first, "a flipped bit")["restored"]
    assert (entry["chain"], entry["volume"]["id"]) == (number, number)
    assert (shown(doors.member, number)["status"], backup(doors.member, first)["status"]) == (
        "error_restoring",
        "available",
    )
    fresh = restore(name="again")["restore"]
    assert fresh["volume_name"] == "again" and fresh["volume_id"] != number
    assert carry_out(cloud, first)["restored"][0]["volume"]["id"] == fresh["volume_id"]
    body = shown(doors.member, fresh["volume_id"])
    assert (body["status"], body["size"]) == ("available", 2)


def test_quotas(cloud: Cloud, doors: Doors) -> None:
    doors.admin.put(f"/os-quota-sets/{doors.project}", {"quota_set": {"backups": 1, "backup_gigabytes": 3}})
    number, large = made(doors.member, size=2), made(doors.member, size=4)
    asked_for(doors.member, large, 413)
    assert shown(doors.member, large)["status"] == "available"
    first = asked_for(doors.member, number)
    carry_out(cloud, first)
    absolute = doors.reader.get("/limits")["limits"]["absolute"]
    assert (absolute["totalBackupsUsed"], absolute["totalBackupGigabytesUsed"]) == (1, 2)
    asked_for(doors.member, number, 413)


def test_a_record_goes_to_another_cloud(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member, name="data")
    first = asked_for(doors.member, number, name="friday")
    doors.admin.get(f"/backups/{first}/export_record", 400)
    carry_out(cloud, first, size=7)
    record = doors.admin.get(f"/backups/{first}/export_record")["backup-record"]
    doors.admin.post("/backups/import_record", {"backup-record": record}, 400)  # it is there
    doors.member.delete(f"/backups/{first}", 202)
    carry_out(cloud, first)
    doors.member.post("/backups/import_record", {"backup-record": record}, 403)
    answer = doors.admin.post("/backups/import_record", {"backup-record": record}, 201)["backup"]
    assert (answer["id"], answer["name"]) == (first, "friday")
    again = backup(doors.admin, first)
    assert (again["volume_id"], again["size"], again["status"]) == (number, 1, "available")


@pytest.mark.parametrize(
    "fields",
    [None, [], {}, {"id": "../../etc", "volume_id": NOWHERE, "size_gb": 1}, {"id": NOWHERE, "size_gb": 1}]
    + [{"id": NOWHERE, "volume_id": NOWHERE, "size_gb": size} for size in (0, "1", 1 << 70)],
)
def test_a_record_that_is_none(doors: Doors, fields: t.Any) -> None:
    text = "%" if fields is None else base64.b64encode(json.dumps(fields).encode()).decode()
    record = {"backup_service": volume_backup_records.SERVICE, "backup_url": text}
    doors.admin.post("/backups/import_record", {"backup-record": record}, 400)
    record = {"backup_service": "cinder.backup.drivers.swift", "backup_url": text}
    doors.admin.post("/backups/import_record", {"backup-record": record}, 400)


def test_changes(cloud: Cloud, doors: Doors) -> None:
    first = asked_for(doors.member, made(doors.member))
    doors.member.headers["OpenStack-API-Version"] = "volume 3.43"
    doors.member.put(f"/backups/{first}", {"backup": {"name": "n", "metadata": {"a": "b"}}})
    assert (backup(doors.member, first)["name"], backup(doors.member, first)["metadata"]) == ("n", {"a": "b"})


def test_what_a_dead_job_left(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    first = asked_for(doors.member, number)
    with transaction(cloud.engine) as connection:
        assert volume_backups.settle(connection, [first], "its worker died") == [first]
    assert (shown(doors.member, number)["status"], backup(doors.member, first)["status"]) == ("available", "error")
    second = asked_for(doors.member, number)
    with transaction(cloud.engine) as connection:
        connection.exec_driver_sql("UPDATE job SET state = 'failed'")
        volumes.write(connection, "volume", number, {})
        changes = volume_heal.end_abandoned(connection, 2**40, 2**40)
    assert [change[4] for change in changes] == [{"status": "available"}]
    assert backup(doors.member, second)["status"] == "error"


def test_a_playbook_begins_by_names(cloud: Cloud, doors: Doors) -> None:
    made(doors.member, name="data")

    def ask(**item: t.Any) -> list[str]:
        with transaction(cloud.engine) as connection:
            begun = volume_action(connection, {"project": "demo", "backups": [{"backup": "friday", **item}]})
        return [work["does"] for work in begun["touched"]]

    for _run in range(2):  # the second one goes on
        assert ask(volume="data") == ["backup_create"]
    with transaction(cloud.engine) as connection:
        (row,) = volume_backup_records.backups_by(connection)
    carry_out(cloud, row.id)
    assert ask(volume="data") == []
    assert ask(volume="data", state="restored") == ["backup_restore"]
    carry_out(cloud, row.id)
    assert ask(state="absent") == ["backup_delete"]
    carry_out(cloud, row.id)
    assert ask(state="absent") == []
