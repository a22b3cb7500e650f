# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of images that clients upload, and their ids: two who write one, a deletion that is not recorded, a ledger that
was restored from an older copy."""

from __future__ import annotations

import concurrent.futures
import hashlib
import os
import pathlib
import sqlite3
import time
import types
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import (
    image_files,
    image_states,
    image_store,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import image_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_rebuild import ledger_rebuild
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.api.image.test_image_data import DISK, RAW, made, send

LATER = RAW * 2  # what another one sent meanwhile
IMPORT = {"method": {"name": "glance-direct"}}


def sweep(cloud: Cloud) -> None:
    with transaction(cloud.engine) as connection:
        image_states.sweep(connection, str(cloud.home))


def silent(cloud: Cloud) -> None:
    """Have whoever brings data be taken for dead."""
    cloud.write(sa.update(tables.image).values(updated_at=time.time() - 2 * image_states.SILENT))
    sweep(cloud)


def whole(doors: Doors, number: str) -> bytes:
    """The data of the image, as its checksum says."""
    answer = doors.member.ask("GET", f"/images/{number}/file")
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.data


def upload(doors: Doors, number: str) -> None:
    send(doors.member, number, RAW, 404)


def stage(doors: Doors, number: str) -> None:
    send(doors.member, number, RAW, 404, "stage")


def stage_and_import(doors: Doors, number: str) -> None:
    send(doors.member, number, RAW, where="stage")
    doors.member.post(f"/images/{number}/import", IMPORT, 202)


@pytest.mark.parametrize("later", ["file", "stage"])
@pytest.mark.parametrize(
    ("earlier", "room", "name"),
    [(upload, image_files, "inspected"), (stage, image_store, "receive"), (stage_and_import, image_files, "inspected")],
)
def test_one_who_was_taken_for_dead_harms_no_later_upload(
    cloud: Cloud,
    doors: Doors,
    monkeypatch: pytest.MonkeyPatch,
    earlier: t.Callable[[Doors, str], None],
    room: types.ModuleType,
    name: str,
    later: str,
) -> None:
    """An API's machine stood still, as one does that is moved, while it had the last look at the data."""
    number, look, times = made(doors.member, None), getattr(room, name), []

    def slow(*arguments: t.Any, **options: t.Any) -> t.Any:
        times.append(time.time())
        if len(times) > 1:
            return look(*arguments, **options)
        before = room is image_store and look(*arguments, **options)
        silent(cloud)
        send(doors.member, number, LATER, where=later)
        return before or look(*arguments, **options)

    monkeypatch.setattr(room, name, slow)
    earlier(doors, number)
    if later == "stage":
        doors.member.post(f"/images/{number}/import", IMPORT, 202)
    shown = doors.member.get(f"/images/{number}")
    assert (shown["status"], shown["size"], whole(doors, number)) == ("active", len(LATER), LATER)
    for file in (cloud.home / "images").iterdir():
        os.utime(file, (1, 1))
    sweep(cloud)
    assert os.listdir(cloud.home / "images") == [number]


def test_a_deletion_that_is_not_recorded_takes_no_data(cloud: Cloud, doors: Doors) -> None:
    number = made(doors.member)
    engine = doors.app.extensions["ledger"].engine

    def full(_connection: sa.Connection) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    sa.event.listen(engine, "commit", full)
    try:
        assert doors.member.ask("DELETE", f"/images/{number}").status_code >= 500
    finally:
        sa.event.remove(engine, "commit", full)
    assert whole(doors, number) == RAW
    doors.member.delete(f"/images/{number}", 204)
    assert os.listdir(cloud.home / "images") == []


def test_what_a_restored_ledger_does_not_know_is_kept_and_listed(cloud: Cloud, doors: Doors) -> None:
    """The images were made after the copy; it may be the only one of their data."""
    known, deleted, made_since, staged = (made(doors.member) for _number in range(4))
    directory = cloud.home / "images"
    (directory / staged).rename(directory / f".{staged}.staged")
    part = f".{uuid.uuid4()}.{uuid.uuid4()}.part"
    (directory / part).write_bytes(b"x")
    fetched = "0" * 64  # what the controller has fetched for its hosts, by its checksum
    for name in (fetched, f"{fetched}.lock", f"{fetched}.part.json", f"{uuid.uuid4()}.part.raw"):
        (directory / name).write_bytes(b"x")
    (directory / deleted).rename(directory / "aside")
    doors.member.delete(f"/images/{deleted}", 204)
    (directory / "aside").rename(directory / deleted)  # the process ended before it came to that
    cloud.write(sa.delete(tables.image).where(tables.image.c.id.in_([made_since, staged])))
    for file in directory.iterdir():
        os.utime(file, (1, 1))
    sweep(cloud)
    kept = {known, made_since, f".{staged}.staged"}
    assert set(os.listdir(directory)) == kept
    with transaction(cloud.engine, check_mode=True) as connection:
        asked = {"hosts": [], "silent": [], "partial": True, "home": str(cloud.home)}
        lost = "\n".join(ledger_rebuild(connection, asked)["lost"])
    assert f"{directory}/{made_since}: record it" in lost and f"/.{staged}.staged" in lost and known not in lost


def test_files_are_judged_by_several_at_once(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_views, "KNOWN_STATES", 1)
    files = {tmp_path / str(number): hashlib.sha256(bytes([number])).hexdigest() for number in range(4)}
    for number, path in enumerate(files):
        path.write_bytes(bytes([number]))

    def judge(path: pathlib.Path) -> bool:
        return all(image_views.is_intact(str(path), f"sha256:{files[path]}") for _time in range(2000))

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(judge, [*files, *files]))


def test_an_id_in_upper_case_is_that_of_the_same_image(cloud: Cloud, doors: Doors) -> None:
    """Clients choose ids, and ask for those that they chose."""
    number = str(uuid.uuid4()).upper()
    shown = doors.member.post("/images", {**DISK, "id": number}, 201)
    send(doors.member, number, RAW, where="stage")
    doors.member.post(f"/images/{number}/import", IMPORT, 202)
    doors.member.put(f"/images/{number}/tags/a", None, 204)
    doors.member.post(f"/images/{number}/members", {"member": doors.other}, 200)
    assert doors.stranger.get(f"/images/{number}/members/{doors.other}")["image_id"] == shown["id"]
    assert doors.stranger.ask("GET", f"/images/{number}/file").data == RAW
    assert len(doors.member.get(f"/images/{number}/tasks")["tasks"]) == 1
    for query in (f"id={number}", f"id=in:x,{number}"):
        assert [image["id"] for image in doors.member.get(f"/images?{query}")["images"]] == [shown["id"]]
    with transaction(cloud.engine) as connection:
        assert lookups.image_by_id(connection, number, doors.project)["id"] == shown["id"]
    doors.member.post("/images", {"id": number}, 409)
    doors.member.delete(f"/images/{number}", 204)
    doors.member.get(f"/images/{number}", 404)
