# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files that copies of the ledger take the place of, and dated copies that make room for others: no other file goes."""

from __future__ import annotations

import pathlib
import shutil
import sqlite3
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import copies
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from tests.support.rows import DEMO, add_host, add_project
from tests.unit._ledger.test_upkeep import dump, fill
from tests.unit._ledger.test_upkeep import keep as operate

OWN = ("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "ledger.sqlite.lock", "ledger.known", "ledger.clock")
SECRETS = ("credentials.secret", "metadata.secret", "backup.secret")
WRITING = ("backup", "export")


@pytest.fixture
def home(migrated: pathlib.Path, tmp_path: pathlib.Path) -> t.Iterator[pathlib.Path]:
    """The home of a ledger in use, with its secrets."""
    shutil.copytree(migrated, tmp_path / "home")
    engine = open_ledger(str(tmp_path / "home"))
    with transaction(engine) as connection:
        add_project(connection, "demo", DEMO)
    fill(engine)
    for name in SECRETS[:2]:
        (tmp_path / "home" / name).write_text("secret")
    engine.dispose()
    other = sqlite3.connect(tmp_path / "home" / "ledger.sqlite")  # so that the files of the write-ahead log stay
    other.execute("SELECT * FROM project").fetchall()
    yield tmp_path / "home"
    other.close()


def keep(home: pathlib.Path, operation: str, **params: t.Any) -> dict[str, t.Any]:
    return operate("", home, operation, **params)


def contents(directory: pathlib.Path) -> dict[str, bytes]:
    """The files there but for those that any look at a ledger writes."""
    passing = (".sqlite-wal", ".sqlite-shm", ".clock")
    files = (path for path in directory.rglob("*") if path.is_file() and not path.name.endswith(passing))
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


@pytest.mark.parametrize("operation", WRITING)
@pytest.mark.parametrize("name", [*OWN, *SECRETS])
@pytest.mark.parametrize("check_mode", [False, True])
def test_a_copy_takes_the_place_of_no_file_of_the_homes(
    home: pathlib.Path, operation: str, name: str, check_mode: bool
) -> None:
    (home.parent / "link").symlink_to(home)
    before = contents(home)
    for path in (home / name, home.parent / "link" / name, f"{home}/../home/./{name}"):
        with pytest.raises(ConflictError, match=r"is one of novalite's own files, and no place for a copy"):
            keep(home, operation, file=str(path), check_mode=check_mode)
    assert contents(home) == before


@pytest.mark.parametrize("operation", WRITING)
def test_a_copy_takes_the_place_of_no_link_to_the_ledger(home: pathlib.Path, operation: str) -> None:
    linked = home.parent / "linked"
    linked.mkdir()
    (linked / "ledger.sqlite").symlink_to(home / "ledger.sqlite")
    with pytest.raises(ConflictError, match="is one of novalite's own files"):
        keep(linked, operation, file=str(linked / "ledger.sqlite"))
    assert (linked / "ledger.sqlite").is_symlink()


def others(path: pathlib.Path) -> None:
    path.mkdir()
    (path / "hosts.ini").write_text("[compute]\nhv1\n")
    (path / "numbers.json").write_text("[1, 2]\n")
    (path / "bytes").write_bytes(bytes(range(256)))
    (path / "cookies.sqlite").touch()
    with sqlite3.connect(path / "cookies.sqlite") as connection:
        connection.execute("CREATE TABLE instance (id INTEGER)")
    connection.close()


@pytest.mark.parametrize("operation", WRITING)
def test_a_copy_takes_the_place_of_nothing_but_copies(home: pathlib.Path, operation: str) -> None:
    others(home.parent / "others")
    before = contents(home.parent / "others")
    for name in before:
        with pytest.raises(ConflictError, match=r"is there, and is not a copy of a ledger: name another file"):
            keep(home, operation, file=str(home.parent / "others" / name))
    with pytest.raises(ConflictError, match="is there, and is not a copy of a ledger"):  # root would replace the device
        keep(home, operation, file="/dev/null", check_mode=True)
    assert contents(home.parent / "others") == before


def test_a_copy_takes_the_place_of_an_earlier_one_of_either_kind(home: pathlib.Path, tmp_path: pathlib.Path) -> None:
    engine = open_ledger(str(home))
    for former in WRITING:
        for operation in WRITING:
            (tmp_path / "copy").unlink(missing_ok=True)
            (tmp_path / "copy").touch()
            keep(home, former, file=str(tmp_path / "copy"))
            keep(home, operation, file=str(tmp_path / "copy"))
            keep(tmp_path / f"{former}-{operation}", "restore", file=str(tmp_path / "copy"))
            restored = open_ledger(str(tmp_path / f"{former}-{operation}"))
            assert dump(restored) == dump(engine)
            restored.dispose()
    engine.dispose()


@pytest.mark.parametrize("number", [0, -1, -2, -100])
def test_a_backup_keeps_at_least_itself(home: pathlib.Path, number: int) -> None:
    for _time in range(3):
        keep(home, "backup")
    before = copies.copies_in(str(home))
    with pytest.raises(NovaliteError, match=rf"keep \(keep_backups\) is {number}: give 1 or more"):
        keep(home, "backup", keep=number)
    assert copies.copies_in(str(home)) == before and len(before) == 3


@pytest.mark.parametrize("days", [-1, 36501, 10**20])
def test_what_is_archived_was_deleted_at_some_time(home: pathlib.Path, days: int) -> None:
    with pytest.raises(NovaliteError, match=rf"archive_days is {days}: give a number of days from 0 to"):
        keep(home, "backup", archive_days=days)
    assert copies.copies_in(str(home)) == []


def test_the_copy_that_is_restored_is_kept(home: pathlib.Path, tmp_path: pathlib.Path) -> None:
    engine = open_ledger(str(home))
    with transaction(engine) as connection:
        add_host(connection)
    keep(home, "backup", file=str(tmp_path / "copy"))
    before = [line for line in dump(engine) if '"hv1"' in line]
    for _time in range(copies.KEPT_COPIES):
        keep(home, "restore", file=str(tmp_path / "copy"), force=True)
    oldest = copies.copies_in(str(home))[0]
    keep(home, "restore", file=oldest, force=True)
    assert oldest in copies.copies_in(str(home))
    assert [line for line in dump(engine) if '"hv1"' in line] == before
    engine.dispose()
