# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The status page's actions on servers: a button is there exactly when it may be pressed, for every role."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import (
    replica,
    server_backup,
    server_snapshot,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job, job_instance
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import migration
from api.dashboard import server_actions
from tests.api import scenes, seeds
from tests.api.dashboard.visitor import Page, Visitor

ROLES = ("reader", "demo", "admin")
INSTANCE = tables.instance
STATES: dict[str, dict[str, t.Any]] = {
    "active": {},
    "locked": {"locked": True},
    "stopped": {"vm_state": "stopped", "power_state": 4},
    "paused": {"vm_state": "paused", "power_state": 3},
    "suspended": {"vm_state": "suspended", "power_state": 4},
    "error": {"vm_state": "error"},
    "nowhere": {"vm_state": "error", "host": None},
    "rescued": {"vm_state": "rescued"},
    "shelved": {"vm_state": "shelved", "power_state": 4},
    "busy": {"task_state": "powering-off"},
}


def server(api: seeds.Api, state: str) -> str:
    with api.engine.connect() as connection:
        number = connection.execute(sa.select(tables.network.c.id)).scalar_one()
    uuid = api.instance("demo", "web", **{"host": "hv1", **STATES[state]})
    api.vif(uuid, number, "10.20.0.5")
    return uuid


def buttons(page: Page, uuid: str) -> set[str]:
    """The actions that the page has a form for."""
    begin = f"/instances/{uuid}/"
    return {action.removeprefix(begin) for action in page.actions if action.startswith(begin)}


def values_of(visitor: Visitor, uuid: str) -> dict[str, str]:
    """The value that the page's forms would send with each action: the first that there is to choose."""
    answer = visitor.client.get(f"/instances/{uuid}")
    values, name = {}, ""
    for tag, attributes in Page(answer.get_data(as_text=True)).elements:
        if tag in ("select", "input") and str(attributes.get("id")).startswith("value-"):
            name = str(attributes["id"]).removeprefix("value-")
            values[name] = "a-name" if tag == "input" else ""
        elif tag == "option" and name and not values.get(name):
            values[name] = attributes["value"] or ""
    return values


@pytest.mark.parametrize("state", STATES)
def test_a_button_is_there_exactly_when_it_may_be_pressed(api: seeds.Api, state: str) -> None:
    uuid = server(api, state)
    before = api.rows(sa.select(INSTANCE).where(INSTANCE.c.uuid == uuid))[0]
    columns = ("vm_state", "task_state", "locked", "rescue_image", "host")
    # a value for what is not offered, too: of the page of somebody to whom it is
    known = {"snapshot": "a-name", "rebuild": seeds.IMAGE_ID, "resize": "1"}
    for role in ROLES:
        visitor = Visitor(api, role)
        offered = buttons(visitor.get(f"/instances/{uuid}"), uuid)
        values = {**known, **values_of(visitor, uuid)}
        if role == "reader":
            assert offered == set()
        for name in server_actions.ACTIONS:
            answer = visitor.post(f"/instances/{uuid}/{name}", value=values.get(name, ""))
            done = answer.status_code == 303
            # a lock that is there may be put on once more: no button says so, and nothing comes of it
            again = name == ("lock" if before.locked else "unlock") and role != "reader"
            assert done == (name in offered or again), (role, name, answer.get_data(as_text=True)[-600:])
            assert answer.status_code in (303, 400, 403, 409), (role, name)
            api.write(sa.delete(job_instance))
            api.write(sa.delete(job))
            api.write(sa.delete(server_snapshot))  # it would keep the server where it is
            api.write(sa.delete(server_backup))
            api.write(sa.delete(migration).where(migration.c.instance_uuid == uuid))
            api.write(sa.delete(tables.instance_action).where(tables.instance_action.c.instance_uuid == uuid))
            kept = {name: getattr(before, name) for name in columns}
            api.write(sa.update(INSTANCE).where(INSTANCE.c.uuid == uuid).values(**kept))


def test_members_are_offered_what_their_server_can_do(api: seeds.Api) -> None:
    uuid = server(api, "stopped")
    offered = buttons(Visitor(api, "demo").get(f"/instances/{uuid}"), uuid)
    assert {"start", "snapshot", "resize", "rebuild", "rescue", "shelve", "lock", "hard-reboot"} <= offered
    assert not {"stop", "migrate", "live-migrate", "unlock", "attach-volume"} & offered
    assert "migrate" in buttons(Visitor(api, "admin").get(f"/instances/{uuid}"), uuid)


def test_an_action_begins_what_the_api_begins(api: seeds.Api) -> None:
    uuid, member = server(api, "active"), Visitor(api, "demo")
    assert member.post(f"/instances/{uuid}/snapshot", value="before-the-update").status_code == 303
    (row,) = api.rows(sa.select(job))
    assert row.kind == "createImage" and "createImage" in member.get(f"/instances/{uuid}").words
    (action,) = api.rows(sa.select(tables.instance_action).where(tables.instance_action.c.instance_uuid == uuid))
    assert (action.action, action.user_id) == ("createImage", api.users["demo"])


