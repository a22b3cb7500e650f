# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on images: what may be said of one by whom, and when; sharing; data that come in."""

from __future__ import annotations

import contextlib
import io
import pathlib
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    BrokenOffError,
    BusyError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    NovaliteError,
    TooLargeError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_store
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import image_data, images
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import (
    NewImage,
    SeenImage,
    image_tasks,
    images_seen,
    members,
)
from tests.support.calls import a_call
from tests.support.rows import DEMO, OTHER, add_project
from tests.unit._ledger.conftest import on_sqlite

pytestmark = on_sqlite


@pytest.fixture
def two_projects(ledger: sa.Engine) -> sa.Engine:
    with transaction(ledger) as connection:
        add_project(connection, "other", OTHER)
    return ledger


@pytest.fixture
def connection(two_projects: sa.Engine) -> t.Iterator[sa.Connection]:
    with transaction(two_projects) as connection:
        yield connection


NEW: NewImage = {
    "id": None,
    "owner": DEMO,
    "name": "mine",
    "visibility": "shared",
    "protected": False,
    "os_hidden": False,
    "disk_format": "raw",
    "container_format": "bare",
    "min_disk_gb": 0,
    "min_ram_mb": 0,
    "cmdline": "",
    "properties": {},
    "tags": [],
}


def test_who_may_publish_and_give_images(connection: sa.Connection) -> None:
    member, publisher = a_call(connection), a_call(connection, "image:publicize")
    giver = a_call(connection, "image:give", images.OF_ALL)
    with pytest.raises(ForbiddenError, match="image:publicize"):
        images.create(member, {**NEW, "visibility": "public"})
    with pytest.raises(ForbiddenError, match="image:give"):
        images.create(member, {**NEW, "owner": OTHER})
    row = images.create(member, NEW)
    with pytest.raises(ForbiddenError, match="image:publicize"):
        images.update(member, row, {**row, "visibility": "public"})
    with pytest.raises(ForbiddenError, match="image:give"):
        images.update(member, row, {**row, "owner": OTHER})
    with pytest.raises(ForbiddenError, match="needs an owner"):
        images.update(giver, row, {**row, "owner": ""})
    row = images.update(publisher, row, {**row, "visibility": "public"})
    # what is public already may be described by its owner
    assert images.update(member, row, {**row, "name": "ours"})["name"] == "ours"
    assert images.update(giver, row, {**row, "owner": OTHER})["owner"] == OTHER
    with pytest.raises(ForbiddenError, match="another's"):
        images.update(member, images.seen(member, row["id"]), {**row, "name": "mine again"})


def test_what_data_are_is_said_before_they_come(connection: sa.Connection) -> None:
    call = a_call(connection)
    row = images.create(call, {**NEW, "disk_format": ""})
    with pytest.raises(NovaliteError, match="disk_format must be set"):
        image_data.check_described(row)
    row = images.update(call, row, {**row, "disk_format": "qcow2"})
    image_data.check_described(row)
    with pytest.raises(NovaliteError, match="several files"):
        image_data.check_described({**row, "container_format": "ova"})
    with pytest.raises(ForbiddenError, match="only an active one can be deactivated"):
        images.set_active(call, row, active=False)
    connection.execute(sa.update(tables.image).values(status="active"))
    row = images.seen(call, row["id"])
    with pytest.raises(ForbiddenError, match="has its data already"):
        images.update(call, row, {**row, "disk_format": "raw"})
    images.set_active(call, row, active=False)
    assert images.seen(call, row["id"])["status"] == "deactivated"
    kernel = {"source": "/vmlinuz", "checksum": "", "size": 1}
    connection.execute(sa.update(tables.image).values(kernel=kernel, cmdline="quiet"))
    row = images.seen(call, row["id"])
    with pytest.raises(ForbiddenError, match="comes with the image's kernel"):
        images.update(call, row, {**row, "cmdline": "single"})


def test_protected_images_stay(connection: sa.Connection) -> None:
    call = a_call(connection)
    row = images.create(call, {**NEW, "protected": True})
    for delete in (lambda: images.delete(call, row), lambda: images.delete_named(call, DEMO, ["nosuch", "mine"])):
        with pytest.raises(images.ProtectedImageError, match="is protected"):
            delete()
    row = images.update(call, row, {**row, "protected": False})
    with pytest.raises(ForbiddenError, match="another's"):
        images.delete(a_call(connection, project_id=OTHER), row)
    images.delete(call, row)
    with pytest.raises(NotFoundError):
        images.seen(call, row["id"])


def test_images_are_shared_with_members_who_answer_for_themselves(connection: sa.Connection) -> None:
    owner, other = a_call(connection), a_call(connection, project_id=OTHER)
    row = images.create(owner, NEW)
    with pytest.raises(ForbiddenError, match="another's"):
        images.add_member(other, row, OTHER)
    images.add_member(owner, row, OTHER)
    with pytest.raises(ForbiddenError, match="Only a member itself"):
        images.answer_member(owner, row, OTHER, "accepted")
    assert images.answer_member(other, row, OTHER, "accepted")["status"] == "accepted"
    images.add_member(owner, row, "f" * 32)
    assert [sharing["member"] for sharing in images.members(other, row)] == [OTHER]  # not whom else
    assert len(images.members(owner, row)) == 2
    images.remove_member(owner, row, OTHER)
    with pytest.raises(NotFoundError, match="member list"):
        images.remove_member(owner, row, OTHER)
    hidden = images.update(owner, row, {**row, "visibility": "private"})
    with pytest.raises(ForbiddenError, match="this one is private"):
        images.add_member(owner, hidden, OTHER)


