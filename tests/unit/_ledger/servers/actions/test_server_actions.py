# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""States in which an action may begin, that one of two wins, and what an instance is after each."""

from __future__ import annotations

import threading
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes.volumes import create_volume
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance

ABSENT = "00000000-0000-4000-8000-000000000000"
STATES = ("building", "active", "stopped", "paused", "suspended", "rescued", "error")
# Nova's, from compute/api.py's check_instance_state() on each method
ALLOWED = {
    ("stop", None): {"active", "error", "rescued"},
    ("start", None): {"stopped"},
    ("reboot", "SOFT"): {"active"},
    ("reboot", "HARD"): {"active", "stopped", "paused", "suspended", "error"},
    ("pause", None): {"active"},
    ("unpause", None): {"paused"},
    ("suspend", None): {"active"},
    ("resume", None): {"suspended"},
}
AFTERWARDS = {
    "stop": ("stopped", 4),
    "start": ("active", 1),
    "reboot": ("active", 1),
    "pause": ("paused", 3),
    "unpause": ("active", 1),
    "suspend": ("suspended", 4),
    "resume": ("active", 1),
}


def instance(cloud: t.Any, vm_state: str = "active", name: str = "web", **values: t.Any) -> str:
    (server,) = cloud.server({"name": name, "flavor": "m1.nano", "image": "ami-tiny"})["to_build"]
    cloud.place(server["uuid"], "hv1")
    cloud.state({"uuids": [server["uuid"]], "state": "active", "host": "hv1"})
    change(cloud, server["uuid"], vm_state=vm_state, **values)
    return str(server["uuid"])


def change(cloud: t.Any, uuid: str, **values: t.Any) -> None:
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == uuid).values(**values))


def begin(cloud: t.Any, action: str, *uuids: str, kind: str | None = None, **more: t.Any) -> list[Instance]:
    details = None if kind is None else {"type": kind}
    with transaction(cloud.engine) as connection:
        return server_actions.begin(connection, action, uuids, request_id="req-1", details=details, **more)


def finish(cloud: t.Any, action: str, *uuids: str, **more: t.Any) -> list[str]:
    with transaction(cloud.engine) as connection:
        return server_actions.finish(connection, action, uuids, **more)


def state(cloud: t.Any, uuid: str) -> tuple[t.Any, ...]:
    c = tables.instance.c
    return tuple(cloud.rows(sa.select(c.vm_state, c.task_state, c.power_state).where(c.uuid == uuid))[0])


def newest(cloud: t.Any, name: str = "web") -> dict[str, t.Any]:
    action: dict[str, t.Any] = cloud.info(name=name, actions=True)[0]["actions"][0]
    return action


@pytest.mark.parametrize(("action", "kind"), ALLOWED)
def test_an_action_begins_in_the_states_that_nova_allows(cloud: t.Any, action: str, kind: str | None) -> None:
    uuid = instance(cloud)
    for vm_state in STATES:
        change(cloud, uuid, vm_state=vm_state, task_state=None)
        if vm_state in ALLOWED[action, kind]:
            (begun,) = begin(cloud, action, uuid, kind=kind)
            assert begun["vm_state"] == vm_state
            assert begun["task_state"] == server_actions.action_of(action, {"type": kind}).task_state
            assert begun["task_state"] in server_actions.task_states(action)
        else:
            before = cloud.dump()
            message = f"^Cannot '{action}' instance {uuid} while it is in vm_state {vm_state}$"
            with pytest.raises(ConflictError, match=message):
                begin(cloud, action, uuid, kind=kind)
            assert cloud.dump() == before


@pytest.mark.parametrize(("action", "kind"), ALLOWED)
def test_an_action_succeeds(cloud: t.Any, action: str, kind: str | None) -> None:
    vm_state = sorted(ALLOWED[action, kind])[-1]
    uuid = instance(cloud, vm_state, fault={"code": 500, "message": "x", "created": 1})
    begin(cloud, action, uuid, kind=kind)
    assert newest(cloud)["finished_at"] is None
    assert finish(cloud, action, uuid, host="hv1") == [uuid]
    wanted_state, wanted_power = AFTERWARDS[action]
    assert state(cloud, uuid) == (wanted_state, None, wanted_power)
    assert cloud.info()[0]["fault"] is None
    ended = newest(cloud)
    assert (ended["action"], ended["request_id"], ended["message"]) == (action, "req-1", None)
    assert ended["finished_at"] and ended["details"] == ({} if kind is None else {"type": kind})
    assert [(event["host"], event["result"]) for event in ended["events"]] == [("hv1", "Success")]
    before = cloud.dump()
    assert finish(cloud, action, uuid, host="hv1") == []  # the same outcome twice
    assert cloud.dump() == before


