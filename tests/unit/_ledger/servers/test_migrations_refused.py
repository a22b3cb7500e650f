# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves that cannot be, those within quotas, and those for maintenance."""

from __future__ import annotations

import contextlib
import typing as t
from unittest import mock

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.migration import begin
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import (
    flavor_of,
    instances_by,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_plan import server_plan
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_attachments
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes.volumes import create_volume
from tests.unit._ledger.servers.test_server_migration import ask, carried, check_sums, claims, row, server, status, well

pytestmark = pytest.mark.usefixtures("two_hosts", "no_domains")


def test_what_cannot_be_is_refused_and_nothing_written(cloud: t.Any) -> None:
    server(cloud)
    server(cloud, "off", vm_state="paused")
    before = cloud.dump()
    cases: tuple[tuple[str, str, dict[str, t.Any], str], ...] = (
        ("resize", "web", {"flavor": "m1.nothing"}, "unknown flavor"),
        ("resize", "web", {}, "name the flavor"),
        ("migrate", "web", {"host": "hv9"}, "unknown compute host"),
        ("migrate", "off", {}, "Cannot 'migrate' instance .* vm_state paused"),
        ("confirmResize", "web", {}, "Cannot 'confirmResize'"),
        ("evacuate", "web", {}, "Compute service of hv1 is still in use"),
    )
    for action, name, params, message in cases:
        with pytest.raises(NovaliteError, match=message):
            ask(cloud, action, name, **params)
    assert cloud.dump() == before


def boots_from_volume(cloud: t.Any, uuid: str, host: str | None) -> None:
    volumes, project = tables.tables_volumes, row(cloud, uuid).project_id
    with transaction(cloud.engine) as connection:
        made = create_volume(connection, project, {"size_gb": 1, "name": "root", "bootable": True})
        connection.execute(
            sa.insert(volumes.volume_attachment).values(
                id=made.id,
                volume_id=made.id,
                instance_uuid=uuid,
                device="/dev/vda",
                boot_index=0,
                created_at=0,
                delete_on_termination=True,
            )
        )
        connection.execute(sa.update(volumes.volume).where(volumes.volume.c.id == made.id).values(host=host))


def test_one_that_starts_from_a_shared_volume_moves_without_a_disk(cloud: t.Any) -> None:
    uuid = server(cloud)
    boots_from_volume(cloud, uuid, None)
    begun = ask(cloud, "migrate", "web")
    plan = begun["hosts"]["hv2"]["build"]
    assert [(disk["uuid"], disk["root"]) for disk in plan["disks"]] == [(uuid, False)]
    assert [image["kind"] for image in plan["images"]] == []
    assert begun["hosts"]["hv1"]["leave"]["volumes_gone"] == []  # it goes with its server, and that is not going
    carried(cloud, "migrate", begun)
    assert (row(cloud, uuid).host, row(cloud, uuid).vm_state) == ("hv2", "resized")


@pytest.mark.parametrize("action", ["migrate", "live-migration", "evacuate"])
def test_one_that_starts_from_a_volume_of_its_host_alone_stays(cloud: t.Any, action: str) -> None:
    uuid = server(cloud)
    boots_from_volume(cloud, uuid, "hv1")
    with pytest.raises(NovaliteError, match="has volume root, which is on hv1 alone: detach it first"):
        ask(cloud, action, "web")
    begun = ask(cloud, "resize", "web", flavor="m1.tiny")
    assert [(move["from_host"], move["to_host"]) for move in begun["moves"]] == [("hv1", "hv1")]


def test_a_flavor_says_nothing_of_a_root_disk_that_is_a_volume(cloud: t.Any) -> None:
    uuid = server(cloud)
    instance = tables.instance
    flavor = {**row(cloud, uuid).flavor, "root_gb": 10**6}
    cloud.write(sa.update(instance).where(instance.c.uuid == uuid).values(flavor=flavor))
    with pytest.raises(NovaliteError, match="its root_gb would shrink"):
        ask(cloud, "resize", "web", flavor="m1.tiny")
    boots_from_volume(cloud, uuid, None)
    assert ask(cloud, "resize", "web", flavor="m1.tiny")["moves"]


def test_a_resize_is_within_the_quota(cloud: t.Any) -> None:
    uuid = server(cloud)
    cloud.write(sa.insert(tables.quota).values(project_id="d" * 32, resource="ram", hard_limit=200))
    with pytest.raises(QuotaError, match="Quota exceeded for ram: Requested 416, but already used 96 of 200 ram"):
        ask(cloud, "resize", "web", flavor="m1.tiny")
    assert row(cloud, uuid).task_state is None


@pytest.mark.parametrize(("action", "secret"), [("evacuate", True), ("migrate", False)])
def test_what_only_a_guest_may_know_is_on_no_screen(cloud: t.Any, action: str, secret: bool) -> None:
    uuid = server(cloud)
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == uuid).values(user_data="c2VjcmV0"))
    if action == "evacuate":
        cloud.write(sa.update(tables.compute_host).where(tables.compute_host.c.name == "hv1").values(last_seen_at=0))
    begun = ask(cloud, action, "web")
    assert begun["secret"] is secret