def test_sharing_as_ec2_does_makes_a_private_image_a_shared_one(connection: sa.Connection) -> None:
    call = a_call(connection)
    row = images.create(call, {**NEW, "visibility": "private"})
    images.change_members(call, row, add=[OTHER, OTHER], remove=["f" * 32])
    row = images.seen(call, row["id"])
    assert (row["visibility"], len(members(connection, row["id"]))) == ("shared", 1)
    images.change_members(call, row, add=[OTHER])  # a member already
    images.change_members(call, row, remove=[OTHER])
    assert members(connection, row["id"]) == []
    of_everybody = images.update(call, row, {**row, "visibility": "community"})
    with pytest.raises(ForbiddenError, match="this one is community"):
        images.change_members(call, of_everybody, add=[OTHER])


# --- Data -------------------------------------------------------------------------------------------------------------


class Place:
    """A ledger whose calls are transactions of their own, as those of requests."""

    def __init__(self, engine: sa.Engine, home: pathlib.Path) -> None:
        self.engine, self.store = engine, image_data.Store(str(home), 1 << 20)
        with self.call() as call:
            self.number = images.create(call, NEW)["id"]

    @contextlib.contextmanager
    def call(self) -> t.Iterator[Call]:
        with transaction(self.engine) as connection:
            yield a_call(connection)

    def row(self) -> SeenImage:
        with reading(self.engine) as connection:
            return images_seen(connection, DEMO, self.number)[0]

    def receive(self, data: bytes, length: int | None = None, *, staged: bool = False) -> None:
        image_data.receive(self.call, self.row(), io.BytesIO(data), length, self.store, staged=staged)


@pytest.fixture
def place(two_projects: sa.Engine, tmp_path: pathlib.Path) -> Place:
    return Place(two_projects, tmp_path)


def test_data_that_came_in_are_the_images(place: Place) -> None:
    place.receive(b"\0" * 512, 512)
    row = place.row()
    assert (row["status"], row["size"], row["virtual_size"]) == ("active", 512, 512)
    assert pathlib.Path(row["source"]).read_bytes() == b"\0" * 512
    with pytest.raises(ConflictError, match="active to saving"):
        place.receive(b"\0" * 512)


@pytest.mark.parametrize(
    ("size", "length", "error"),
    [(512, (1 << 20) + 1, TooLargeError), ((1 << 20) + 512, None, TooLargeError), (512, 1024, BrokenOffError)],
)
def test_an_image_whose_data_were_refused_waits_for_others(
    place: Place, size: int, length: int | None, error: type[Exception]
) -> None:
    with pytest.raises(error):
        place.receive(b"\0" * size, length)
    assert (place.row()["status"], place.row()["source"]) == ("queued", "")
    assert image_store.entries(place.store.home) == []
    place.receive(b"\0" * 512)
    assert place.row()["status"] == "active"


@pytest.mark.parametrize("staged", [False, True])
def test_a_ledger_that_is_busy_for_a_moment_ends_no_upload(
    place: Place, monkeypatch: pytest.MonkeyPatch, staged: bool
) -> None:
    """Its sender would send all of it again."""
    monkeypatch.setattr(image_store, "REPORT_BYTES", 1)
    monkeypatch.setattr(image_store, "CHUNK", 512)
    opened: list[bool] = []

    @contextlib.contextmanager
    def calls() -> t.Iterator[Call]:
        opened.append(True)
        if len(opened) in (2, 4):
            raise BusyError("another run has held the ledger for 30 s; wait for it to finish and run again")
        with place.call() as call:
            yield call

    image_data.receive(calls, place.row(), io.BytesIO(b"\0" * 2048), 2048, place.store, staged=staged)
    assert len(opened) == 6 and place.row()["size"] == 2048
    assert place.row()["status"] == ("uploading" if staged else "active")


def test_staged_data_are_looked_at_when_they_are_imported(place: Place) -> None:
    with pytest.raises(ConflictError, match="queued to importing"):
        image_data.import_staged(place.call, place.row(), {}, place.store)
    place.receive(b"QFI\xfb" + b"\0" * 508, staged=True)  # no raw disk
    image_data.import_staged(place.call, place.row(), {"method": "first"}, place.store)
    assert place.row()["status"] == "queued" and place.row()["fault"]
    place.receive(b"\0" * 512, staged=True)
    assert place.row()["status"] == "uploading"
    image_data.import_staged(place.call, place.row(), {"method": "second"}, place.store)
    assert place.row()["status"] == "active"
    with reading(place.engine) as connection:
        ends = {task["input"]["import_req"]["method"]: task["status"] for task in image_tasks(connection)}
    assert ends == {"first": "failure", "second": "success"}