@pytest.mark.parametrize(
    ("vm_state", "action", "seen", "afterwards"),
    [
        ("active", "stop", None, ("active", 1)),
        ("active", "stop", 1, ("active", 1)),
        ("active", "reboot", 4, ("stopped", 4)),  # it went down and did not come up again
        ("stopped", "start", 4, ("stopped", 4)),
        ("paused", "unpause", 3, ("paused", 3)),
        ("suspended", "resume", 4, ("suspended", 4)),  # its memory is still there
        ("active", "suspend", 3, ("paused", 3)),
        ("error", "stop", 1, ("error", 1)),
    ],
)
def test_an_action_fails(
    cloud: t.Any, vm_state: str, action: str, seen: int | None, afterwards: tuple[str, int]
) -> None:
    power_state = {"active": 1, "paused": 3, "error": 0}.get(vm_state, 4)
    uuid = instance(cloud, vm_state, power_state=power_state)
    begin(cloud, action, uuid)
    assert finish(cloud, action, uuid, host="hv1", error="it\nsaid password=x", power_state=seen) == [uuid]
    assert state(cloud, uuid) == (afterwards[0], None, afterwards[1])
    ended = newest(cloud)
    assert ended["finished_at"] and ended["message"] == "it said password=***"
    assert [event["result"] for event in ended["events"]] == ["Error"]


def test_all_or_none_begin(cloud: t.Any) -> None:
    first, second = instance(cloud), instance(cloud, "stopped", "db")
    before = cloud.dump()
    with pytest.raises(ConflictError, match=second):
        begin(cloud, "stop", first, second)
    with pytest.raises(NotFoundError, match=f"^Instance {ABSENT} could not be found.$"):
        begin(cloud, "stop", first, ABSENT)
    assert cloud.dump() == before
    change(cloud, second, vm_state="active")
    assert [server["uuid"] for server in begin(cloud, "stop", second, first, first, user_id="u" * 32)] == [
        first,
        second,
    ]
    c = tables.instance_action.c
    asked = cloud.rows(sa.select(c.user_id, c.project_id).where(c.action == "stop"))
    assert [tuple(row) for row in asked] == [("u" * 32, "d" * 32)] * 2


def test_one_action_at_a_time(cloud: t.Any) -> None:
    uuid = instance(cloud)
    begin(cloud, "pause", uuid)
    for action in ("pause", "stop", "reboot"):
        with pytest.raises(ConflictError, match=f"^Cannot '{action}' instance {uuid} .* in task_state pausing$"):
            begin(cloud, action, uuid)
    assert finish(cloud, "stop", uuid) == []  # not its action
    assert state(cloud, uuid) == ("active", "pausing", 1)


def test_an_instance_on_no_host_is_not_ready(cloud: t.Any) -> None:
    uuid = instance(cloud, "error", host=None)
    with pytest.raises(ConflictError, match=f"^Instance {uuid} is not ready$"):
        begin(cloud, "stop", uuid)


def test_an_outcome_from_another_host_is_not_heard(cloud: t.Any) -> None:
    uuid = instance(cloud)
    begin(cloud, "stop", uuid)
    assert finish(cloud, "stop", uuid, host="hv2") == []
    assert state(cloud, uuid) == ("active", "powering-off", 1)


def test_a_deletion_wins(cloud: t.Any) -> None:
    uuid = instance(cloud)
    begin(cloud, "stop", uuid)
    cloud.server({"name": "web"}, state="absent")
    assert finish(cloud, "stop", uuid) == []
    assert state(cloud, uuid) == ("active", "deleting", 1)
    stopped = cloud.info(name="web", actions=True)[0]["actions"][1]
    assert stopped["action"] == "stop" and stopped["finished_at"]
    with pytest.raises(ConflictError, match="task_state deleting"):
        begin(cloud, "start", uuid)
    cloud.state({"uuids": [uuid], "state": "deleted"})
    assert finish(cloud, "stop", uuid) == []
    with pytest.raises(NotFoundError):
        begin(cloud, "start", uuid)