def test_a_flavor_with_the_same_maxima_is_offered_while_it_runs(api: seeds.Api) -> None:
    uuid, member = server(api, "active"), Visitor(api, "demo")
    assert "live-resize" not in buttons(member.get(f"/instances/{uuid}"), uuid)
    (row,) = api.rows(sa.select(INSTANCE).where(INSTANCE.c.uuid == uuid))
    specs = {"novalite:max_vcpus": "8", "novalite:max_ram": "8192"}
    api.write(sa.update(INSTANCE).where(INSTANCE.c.uuid == uuid).values(flavor={**row.flavor, "extra_specs": specs}))
    flavor = tables.flavor
    (own,) = api.rows(sa.select(flavor).where(flavor.c.name == row.flavor["name"]))
    larger = {**own._mapping, "id": 4711, "name": "m1.larger", "flavorid": None, "vcpus": own.vcpus + 1}
    api.insert(flavor, **{**larger, "extra_specs": specs})
    page = member.get(f"/instances/{uuid}")
    assert "live-resize" in buttons(page, uuid) and values_of(member, uuid)["live-resize"] == "4711"
    assert member.post(f"/instances/{uuid}/live-resize", value="4711").status_code == 303
    (begun,) = api.rows(sa.select(job))
    assert begun.kind == "live-resize"


def test_only_what_is_listed_can_be_chosen(api: seeds.Api, scene: scenes.Scene) -> None:
    member = Visitor(api, "demo")
    for name, value in (("resize", "no-flavor"), ("rebuild", scenes.SCRIPT), ("attach-volume", scene.foreign)):
        answer = member.post(f"/instances/{scene.web}/{name}", value=value)
        assert answer.status_code == 400
        assert "<script>document" not in answer.get_data(as_text=True)
    assert member.post(f"/instances/{scene.foreign}/lock").status_code == 404
    assert member.post(f"/instances/{scene.web}/explode").status_code == 404


def test_members_say_what_becomes_of_a_server_when_its_host_dies(api: seeds.Api) -> None:
    uuid = server(api, "active")
    reader, member, path = Visitor(api, "reader"), Visitor(api, "demo"), f"/instances/{uuid}/ha"
    assert path in [link["href"] for link in member.get(f"/instances/{uuid}").all("a")]
    assert path not in [link["href"] for link in reader.get(f"/instances/{uuid}").all("a")]
    reader.get(path, 403)
    for values, reason in (
        ({"ha": "yes"}, "ha_rebuild"),  # its disk dies with its host
        ({"ha": "yes", "ha_rebuild": "yes", "ha_priority": "101"}, "from -100 to 100"),
    ):
        answer = member.post(path, path, **values)
        assert answer.status_code == 400 and reason in answer.get_data(as_text=True)
    answer = member.post(path, path, ha="yes", ha_rebuild="yes", ha_priority="-5")
    assert (answer.status_code, answer.location) == (303, f"/instances/{uuid}")
    assert "it runs again on another: priority -5, with a new disk of its image" in member.get(answer.location).words
    fields = {str(field["name"]): field for field in member.get(path).all("input")}
    assert fields["ha_priority"]["value"] == "-5" and {"ha", "ha_rebuild"} == {
        name for name, field in fields.items() if "checked" in field
    }
    assert member.post(path, path, ha_priority="-5").status_code == 303  # a box that is empty is sent as nothing
    assert "it stays dead" in member.get(f"/instances/{uuid}").words


def test_administrators_have_disks_copied_to_a_second_host(api: seeds.Api) -> None:
    uuid = server(api, "active")
    admin, member, page = Visitor(api, "admin"), Visitor(api, "demo"), f"/instances/{uuid}"
    path = f"{page}/replica"
    assert path in [link["href"] for link in admin.get(page).all("a")]
    assert path not in [link["href"] for link in member.get(page).all("a")]
    assert "Copy on a second host" not in member.get(page).words
    member.get(path, 403)
    answer = admin.post(path, path, copied="yes", every="10s", host="")
    assert answer.status_code == 400 and "between a minute and a year" in answer.get_data(as_text=True)
    answer = admin.post(path, path, copied="yes", every="10m", host="hv2")
    assert (answer.status_code, answer.location) == (303, page)
    assert "none yet, for hv2; every 10 min, next at once" in admin.get(page).words
    fields = {str(field["name"]): field for field in admin.get(path).all("input")}
    assert fields["every"]["value"] == "10m" and "checked" in fields["copied"]
    api.write(sa.update(replica).values(copy_id=uuid, taken_at=1, tried_at=1, fault="hv2 is full", next_host="hv3"))
    words = admin.get(page).words
    assert "on hv2; every 10 min, next 1970-01-01 00:10:01 UTC, to hv3 the last one failed: hv2 is full" in words
    assert "hv2" not in member.get(page).words and "every 10 min" in member.get(page).words
    assert admin.post(path, path, every="10m", host="").status_code == 303
    assert "Copy on a second hostnone" in admin.get(page).words