@pytest.mark.both_databases
def test_an_evacuation_gives_the_dead_hosts_claim_back(cloud: t.Any) -> None:
    uuid = server(cloud)
    cloud.write(sa.update(tables.compute_host).where(tables.compute_host.c.name == "hv1").values(up=False))
    begun = ask(cloud, "evacuate", from_host="hv1")
    assert list(begun["hosts"]["hv2"]["build"]["disks"][0]) != []
    ask(cloud, "evacuate", state="commit", moves=begun["moves"], parts=[])
    ended = ask(cloud, "evacuate", state="end", moves=begun["moves"], parts=["to_host"], outcomes=well("hv2"))
    assert ended["errors"] == []
    now = row(cloud, uuid)
    assert (now.host, now.vm_state, status(cloud), set(claims(cloud, uuid))) == ("hv2", "active", "done", {"hv2"})
    check_sums(cloud)


def test_a_host_that_may_answer_in_the_place_of_another_is_not_evacuated(cloud: t.Any) -> None:
    """Two lines of an inventory were swapped, and the other machine of the two lost its power."""
    server(cloud)
    cloud.write(sa.update(tables.compute_host).where(tables.compute_host.c.name == "hv1").values(up=False))
    dead: dict[str, t.Any] = {"name": "hv1", "up": False, "down_reason": "no answer over ssh", "refused_host": False}
    other = {"name": "hv3", "up": False, "down_reason": "hv3: this machine is hv1 of this ledger", "refused_host": True}
    with pytest.raises(NovaliteError, match="host hv1 may be alive under another name: hv3: this machine is hv1"):
        ask(cloud, "evacuate", "web", compute_hosts=[dead, other])
    replaced = {**dead, "down_reason": "hv1: this is not the machine that the ledger has", "refused_host": True}
    assert ask(cloud, "evacuate", "web", compute_hosts=[replaced])["moves"]


def test_what_left_for_maintenance_comes_back_once(cloud: t.Any) -> None:
    uuid = server(cloud)
    server(cloud, "other", host="hv2")
    carried(cloud, "live-migration", ask(cloud, "live-migration", from_host="hv1", reason="maintenance"))
    back = ask(cloud, "live-migration", returning_to="hv1", reason="return")
    assert [(move["uuid"], move["to_host"]) for move in back["moves"]] == [(uuid, "hv1")]
    carried(cloud, "live-migration", back, parts=("hv2", "hv1"))
    assert ask(cloud, "live-migration", returning_to="hv1")["changed"] is False


def test_who_is_deleted_while_resized_leaves_nothing(cloud: t.Any) -> None:
    uuid = server(cloud)
    carried(cloud, "migrate", ask(cloud, "migrate", "web"))
    (leaving,) = cloud.server({"name": "web"}, state="absent")["to_delete"]
    with transaction(cloud.engine) as connection:
        params = {"instances": [], "existing": [], "leaving": [leaving], "compute_hosts": [], "state_dir": "/x"}
        hosts = server_plan(connection, params)["hosts"]
    assert hosts["hv1"]["vacate"]["disks"][0]["uuid"] == uuid
    assert "vacate" not in hosts["hv2"]
    cloud.state({"uuids": [uuid], "state": "deleted"})
    assert (status(cloud), claims(cloud, uuid)) == ("confirmed", {})
    check_sums(cloud)


@pytest.mark.both_databases
def test_two_begin_at_once_and_one_wins(cloud: t.Any) -> None:
    uuid = server(cloud)
    with transaction(cloud.engine) as connection:
        flavor = flavor_of(
            dict(connection.execute(sa.select(tables.flavor).where(tables.flavor.c.name == "m1.tiny")).mappings().one())
        )
        begin.begin_move(connection, "resize", [uuid], request_id="req-1", flavor=flavor)
    with pytest.raises(ConflictError, match="task_state resize_prep"), transaction(cloud.engine) as connection:
        begin.begin_move(connection, "migrate", [uuid], request_id="req-2")