@pytest.mark.both_databases
def test_of_two_begins_at_once_one_wins(cloud: t.Any) -> None:
    uuids = [instance(cloud), instance(cloud, name="db")]
    results: list[str] = []
    gate = threading.Barrier(8)

    def contend(number: int) -> None:
        engine = open_ledger(url=cloud.url)
        ordered_uuids = uuids if number % 2 else uuids[::-1]
        gate.wait()
        try:
            with transaction(engine) as connection:
                server_actions.begin(
                    connection, ("stop", "pause")[number % 2], ordered_uuids, request_id=f"req-{number}"
                )
        except ConflictError as error:
            assert "task_state" in str(error)
        else:
            results.append(f"req-{number}")
        finally:
            engine.dispose()

    threads = [threading.Thread(target=contend, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 1
    query = sa.select(tables.instance_action.c.request_id).where(tables.instance_action.c.action != "create")
    assert [row.request_id for row in cloud.rows(query)] == results * 2


def test_a_begin_that_read_too_early_changes_nothing(cloud: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a ledger without row locks: another begins between the look and the write."""
    uuid, look = instance(cloud), server_actions.locked_rows

    def look_and_lose(connection: sa.Connection, uuids: t.Iterable[str]) -> t.Any:
        rows = look(connection, uuids)
        connection.execute(sa.update(tables.instance).values(task_state="pausing"))
        return rows

    monkeypatch.setattr(server_actions, "locked_rows", look_and_lose)
    with pytest.raises(ConflictError, match="was changed just now"):
        begin(cloud, "stop", uuid)
    assert state(cloud, uuid) == ("active", None, 1)


def test_locked(cloud: t.Any) -> None:
    uuid = instance(cloud)

    def set_lock(locked: bool, reason: str | None = None) -> bool:
        with transaction(cloud.engine) as connection:
            return server_actions.set_lock(connection, uuid, locked, reason)

    assert set_lock(True, "mine")
    assert not set_lock(True, "mine")
    assert (newest(cloud)["action"], newest(cloud)["details"]) == ("lock", {"reason": "mine"})
    before = cloud.dump()
    with pytest.raises(ConflictError, match=f"^Instance {uuid} is locked$"):
        begin(cloud, "stop", uuid)
    assert cloud.dump() == before
    begin(cloud, "stop", uuid, by_admin=True)
    assert finish(cloud, "stop", uuid) == [uuid]
    assert set_lock(True, None)  # another reason
    assert set_lock(False)
    assert not set_lock(False)
    assert newest(cloud)["action"] == "unlock" and newest(cloud)["finished_at"]
    begin(cloud, "start", uuid)
    with transaction(cloud.engine) as connection, pytest.raises(NotFoundError):
        server_actions.set_lock(connection, ABSENT, True)


def test_unknown_names_are_refused(cloud: t.Any) -> None:
    uuid = instance(cloud)
    listed = "unknown action 'explode': there are .*pause, reboot, rebuild, replicate, rescue"
    with pytest.raises(NovaliteError, match=listed):
        begin(cloud, "explode", uuid)
    with pytest.raises(NovaliteError, match="reboot of type 'soft': use SOFT or HARD"):
        begin(cloud, "reboot", uuid, kind="soft")


def test_no_image_is_made_of_the_disk_of_one_that_starts_from_a_volume(cloud: t.Any) -> None:
    uuid = instance(cloud)
    project = cloud.rows(sa.select(tables.instance.c.project_id))[0][0]
    volumes = tables.tables_volumes
    with transaction(cloud.engine) as connection:
        made = create_volume(connection, project, {"size_gb": 1, "name": "root", "bootable": True})
        connection.execute(
            sa.insert(volumes.volume_attachment).values(
                id="a" * 36, volume_id=made.id, instance_uuid=uuid, device="/dev/vda", boot_index=0, created_at=0
            )
        )
    with pytest.raises(ConflictError, match=f"Cannot 'createImage' instance {uuid}: it starts from a volume"):
        begin(cloud, "createImage", uuid)
    assert state(cloud, uuid)[:2] == ("active", None)
    begin(cloud, "stop", uuid)
