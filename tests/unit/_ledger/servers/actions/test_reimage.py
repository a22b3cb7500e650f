# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots, rebuilds and rescues by name: who is acted on, what hosts are given, what is recorded."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, ForbiddenError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import plans, server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps import ledger_heal
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_snapshots

FILE: dict[str, t.Any] = {"source": "/images/new", "checksum": "sha256:" + "5" * 64, "size": 7, "virtual_size": 1 << 20}


@pytest.fixture(autouse=True)
def no_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "guest_of", lambda instance, facts, **_where: instance)
    monkeypatch.setattr(plans, "render", lambda guest: f"{guest['image']['name']} {bool(guest.get('rescue'))}")


def ask(cloud: t.Any, action: str, *servers: str, check_mode: bool = False, **params: t.Any) -> dict[str, t.Any]:
    named = {"servers": list(servers)} if servers else {}
    asked = {"action": action, **named, **params}
    return t.cast("dict[str, t.Any]", cloud.run("server_action", check_mode=check_mode, **asked))


def server(cloud: t.Any, name: str = "web", vm_state: str = "active") -> str:
    (instance,) = cloud.server({"name": name, "flavor": "m1.nano", "image": "ami-tiny"})["to_build"]
    cloud.place(instance["uuid"], "hv1")
    cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": "hv1"})
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == instance["uuid"]).values(vm_state=vm_state))
    return str(instance["uuid"])


def row(cloud: t.Any, uuid: str) -> t.Any:
    return cloud.rows(sa.select(tables.instance).where(tables.instance.c.uuid == uuid))[0]


def other_image(cloud: t.Any, **values: t.Any) -> None:
    (image,) = cloud.rows(sa.select(tables.image).where(tables.image.c.name == "ami-tiny"))
    new = {"id": "1" * 36, "name": "other", "checksum": "sha256:" + "9" * 64, **values}
    cloud.write(sa.insert(tables.image).values(**{**image._mapping, **new}))


def record(cloud: t.Any, action: str, begun: dict[str, t.Any], error: str | None = None, **row: t.Any) -> t.Any:
    results = [{"uuid": instance["uuid"], "error": error, **row} for instance in begun["instances"]]
    outcome = {"host": "hv1", "results": results, "error": error}
    return ask(cloud, action, plans=begun["hosts"], outcomes=[outcome])


def test_an_image_is_made_once(cloud: t.Any) -> None:
    uuid = server(cloud)
    before = cloud.dump()
    planned = ask(cloud, "createImage", "web", check_mode=True, request={"image_name": "friday"})
    assert planned["hosts"]["hv1"]["snapshots"][0]["uuid"] == uuid and cloud.dump() == before
    begun = ask(cloud, "createImage", "web", request={"image_name": "friday", "properties": {"why": "a test"}})
    (snapshot,) = begun["hosts"]["hv1"]["snapshots"]
    assert row(cloud, uuid).task_state == "image_snapshot"
    done = record(cloud, "createImage", begun, **FILE)
    assert done["changed"] and done["errors"] == done["orphans"] == []
    (image,) = cloud.rows(sa.select(tables.image).where(tables.image.c.name == "friday"))
    assert (image.id, image.owner, image.source) == (snapshot["image_id"], row(cloud, uuid).project_id, "/images/new")
    assert image.properties["why"] == "a test" and image.properties["instance_uuid"] == uuid
    again = ask(cloud, "createImage", "web", request={"image_name": "friday"})
    assert not again["changed"] and again["settled"] and again["hosts"] == {}


def test_an_image_of_a_server_that_starts_from_a_volume_names_snapshots(cloud: t.Any) -> None:
    cloud.server({"name": "web", "flavor": "m1.nano", "image": "ami-tiny", "volumes": [{"boot": True, "size": 1}]})
    uuid = cloud.info(name="web")[0]["uuid"]
    cloud.place(uuid, "hv1")
    cloud.state({"uuids": [uuid], "state": "active", "host": "hv1"})
    plain = server(cloud, "plain")
    begun = ask(cloud, "createImage", "web", "plain", request={"image_name": "friday", "properties": {"why": "a test"}})
    assert [instance["uuid"] for instance in begun["instances"]] == [plain]  # the other one's host has no disk of it
    (snapshot,) = cloud.rows(sa.select(tables_volumes.volume_snapshot))
    assert begun["changed"] and begun["snapshots"] == [snapshot.id]
    work = cloud.run("volume_action", snapshots=begun["snapshots"])["hosts"]["hv1"]["work"]
    assert [(entry["does"], entry["id"]) for entry in work] == [("snapshot_create", snapshot.id)]
    (image,) = cloud.rows(sa.select(tables.image).where(tables.image.c.name == "friday-web"))
    assert image.status == "active" and snapshot.id in image.properties["block_device_mapping"]
    assert image.properties["why"] == "a test" and row(cloud, uuid).task_state is None
    # a run that was cut off goes on with it, and one that came to its end has nothing to do
    again = ask(cloud, "createImage", "web", request={"image_name": "friday-web"})
    assert (again["changed"], again["snapshots"]) == (False, [snapshot.id])
    with transaction(cloud.engine) as connection:
        volume_snapshots.finish_snapshot(connection, snapshot.id)
    assert ask(cloud, "createImage", "web", request={"image_name": "friday-web"})["snapshots"] == []


