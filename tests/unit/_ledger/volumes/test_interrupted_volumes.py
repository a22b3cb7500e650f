# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on a volume end, and leave it to be used, also where somebody interferes."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog.image_records import delete_images
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import volumes as operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Volume,
    volumes_by,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.volume_action import volume_action
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import (
    volume_attachments,
    volume_backups,
    volume_heal,
    volume_uploads,
    volumes,
)
from tests.support.calls import a_call
from tests.support.rows import DEMO
from tests.unit._ledger.volumes.volumes_of_tests import blank, held, now, with_data

FILE = {"source": "/i/x", "checksum": f"sha256:{'1' * 64}", "size": 1, "virtual_size": 1}


def of_image(image_id: str) -> sa.ColumnElement[bool]:
    return tables.image.c.id == image_id


@pytest.mark.parametrize("data", [False, True])
def test_an_upload_whose_image_was_deleted_changes_nothing_of_its_volume(connection: sa.Connection, data: bool) -> None:
    row = with_data(connection) if data else blank(connection)
    _row, image_id = volume_uploads.begin_upload(connection, row.id, name="i")
    delete_images(connection, of_image(image_id))
    assert volume_action(connection, {"volumes": [row.id]})["hosts"] == {}
    after = now(connection, row)
    assert (after.status, after.host, after.made_at) == ("available", row.host, row.made_at)


@pytest.mark.parametrize("error", [None, "no room"])
def test_an_image_of_a_volume_that_was_deleted_by_force_is_there_or_gone(
    connection: sa.Connection, error: str | None
) -> None:
    row = with_data(connection)
    _row, image_id = volume_uploads.begin_upload(connection, row.id, name="i")
    volumes.begin_delete(connection, row.id, force=True)
    volumes.finish_delete(connection, row.id)
    assert volume_uploads.finish_upload(connection, row.id, error=error, file_record=FILE)
    statuses = connection.execute(sa.select(tables.image.c.status).where(of_image(image_id))).scalars().all()
    assert statuses == (["active"] if error is None else [])


def backed_up(connection: sa.Connection, row: Volume) -> str:
    backup = volume_backups.begin_create(connection, DEMO, {"volume_id": row.id, "force": True})
    return backup.id


def restored(connection: sa.Connection, row: Volume) -> str:
    number = backed_up(connection, row)
    volume_backups.finish_create(connection, number)
    volume_backups.begin_restore(connection, number, volume_id=row.id)
    return number


@pytest.mark.parametrize(
    ("begin", "is_held", "after"),
    [(backed_up, False, "available"), (backed_up, True, "in-use"), (restored, False, "error_restoring")],
)
@pytest.mark.parametrize("by", ["force", "reset", "lost"])
def test_a_volume_waits_for_no_backup_that_is_gone(
    connection: sa.Connection, begin: t.Callable[[sa.Connection, Volume], str], is_held: bool, after: str, by: str
) -> None:
    row = with_data(connection)
    if is_held:
        held(connection, row)
    number = begin(connection, row)
    if by == "force":
        volume_backups.begin_delete(connection, number, force=True)
        assert not volume_backups.finish_create(connection, number)  # the host is late
        assert volume_backups.finish_delete(connection, number)
        assert now(connection, row).status == after
        return
    volume_backups.reset_status(connection, number, "error")
    if by == "lost":
        volume_backups.begin_delete(connection, number)
        volume_backups.finish_delete(connection, number)
    assert [change[4] for change in volume_heal.end_abandoned(connection, 2**40, 2**40)] == [{"status": after}]
    assert now(connection, row).status == after


def test_a_real_detach_is_not_rolled_back(connection: sa.Connection) -> None:
    row = with_data(connection)
    attachment = held(connection, row)
    call = a_call(connection)
    operations.begin_detaching(call, now(connection, row))
    operations.roll_detaching(call, now(connection, row))
    volume_attachments.begin_detach(connection, row.id)
    with pytest.raises(ConflictError, match="being detached from instance"):
        operations.roll_detaching(call, now(connection, row))
    volume_attachments.finish_detach(connection, attachment, error="the guest holds it")
    assert now(connection, row).status == "in-use"


@pytest.mark.parametrize("status", ["detaching", "in-use", "error_detaching"])
def test_a_volume_that_nobody_has_any_more_is_free(connection: sa.Connection, status: str) -> None:
    row = with_data(connection)
    attachment = held(connection, row)
    volume_attachments.begin_detach(connection, row.id)
    volumes.reset_status(connection, row.id, status)
    volume_attachments.finish_detach(connection, attachment)
    assert [(each.status, each.attachments) for each in volumes_by(connection, ids=[row.id])] == [("available", [])]