def test_a_network_stays_on_the_host_that_one_moves_to(cloud: t.Any) -> None:
    """The last one there that is deleted meanwhile took the bridge with it, and the move failed."""
    server(cloud, "web")
    server(cloud, "last", host="hv2")

    def going(host: str, name: str) -> list[str]:
        with transaction(cloud.engine, check_mode=True) as connection:
            leaving = instances_by(connection, names=[name])
            params = {"leaving": leaving, "instances": [], "existing": [], "compute_hosts": [], "state_dir": "/state"}
            plan = server_plan(connection, params)["hosts"][host]["remove"]
        return [bridge["name"] for bridge in plan["last_bridges"]]

    assert going("hv2", "last") == ["br-private"]
    begun = ask(cloud, "live-migration", "web", host="hv2")
    assert going("hv2", "last") == []
    carried(cloud, "live-migration", begun)
    assert going("hv2", "last") == [], "it is there now"
    server(cloud, "other", host="hv1")
    assert going("hv1", "other") == ["br-private"], "nothing of it is left where it was"


@pytest.mark.parametrize("action", ["migrate", "live-migration", "resize", "evacuate"])
def test_one_with_a_tpm_stays(cloud: t.Any, action: str) -> None:
    uuid = server(cloud)
    instance = tables.instance
    flavor = {**row(cloud, uuid).flavor, "extra_specs": {"hw:tpm_version": "2.0"}}
    cloud.write(sa.update(instance).where(instance.c.uuid == uuid).values(flavor=flavor))
    before = cloud.dump()
    with pytest.raises(ConflictError, match=f"'{action}' not supported for vTPM-enabled instance .* stays on hv1"):
        ask(cloud, action, "web", flavor="m1.tiny" if action == "resize" else None)
    assert cloud.dump() == before


def test_a_resize_gives_no_firmware_that_the_image_has_not(cloud: t.Any) -> None:
    server(cloud)
    flavor = tables.flavor
    secure = {"os:secure_boot": "required"}
    cloud.write(sa.update(flavor).where(flavor.c.name == "m1.tiny").values(extra_specs=secure))
    with pytest.raises(NovaliteError, match="set hw_firmware_type=uefi on the image"):
        ask(cloud, "resize", "web", flavor="m1.tiny")


def attach(cloud: t.Any, uuid: str, backend: str, *, as_before: bool = False) -> str:
    """Attach a new volume of a type with this backend; `as_before`, though the server may go back."""
    volumes, project = tables.tables_volumes, row(cloud, uuid).project_id
    with transaction(cloud.engine) as connection, contextlib.ExitStack() as stack:
        made = create_volume(connection, project, {"size_gb": 1, "name": "data"})
        connection.execute(sa.update(volumes.volume_type).values(backend=backend))
        if as_before:
            stack.enter_context(mock.patch.object(volume_attachments, "_refuse_between_hosts"))
        attached = volume_attachments.begin_attach(connection, made.id, uuid, project_id=project)
        volume_attachments.finish_attach(connection, attached.id)
    return made.id


@pytest.mark.parametrize("backend", ["file", "lvm"])
def test_what_waits_to_be_confirmed_elsewhere_gets_no_volume_of_one_host(cloud: t.Any, backend: str) -> None:
    uuid = server(cloud)
    carried(cloud, "migrate", ask(cloud, "migrate", "web"))
    with pytest.raises(ConflictError, match=r"would be in the storage of the compute host hv2 alone.* end on hv1: "):
        attach(cloud, uuid, backend)
    attach(cloud, uuid, "nfs")
    carried(cloud, "revertResize", ask(cloud, "revertResize", "web"))
    attach(cloud, uuid, backend)


def test_one_resized_on_its_own_host_gets_volumes_of_it_and_goes_back_with_them(cloud: t.Any) -> None:
    uuid = server(cloud)
    carried(cloud, "resize", ask(cloud, "resize", "web", flavor="m1.tiny", same_host="only"))
    attach(cloud, uuid, "file")
    carried(cloud, "revertResize", ask(cloud, "revertResize", "web"))
    assert row(cloud, uuid).vm_state == "active"


def test_a_live_migration_of_unknown_end_gets_no_volume_of_one_host(cloud: t.Any) -> None:
    uuid = server(cloud)
    begun = ask(cloud, "live-migration", "web")
    ask(cloud, "live-migration", state="end", before=begun, parts=["from_host"], outcomes=[])
    assert (row(cloud, uuid).task_state, status(cloud)) == (None, "running")
    with pytest.raises(ConflictError, match=r"may yet end on hv2: run playbooks/reconcile.yml first"):
        attach(cloud, uuid, "file")


def test_a_revert_does_not_leave_a_volume_behind(cloud: t.Any) -> None:
    uuid = server(cloud)
    carried(cloud, "migrate", ask(cloud, "migrate", "web"))
    attach(cloud, uuid, "file", as_before=True)
    with pytest.raises(ConflictError, match="volume data, which is on hv2 alone, and would go back to hv1: detach it"):
        ask(cloud, "revertResize", "web")
    assert (row(cloud, uuid).task_state, status(cloud)) == (None, "finished")
    assert [move["uuid"] for move in ask(cloud, "confirmResize", "web")["moves"]] == [uuid]