def test_hosts_mount_no_image_that_was_made_of_a_guest(cloud: t.Any) -> None:
    server(cloud)
    begun = ask(cloud, "createImage", "web", request={"image_name": "friday"})
    record(cloud, "createImage", begun, **FILE)
    (image,) = cloud.rows(sa.select(tables.image).where(tables.image.c.name == "friday"))
    assert "os_host_mount" not in image.properties and image.properties["image_type"] == "snapshot"
    (twin,) = cloud.server({"name": "twin", "flavor": "m1.nano", "image": "friday"})["to_build"]
    assert twin["config_drive"] is True
    with pytest.raises(ForbiddenError, match="the operator's to set"):
        ask(cloud, "createImage", "web", request={"image_name": "x", "properties": {"os_host_mount": "yes"}})


def test_images_of_several_servers_have_their_names(cloud: t.Any) -> None:
    for name in ("a", "b"):
        server(cloud, name)
    begun = ask(cloud, "createImage", "a", "b", request={"image_name": "friday"})
    record(cloud, "createImage", begun, **FILE)
    assert {"friday-a", "friday-b"} <= {image_row.name for image_row in cloud.rows(sa.select(tables.image))}
    with pytest.raises(NovaliteError, match="needs a name"):
        ask(cloud, "createImage", "a")


def test_an_image_whose_instance_was_deleted_is_an_orphan(cloud: t.Any) -> None:
    uuid = server(cloud)
    begun = ask(cloud, "createImage", "web", request={"image_name": "friday"})
    cloud.server({"name": "web"}, state="absent")
    assert record(cloud, "createImage", begun, **FILE)["orphans"] == ["/images/new"]
    assert row(cloud, uuid).task_state == "deleting"
    (image,) = cloud.rows(sa.select(tables.image).where(tables.image.c.name == "friday"))
    assert image.status == "saving"  # until the deletion has come to its end
    cloud.state({"uuids": [uuid], "state": "deleted"})
    assert not cloud.rows(sa.select(tables.image).where(tables.image.c.name == "friday"))


def test_a_rebuild_gives_hosts_all_that_a_build_gives_them(cloud: t.Any) -> None:
    uuid, stopped = server(cloud), server(cloud, "off", "stopped")
    other_image(cloud)
    request = {"image": "other", "user_data": "#!/bin/sh", "metadata": {"a": "b"}}
    begun = ask(cloud, "rebuild", "web", "off", request=request)
    plan = begun["hosts"]["hv1"]
    assert (
        plan["starts"] and begun["secret"] and [image["checksum"] for image in plan["images"]] == ["sha256:" + "9" * 64]
    )
    assert {disk["base"] for disk in plan["disks"]} == {"sha256:" + "9" * 64}
    assert [injection["uuid"] for injection in plan["injections"]] == [uuid, stopped]
    assert [domain["uuid"] for domain in plan["running"]["domains"]] == [uuid]
    assert [guest["name"] for guest in plan["running"]["guests"]] == ["web"]
    record(cloud, "rebuild", begun)
    for instance_uuid, vm_state in ((uuid, "active"), (stopped, "stopped")):
        instance_row = row(cloud, instance_uuid)
        assert (instance_row.vm_state, instance_row.task_state, instance_row.host) == (vm_state, None, "hv1")
        assert (instance_row.image["name"], instance_row.metadata) == ("other", {"a": "b"}) and instance_row.user_data


def test_a_rebuild_claims_nothing_and_releases_nothing(cloud: t.Any) -> None:
    server(cloud)
    held = {name: cloud.dump()[name] for name in ("allocation", "fixed_ip", "vif", "compute_host")}
    begun = ask(cloud, "rebuild", "web")
    record(cloud, "rebuild", begun, error="no room")
    with transaction(cloud.engine) as connection:
        ledger_heal.ledger_heal(connection, {})
    assert {name: cloud.dump()[name] for name in held} == held
    with pytest.raises(ConflictError, match="is in error on hv1: rebuild it"):
        cloud.server({"name": "web", "flavor": "m1.nano", "image": "ami-tiny"})
    assert record(cloud, "rebuild", ask(cloud, "rebuild", "web"))["instances"][0]["vm_state"] == "active"


def test_a_rebuild_with_an_image_that_does_not_fit(cloud: t.Any) -> None:
    uuid = server(cloud)
    other_image(cloud, min_ram_mb=4096)
    before = row(cloud, uuid)
    with pytest.raises(NovaliteError, match="too small for image 'other'"):
        ask(cloud, "rebuild", "web", request={"image": "other"})
    assert row(cloud, uuid) == before


