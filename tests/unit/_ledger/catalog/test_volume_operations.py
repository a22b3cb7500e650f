# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on volumes, their types, transfers and holders: who may what, and what EC2's clients alone say."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    ForbiddenError,
    InvalidVolumeError,
    NotFoundError,
    NovaliteError,
    OtherRequestError,
    QuotaError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._guest.image_properties import HOST_MOUNT
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import (
    ec2_requests,
    tags,
    volume_holders,
    volume_transfers,
    volume_types,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog.volume_holders import Connector
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.ec2 import ec2_attributes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Volume,
    snapshots_by,
    volumes_by,
)
from tests.support.calls import USER, Job, a_call
from tests.support.rows import DEMO, OTHER, a_host, add_project, insert
from tests.unit._ledger.conftest import on_sqlite

pytestmark = on_sqlite


@pytest.fixture
def connection(ledger: sa.Engine) -> t.Iterator[sa.Connection]:
    with transaction(ledger) as connection:
        add_project(connection, "other", OTHER)
        insert(connection, tables.compute_host, **a_host())
        yield connection


def now(connection: sa.Connection, row: Volume) -> Volume:
    return volumes_by(connection, ids=[row.id])[0]


def test_a_volume_is_the_callers_and_of_a_type_that_its_project_may_name(connection: sa.Connection) -> None:
    member, admin = a_call(connection), a_call(connection, volumes.PRIVATE_TYPES)
    kept = volume_types.create(admin, {"name": "kept", "is_public": False})
    request = {"size_gb": 1, "type": "kept", "user_id": "somebody else", "private_types": True}
    with pytest.raises(NotFoundError, match="kept could not be found"):
        volumes.create(member, request)
    assert volumes.create(admin, request).user_id == USER
    volume_types.grant(admin, kept, DEMO)
    assert volumes.create(member, request).type == "kept"
    with pytest.raises(ConflictError, match="volumes present"):
        volume_types.delete(admin, kept)


def test_only_an_administrator_passes_by_what_guards_a_volume(connection: sa.Connection) -> None:
    jobs: list[Job] = []
    member, admin = a_call(connection, jobs=jobs), a_call(connection, volumes.ADMIN, jobs=jobs)
    row = volumes.create(member, {"size_gb": 1})
    volumes.reset_status(admin, row, "in-use")
    assert now(connection, row).status == "in-use"
    volumes.reset_status(admin, row, None)
    assert now(connection, row).status == "in-use"
    for refused in (
        lambda: volumes.reset_status(member, row, "available"),
        lambda: volumes.delete(member, row.id, project_id=DEMO, force=True),
        lambda: volumes.delete_snapshot(member, "nosuch", project_id=DEMO, force=True),
        lambda: volumes.reset_snapshot_status(member, "nosuch", "available", project_id=DEMO),
        lambda: volume_holders.release_any(member, row, None, force=True),
    ):
        with pytest.raises(ForbiddenError, match="volume:admin"):
            refused()
    with pytest.raises(InvalidVolumeError):
        volumes.delete(member, row.id, project_id=DEMO)
    volumes.delete(admin, row.id, project_id=DEMO, force=True)
    assert volumes_by(connection, ids=[row.id]) == [] and jobs == []  # it was nowhere


def test_an_image_of_a_volume_is_published_by_who_may_publish_images(connection: sa.Connection) -> None:
    jobs: list[Job] = []
    row = volumes.create(a_call(connection), {"size_gb": 1})
    request: volumes.UploadOptions = {"name": "new", "visibility": "public"}
    with pytest.raises(ForbiddenError, match="image:publicize"):
        volumes.upload(a_call(connection, jobs=jobs), row.id, project_id=DEMO, **request)
    assert jobs == []
    publisher = a_call(connection, "image:publicize", "image:all_projects", jobs=jobs)
    volumes.upload(publisher, row.id, project_id=DEMO, **request)
    assert [job.kind for job in jobs] == ["volume_upload"]


def test_a_volume_is_of_another_type_only_where_the_project_sees_that(connection: sa.Connection) -> None:
    admin = a_call(connection, volumes.PRIVATE_TYPES)
    volume_types.create(admin, {"name": "kept", "is_public": False})
    row = volumes.create(admin, {"size_gb": 1})
    with pytest.raises(NotFoundError, match="kept could not be found"):
        volumes.retype(a_call(connection), row, "kept")
    volumes.retype(admin, row, "kept")
    assert now(connection, row).type == "kept"


