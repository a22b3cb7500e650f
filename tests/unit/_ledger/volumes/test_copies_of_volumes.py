# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of images, snapshots, volumes and backups: such a volume has their data in the end, and is never empty."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import api_created
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_volumes import volume, volume_snapshot
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    BEFORE_DATA,
    volumes_by,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import (
    volume_attachments,
    volume_plans,
    volume_snapshots,
    volumes,
)
from api.openstack.volume.schemas import STATES
from tests.support.cloud import Cloud
from tests.support.rows import DEMO, add_instance
from tests.unit._ledger.volumes.volumes_of_tests import SOURCES, blank, copy_of, held, now, snapshot_of, with_data


@pytest.mark.parametrize("status", BEFORE_DATA)
@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("gone", [False, True])
def test_no_host_is_told_to_make_a_copy_empty(connection: sa.Connection, kind: str, status: str, gone: bool) -> None:
    row = copy_of(connection, kind)
    if gone:
        connection.execute(sa.delete(volume_snapshot))
        connection.execute(sa.delete(volume).where(volume.c.id != row.id))
    volumes.write(connection, "volume", row.id, {"status": status})
    plan = volume_plans.to_be_made(connection, now(connection, row))
    assert plan["source"] or not plan["create"]
    assert bool(volume_plans.images_for(now(connection, row))) == (kind == "image")


@pytest.mark.parametrize("kind", SOURCES)
def test_a_copy_that_was_never_made_is_not_declared_usable(connection: sa.Connection, kind: str) -> None:
    row = copy_of(connection, kind)
    volumes.finish_create(connection, row.id, error="no room")
    for status in set(STATES) - set(BEFORE_DATA):
        with pytest.raises(ConflictError, match=f"cannot be {status}: delete it"):
            volumes.reset_status(connection, row.id, status)
    assert volumes.reset_status(connection, row.id, "error_deleting").status == "error_deleting"


def test_a_copy_of_an_empty_volume_is_empty_whatever_became_of_that(connection: sa.Connection) -> None:
    source = blank(connection)
    row = volumes.create_volume(connection, DEMO, {"source_volume_id": source.id})
    held(connection, source)
    volume_attachments.release(connection, [now(connection, source).attachments[0].instance_uuid])
    for _gone in range(2):
        plan = volume_plans.to_be_made(connection, now(connection, row))
        assert (plan["create"], plan["source"]) == (True, None)
        connection.execute(sa.delete(volume).where(volume.c.id == source.id))
    assert volumes.reset_status(connection, row.id, "available").status == "available"


def test_a_volume_that_is_being_copied_does_not_go_with_its_server(connection: sa.Connection) -> None:
    web = add_instance(connection, "web", host="hv1")
    source = with_data(connection)
    held(connection, source, web, delete_on_termination=True)
    copy = volumes.create_volume(connection, DEMO, {"source_volume_id": source.id})
    assert volume_attachments.leaving_with(connection, [web]) == []
    volume_attachments.release(connection, [web])
    assert now(connection, source).status == "available"
    (plan,) = volume_plans.plan(connection, volumes=[copy])[0].values()
    assert plan["volumes"][0]["source"]["id"] == source.id


def test_what_hosts_remove_is_what_leaves_the_ledger_though_the_copy_ends_in_between(connection: sa.Connection) -> None:
    web = add_instance(connection, "web", host="hv1")
    source = with_data(connection)
    held(connection, source, web, delete_on_termination=True)
    copy = volumes.create_volume(connection, DEMO, {"source_volume_id": source.id})
    api_created.mark(connection, [{"uuid": web, "task_state": None}])
    assert volume_attachments.leaving_with(connection, [web]) == []  # as its host is told
    volumes.finish_create(connection, copy.id)
    volume_attachments.release(connection, [web])
    assert now(connection, source).status == "available"


def test_nothing_is_made_of_a_volume_that_is_going_with_its_server(connection: sa.Connection) -> None:
    web = add_instance(connection, "web", host="hv1")
    source = with_data(connection)
    held(connection, source, web, delete_on_termination=True)
    volumes.write(connection, "volume", source.id, {"status": "in-use"})
    api_created.mark(connection, [{"uuid": web, "task_state": None}])
    with pytest.raises(ConflictError, match=f"goes with its instance {web}, which is being deleted"):
        volumes.create_volume(connection, DEMO, {"source_volume_id": source.id})
    with pytest.raises(ConflictError, match=f"goes with its instance {web}, which is being deleted"):
        volume_snapshots.create_snapshot(connection, DEMO, {"volume_id": source.id, "force": True})


def test_a_disk_of_a_backup_is_made_by_its_job_also_for_a_new_server(connection: sa.Connection) -> None:
    row = copy_of(connection, "backup_disk")
    volume_attachments.attach_new(connection, add_instance(connection, "new", host="hv1"), row)
    hosts, nowhere = volume_plans.plan(connection, volumes=[now(connection, row)])
    assert hosts or nowhere


def test_a_copy_that_was_never_made_does_not_become_usable_by_a_detach(connection: sa.Connection) -> None:
    row = copy_of(connection, "source_volume_id")
    web = add_instance(connection, "web", host="hv1")
    volume_attachments.attach_new(connection, web, row)
    volumes.write(connection, "volume", row.id, {"status": "error"})
    with pytest.raises(ConflictError, match="delete its instance instead"):
        volume_attachments.begin_detach(connection, row.id, web, force=True)


def test_a_copy_that_its_servers_build_never_made_offers_nothing(cloud: Cloud) -> None:
    with transaction(cloud.engine) as connection:
        taken = snapshot_of(connection, with_data(connection, bootable=True))
    root = {"boot": True, "size": 1}
    asked = [{"name": "of", "volumes": [{**root, "snapshot": taken.name}]}, {"name": "new", "volumes": [root]}]
    servers = cloud.server(*({"flavor": "m1.tiny", "image": "ami-tiny", **each} for each in asked))["to_build"]
    uuids = [server["uuid"] for server in servers]
    with transaction(cloud.engine) as connection:
        of_servers = volumes_by(connection, instances=uuids)
        # nobody else makes what the build of a server makes
        assert volume_plans.plan(connection, volumes=of_servers) == ({}, [])
        volume_attachments.release(connection, uuids)
        assert {now(connection, row).status for row in of_servers} == {"error"}