@pytest.mark.parametrize("action", ["rebuild", "rescue"])
def test_an_abandoned_run_leaves_an_error_that_can_be_rebuilt(cloud: t.Any, action: str) -> None:
    uuid = server(cloud)
    ask(cloud, action, "web")
    with transaction(cloud.engine) as connection:
        repair_report = ledger_heal.ledger_heal(connection, {"build_timeout": 0})
    assert [correction["kind"] for correction in repair_report["corrections"]] == ["instance"]
    left = row(cloud, uuid)
    assert (left.vm_state, left.task_state, left.rescue_image, left.host) == ("error", None, None, "hv1")
    assert "abandoned" in left.fault["message"]
    record(cloud, "rebuild", ask(cloud, "rebuild", "web"))
    assert row(cloud, uuid).vm_state == "active"


def test_a_rescue_starts_from_the_other_image_beside_the_own_disk(cloud: t.Any) -> None:
    uuid = server(cloud)
    other_image(cloud)
    begun = ask(cloud, "rescue", "web", request={"image": "other", "admin_password": "let me in"})
    plan = begun["hosts"]["hv1"]
    assert plan["domains"][0]["xml"] == "other True" and plan["starts"]
    (disk,), (injection,) = plan["disks"], plan["injections"]
    assert disk["rescue"] and disk["base"] == "sha256:" + "9" * 64 and "virtual_size_gb" not in disk
    assert injection["disk"] == "disk.rescue" and injection["password_hash"].startswith("$6$")
    record(cloud, "rescue", begun)
    assert row(cloud, uuid).vm_state == "rescued" and row(cloud, uuid).image["name"] == "ami-tiny"
    back = ask(cloud, "unrescue", "web")
    plan = back["hosts"]["hv1"]
    assert plan["domains"][0]["xml"] == "ami-tiny False"
    assert plan["rescue_disks"] == [{"uuid": uuid, "rescue": True}] and plan["injections"] == []
    record(cloud, "unrescue", back)
    assert (row(cloud, uuid).vm_state, row(cloud, uuid).rescue_image) == ("active", None)


def test_a_rescue_with_an_image_that_no_host_may_mount_has_a_config_drive(cloud: t.Any) -> None:
    uuid = server(cloud)
    other_image(cloud, properties={})
    plan = ask(cloud, "rescue", "web", request={"image": "other"})["hosts"]["hv1"]
    assert plan["injections"] == []
    (drive,) = plan["config_drives"]
    assert (drive["uuid"], drive["rescue"]) == (uuid, True)
    assert row(cloud, uuid).config_drive is False  # its own image has none, before and after


def test_a_rebuild_from_an_image_that_no_host_may_mount_has_a_config_drive(cloud: t.Any) -> None:
    uuid = server(cloud)
    other_image(cloud, properties={})
    plan = ask(cloud, "rebuild", "web", request={"image": "other"})["hosts"]["hv1"]
    assert (plan["injections"], [drive["uuid"] for drive in plan["config_drives"]]) == ([], [uuid])


def test_who_is_rescued_already_is_left_alone(cloud: t.Any) -> None:
    server(cloud, vm_state="rescued")
    assert ask(cloud, "rescue", "web")["hosts"] == {}


def test_a_rescued_server_that_is_stopped_forgets_the_rescue(cloud: t.Any) -> None:
    uuid = server(cloud)
    record(cloud, "rescue", ask(cloud, "rescue", "web"))
    with transaction(cloud.engine) as connection:
        server_actions.begin(connection, "stop", [uuid], request_id="req-1")
        server_actions.finish(connection, "stop", [uuid])
    assert (row(cloud, uuid).vm_state, row(cloud, uuid).rescue_image) == ("stopped", None)


@pytest.mark.parametrize("action", ["rebuild", "rescue"])
def test_an_image_that_the_host_cannot_boot_is_refused(cloud: t.Any, action: str) -> None:
    server(cloud)
    other_image(cloud, properties={"hw_firmware_type": "uefi"})
    with pytest.raises(NovaliteError, match="image 'other' does not suit hv1, which has no UEFI firmware"):
        ask(cloud, action, "web", request={"image": "other"})


@pytest.mark.parametrize("action", ["rebuild", "rescue"])
def test_an_image_for_devices_that_the_host_lacks_is_refused(cloud: t.Any, action: str) -> None:
    server(cloud)
    other_image(cloud, properties={"hw_viommu_model": "intel"})
    with pytest.raises(NovaliteError, match="image 'other' does not suit hv1, which gives the guest machine type"):
        ask(cloud, action, "web", request={"image": "other"})


def test_an_image_with_a_tpm_gives_none_to_a_server_that_is_there(cloud: t.Any) -> None:
    server(cloud)
    other_image(cloud, properties={"hw_tpm_version": "2.0"})
    with pytest.raises(NovaliteError, match="asks for a TPM, which an instance gets at its launch"):
        ask(cloud, "rebuild", "web", request={"image": "other"})


@pytest.mark.parametrize("action", ["rebuild", "rescue"])
def test_a_server_with_a_tpm_keeps_its_disk(cloud: t.Any, action: str) -> None:
    uuid = server(cloud)
    image = {**row(cloud, uuid).image, "properties": {"hw_tpm_version": "2.0"}}
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == uuid).values(image=image))
    with pytest.raises(ConflictError, match=f"'{action}' not supported for vTPM-enabled instance"):
        ask(cloud, action, "web")