def test_only_an_operator_has_hosts_mount_what_a_volume_holds(connection: sa.Connection) -> None:
    member, operator = a_call(connection), a_call(connection, "image:host_mount")
    row = volumes.create(member, {"size_gb": 1})
    assert volumes.describe_image(member, row, {"os_distro": "debian"})["properties"] == {"os_distro": "debian"}
    mounted = {HOST_MOUNT: "yes"}
    with pytest.raises(ForbiddenError):
        volumes.describe_image(member, row, mounted)
    assert volumes.describe_image(operator, row, mounted)["properties"] == mounted


def test_a_snapshot_is_taken_by_the_caller(connection: sa.Connection) -> None:
    call = a_call(connection)
    row = volumes.create(call, {"size_gb": 1})
    made = volumes.create_snapshot(call, {"volume_id": row.id, "user_id": "somebody else"})
    assert snapshots_by(connection, ids=[made.id])[0].user_id == USER


# --- Who has a volume -------------------------------------------------------------------------------------------------


def test_a_reserved_volume_is_connected_completed_and_released(connection: sa.Connection) -> None:
    call = a_call(connection)
    row = volumes.create(call, {"size_gb": 1})
    where = Connector("client", "/dev/sdb", "ro")
    reservation = volume_holders.reserve(call, row.id, mode=None, connector=where, project_id=DEMO)
    held = now(connection, row)
    assert held.status == "attaching" and held.reservation is not None
    assert (held.reservation.host, held.reservation.device, held.reservation.mode) == ("client", "/dev/sdb", "ro")
    volume_holders.complete(call, held, reservation)
    assert now(connection, row).status == "in-use"
    with pytest.raises(InvalidVolumeError, match="is not attached"):
        volume_holders.release_any(call, now(connection, row), "another")
    volume_holders.release_any(call, now(connection, row), reservation.id)
    row = now(connection, row)
    assert (row.status, row.reservation) == ("available", None)
    volume_holders.release_any(call, row, None)  # it is so already


def test_a_transfer_ends_with_the_callers_project(connection: sa.Connection) -> None:
    call, other = a_call(connection), a_call(connection, project_id=OTHER)
    row = volumes.create(call, {"size_gb": 1})
    transfer, key = volume_transfers.offer(call, row.id, name=None, no_snapshots=False, project_id=DEMO)
    with pytest.raises(NovaliteError, match="invalid auth key"):
        volume_transfers.accept(other, transfer.id, "nosuch")
    volume_transfers.accept(other, transfer.id, key)
    assert now(connection, row).project_id == OTHER
    transfer, _key = volume_transfers.offer(other, row.id, name=None, no_snapshots=False, project_id=OTHER)
    with pytest.raises(NotFoundError):
        volume_transfers.withdraw(call, transfer.id, project_id=DEMO)
    volume_transfers.withdraw(other, transfer.id, project_id=OTHER)
    assert now(connection, row).status == "available"


# --- What EC2's clients say -------------------------------------------------------------------------------------------


def test_tags_are_those_that_were_said_last(connection: sa.Connection) -> None:
    call = a_call(connection)
    tags.replace(call, "key-1", {"a": "1", "b": "2"})
    tags.replace(a_call(connection, project_id=OTHER), "key-1", {"c": "3"})
    tags.replace(call, "key-1", {"b": "3"})
    assert ec2_attributes.tags_of(connection, DEMO) == {"key-1": {"b": "3"}}
    with pytest.raises(QuotaError, match="more than 50 tags"):
        tags.replace(call, "key-1", {str(number): "" for number in range(51)})


def test_a_token_stands_for_one_request(connection: sa.Connection) -> None:
    call, made = a_call(connection), []

    def make() -> list[str]:
        made.append("uuid")
        return ["uuid"]

    for _time in range(2):
        assert ec2_requests.once(call, "CreateVolume", "token", {"Size": "1"}, make) == ["uuid"]
    with pytest.raises(OtherRequestError):
        ec2_requests.once(call, "CreateVolume", "token", {"Size": "2"}, make)
    assert made == ["uuid"]
    ec2_requests.once(a_call(connection, project_id=OTHER), "CreateVolume", "token", {"Size": "2"}, make)
    assert made == ["uuid", "uuid"]
