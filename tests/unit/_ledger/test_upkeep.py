# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backup, restore, export, import and migrations of a ledger with something of everything in it."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import pathlib
import re
import shutil
import sqlite3
import stat
import threading
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import archive, copies, engine, made, tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import (
    HEAD,
    inserted_id,
    move_to_revision,
    open_ledger,
    reading,
    transaction,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.made import revision_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.revisions import FORMER, REVISIONS
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.text import lines_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import operation_of, run_operation
from tests.support.former import make_former
from tests.support.patience import GENEROUS
from tests.support.rows import DEMO, add_network, add_project, add_vif, an_instance

pytestmark = pytest.mark.both_databases

OLDER = FORMER[0]


def fill(engine: sa.Engine, name: str = "web") -> None:
    """Record a network, a group, a user and an instance; give out an id and take it back."""
    with transaction(engine) as connection:
        add_network(connection, cidr="10.0.0.0/30", dns=["192.0.2.1"])
        connection.execute(sa.update(tables.fixed_ip).values(released_at=0))
        user = {"id": "u" * 32, "name": "ann", "password_hash": "$6$salt$hash", "created_at": 1, "enabled": False}
        connection.execute(sa.insert(tables.tables_identity.user).values(**user))
        said = {"image": {"name": "ämi", "kernel": None}, "metadata": {"ключ": 'va"lue\n'}, "fault": None}
        instance = an_instance(name, **said)
        connection.execute(sa.insert(tables.instance).values(**instance))
        gone = {**instance, "uuid": str(uuid.uuid4()), "name": "gone"}
        number = inserted_id(connection.execute(sa.insert(tables.instance).values(**gone)))
        connection.execute(sa.delete(tables.instance).where(tables.instance.c.id == number))


def dump(engine: sa.Engine) -> list[str]:
    with reading(engine) as connection:
        return list(lines_of(connection))


def keep(url: str, home: pathlib.Path, operation: str, check_mode: bool = False, **params: t.Any) -> dict[str, t.Any]:
    operation_params = {"operation": operation, "force": False, "keep": 14, "file": None, "revision": None, **params}
    return run_operation(operation_of("ledger"), {**operation_params, "ledger_url": url, "home": str(home)}, check_mode)


@pytest.fixture
def kept(tmp_path: pathlib.Path, ledger_url: str) -> pathlib.Path:
    """The home in which copies of the ledger at `ledger_url` are kept."""
    if ledger_url.startswith("sqlite"):
        return pathlib.Path(ledger_url.removeprefix("sqlite:///")).parent
    return tmp_path


@pytest.mark.parametrize("operation", ["backup", "export"])
def test_what_was_copied_comes_back_whole(
    operation: str, ledger: sa.Engine, ledger_url: str, kept: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    fill(ledger)
    before = dump(ledger)
    copy = tmp_path / "copy"
    assert keep(ledger_url, kept, operation, file=str(copy))["revision"] == HEAD
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with transaction(ledger) as connection:
        connection.execute(sa.delete(tables.fixed_ip))
        connection.execute(sa.update(tables.instance).values(name="renamed"))
    restored = keep(ledger_url, kept, "restore", file=str(copy), force=True)
    assert dump(ledger) == before
    # what was lost by it was kept, and comes back as well
    keep(ledger_url, kept, "restore", file=restored["copy"], force=True)
    assert '"renamed"' in "\n".join(dump(ledger))
    assert "10.0.0.0/30" in "\n".join(dump(ledger))
    assert len(dump(ledger)) == len(before) - 4
    # an id that was given once is not given again
    with transaction(ledger) as connection:
        row = connection.execute(sa.select(tables.instance)).mappings().one()
        again = {**row, "uuid": str(uuid.uuid4()), "name": "next"}
        del again["id"]
        assert inserted_id(connection.execute(sa.insert(tables.instance).values(**again))) == row["id"] + 2


def test_a_backup_is_whole_while_others_write(
    ledger: sa.Engine, ledger_url: str, kept: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Each transaction of the writer leaves its number in three tables; a copy has one transaction's numbers."""
    fill(ledger)
    last, stop = [0], threading.Event()

    def write() -> None:
        number = last[0] + 1
        project = {"id": f"{number:032x}", "name": f"p{number}", "created_at": 0, "description": "x" * 255}
        with transaction(ledger) as connection:
            connection.execute(sa.insert(tables.project).values(**project))
            connection.execute(sa.update(tables.fixed_ip).values(released_at=number))
            connection.execute(sa.update(tables.instance).values(updated_at=number))
        last[0] = number

    def keep_writing() -> None:
        while not stop.is_set():
            write()

    write()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        writer, overtaken, deadline = pool.submit(keep_writing), 0, time.monotonic() + GENEROUS
        try:
            while overtaken < 3 and time.monotonic() < deadline and not writer.done():
                earliest, copy = last[0], tmp_path / "copy"
                keep(ledger_url, kept, "backup", file=str(copy))
                overtaken += last[0] > earliest + 1
                latest = last[0] + 1
                if not ledger_url.startswith("sqlite"):
                    text, copy = copy, tmp_path / "restored.sqlite"
                    keep(f"sqlite:///{copy}", tmp_path, "restore", file=str(text), force=True)
                with contextlib.closing(sqlite3.connect(copy)) as opened:
                    assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                    assert opened.execute("PRAGMA foreign_key_check").fetchall() == []
                    [(number,)] = opened.execute("SELECT updated_at FROM instance").fetchall()
                    assert opened.execute("SELECT DISTINCT released_at FROM fixed_ip").fetchall() == [(number,)]
                    assert opened.execute("SELECT count(*) - 1 FROM project").fetchall() == [(number,)]
                assert earliest <= number <= latest
        finally:
            stop.set()
        writer.result()
    assert overtaken == 3


def test_a_ledger_moves_to_the_other_database(
    home: pathlib.Path, tmp_path: pathlib.Path, postgresql_ledger: t.Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite = f"sqlite:///{home}/ledger.sqlite"
    engine = open_ledger(url=sqlite)
    with transaction(engine) as connection:
        add_project(connection, "demo", DEMO)
    fill(engine)
    before = dump(engine)
    text = tmp_path / "text"
    keep(sqlite, home, "export", file=str(text))
    assert text.read_text().splitlines() == before
    assert keep(sqlite, home, "export", file=str(text))["changed"] is False
    url = postgresql_ledger()
    monkeypatch.setenv("NOVALITE_HOME", str(tmp_path))
    keep(url, tmp_path, "restore", file=str(text))
    server = open_ledger(url=url)
    assert dump(server) == before
    # and back, into a new file
    back = tmp_path / "back.jsonl"
    keep(url, tmp_path, "backup", file=str(back))
    new = f"sqlite:///{tmp_path}/new.sqlite"
    keep(new, tmp_path, "restore", file=str(back))
    again = open_ledger(url=new)
    assert dump(again) == before
    for opened in (engine, server, again):
        opened.dispose()


def test_a_ledger_that_holds_something_is_replaced_on_request_only(
    ledger: sa.Engine, ledger_url: str, kept: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    fill(ledger)
    copy = str(tmp_path / "copy")
    keep(ledger_url, kept, "backup", file=copy)
    before = dump(ledger)
    with pytest.raises(ConflictError, match=r"not empty.*force"):
        keep(ledger_url, kept, "restore", file=copy)
    assert dump(ledger) == before
    keep(ledger_url, kept, "restore", check_mode=True, file=copy, force=True)
    assert dump(ledger) == before
    assert copies.copies_in(str(kept)) == []


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda text: text.replace(f'"{HEAD}"', '"9999"', 1), r"revision 9999.*upgrade novalite"),
        (lambda text: text[: len(text) // 2].rpartition("\n")[0] + "\n", r"cut off"),
        (lambda text: "# something else\n" + text, r"is not a ledger"),
        (lambda text: text.replace('{"rows"', '{"sows"'), r"line \d+ is not a line of a ledger"),
    ],
)
def test_a_copy_that_is_spoilt_changes_nothing(
    spoil: t.Callable[[str], str],
    message: str,
    ledger: sa.Engine,
    ledger_url: str,
    kept: pathlib.Path,
    tmp_path: pathlib.Path,
) -> None:
    fill(ledger)
    copy = tmp_path / "copy"
    keep(ledger_url, kept, "export", file=str(copy))
    copy.write_text(spoil(copy.read_text()))
    before = dump(ledger)
    with pytest.raises(NovaliteError, match=message):
        keep(ledger_url, kept, "restore", file=str(copy), force=True)
    assert dump(ledger) == before


def test_backups_are_dated_and_the_newest_are_kept(ledger: sa.Engine, ledger_url: str, kept: pathlib.Path) -> None:
    made = [keep(ledger_url, kept, "backup", keep=2)["file"] for _ in range(4)]
    copies.keep_copy(ledger, str(kept), "before-restore", keep=2)
    (kept / copies.DIRECTORY / "ledger-of-mine.sqlite").write_text("")
    keep(ledger_url, kept, "backup", check_mode=True)
    names = [pathlib.Path(path).name for path in copies.copies_in(str(kept))]
    assert len(set(made)) == 4
    assert [name for name in names if "backup" in name] == sorted(pathlib.Path(path).name for path in made)[2:]
    pattern = rf"ledger-\d{{8}}T\d{{6}}Z(\.\d)?-{HEAD}-(backup|before-restore)\.\w+"
    assert all(re.fullmatch(pattern, name) for name in names)
    assert len(names) == 3
    assert (kept / copies.DIRECTORY / "ledger-of-mine.sqlite").exists()


# On its way from the oldest a ledger comes by each of the others, which are begun with in --thorough
COMING_OVER = [
    pytest.param(database, revision, marks=[pytest.mark.thorough] if revision in FORMER[1:-1] else [])
    for database in ("sqlite", "postgresql")
    for revision in FORMER
]


@pytest.mark.parametrize(("ledger_url", "revision"), COMING_OVER, indirect=["ledger_url"])
def test_a_ledger_of_before_the_first_release_comes_over(
    revision: str, ledger: sa.Engine, ledger_url: str, kept: pathlib.Path
) -> None:
    fill(ledger)
    before, text = dump(ledger), str(kept / "text")
    with transaction(ledger) as connection:
        make_former(connection, revision)
    keep(ledger_url, kept, "export", file=text)
    assert keep(ledger_url, kept, "migrate", check_mode=True)["changed"] is True
    info = keep(ledger_url, kept, "info")
    assert (info["revision"], info["newest"], info["copies"]) == (revision, HEAD, [])
    went = keep(ledger_url, kept, "migrate")
    assert (went["before"], went["revision"], went["changed"]) == (revision, HEAD, True)
    assert dump(ledger) == before
    assert keep(ledger_url, kept, "migrate")["changed"] is False
    for file in (text, went["copy"]):
        with transaction(ledger) as connection:
            connection.execute(sa.delete(tables.instance))
        assert keep(ledger_url, kept, "restore", file=file, force=True)["revision"] == revision
        assert dump(ledger) == before
    with pytest.raises(NovaliteError, match=r"'12' is not a revision"):
        keep(ledger_url, kept, "migrate", revision="12")


def test_a_ledger_of_long_before_is_refused_with_the_remedy(
    ledger: sa.Engine, ledger_url: str, kept: pathlib.Path
) -> None:
    with transaction(ledger) as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0012'"))
    ledger.dispose()
    with pytest.raises(NovaliteError, match=rf"revision 0012, .*open it once with the novalite of revision {OLDER}"):
        open_ledger(url=ledger_url)
    (kept / "text").write_text('{"novalite_ledger": 1, "revision": "0012", "numbers": {}}\n')
    with transaction(ledger) as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :head"), {"head": HEAD})
    with pytest.raises(NovaliteError, match=rf"this file holds .* 0012, .*with the novalite of revision {OLDER}"):
        keep(ledger_url, kept, "restore", file=str(kept / "text"), force=True)


def test_a_ledger_goes_forth_and_back(
    ledger: sa.Engine, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a revision of a later release, which there is none of yet."""
    fill(ledger)
    before, later = dump(ledger), f"{int(HEAD) + 1:04}"
    shutil.copytree(engine.MIGRATIONS, tmp_path / "migrations")
    (tmp_path / f"migrations/versions/rev_{later}.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision, down_revision, branch_labels, depends_on = {later!r}, {HEAD!r}, None, None\n"
        "upgrade = lambda: op.add_column('network', sa.Column('later', sa.Text))\n"
        "downgrade = lambda: op.drop_column('network', 'later')\n"
    )
    monkeypatch.setattr(engine, "MIGRATIONS", tmp_path / "migrations")
    for module in (engine, made):
        monkeypatch.setattr(module, "REVISIONS", (HEAD, later))
    for revision, expected in ((later, True), (HEAD, False)):
        with transaction(ledger) as connection:
            move_to_revision(connection, revision)
        with reading(ledger) as connection:
            assert revision_of(connection) == revision
            columns = {column["name"] for column in sa.inspect(connection).get_columns("network")}
            assert ("later" in columns) is expected
    assert dump(ledger) == before


def test_a_ledger_that_is_migrated_is_as_a_new_one(ledger: sa.Engine) -> None:
    def indexes() -> set[tuple[t.Any, ...]]:
        with reading(ledger) as connection:
            inspector = sa.inspect(connection)
            return {
                (table, index["name"], *index["column_names"], *map(str, index.get("dialect_options", {}).values()))
                for table in inspector.get_table_names()
                for index in inspector.get_indexes(table)
            }

    fill(ledger)
    with transaction(ledger) as connection:  # its UUID follows from its name in all revisions
        connection.execute(sa.insert(tables.floating_pool).values(name="public", cidr="", interface="eth0"))
    before, new = dump(ledger), indexes()
    with transaction(ledger) as connection:
        move_to_revision(connection, REVISIONS[0])
    assert indexes() != new
    with transaction(ledger) as connection:
        move_to_revision(connection, HEAD)
    assert indexes() == new and dump(ledger) == before


def test_a_copy_is_kept_before_a_migration_that_nobody_asked_for(
    ledger: sa.Engine, ledger_url: str, kept: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(ledger)
    with transaction(ledger) as connection:
        make_former(connection, OLDER)
    ledger.dispose()
    monkeypatch.setenv("NOVALITE_HOME", str(kept))
    open_ledger(url=ledger_url).dispose()
    open_ledger(url=ledger_url).dispose()
    [copy] = copies.copies_in(str(kept))
    assert f"-{OLDER}-before-{HEAD}." in copy


def test_there_is_nothing_to_copy_before_there_is_a_ledger(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NovaliteError, match=r"there is no ledger at"):
        keep(f"sqlite:///{tmp_path}/ledger.sqlite", tmp_path, "backup")
    assert list(tmp_path.iterdir()) == []


# --- Archive --------------------------------------------------------------------------------------------------------


def test_what_was_deleted_long_ago_leaves_the_ledger_for_a_file(ledger: sa.Engine, tmp_path: pathlib.Path) -> None:
    """With all that goes with an instance; what is there, and what was deleted lately, stays as it is."""
    day, now = 86400, int(time.time())
    uuids = {}
    with transaction(ledger) as connection:
        network = add_network(connection, cidr="10.0.0.0/30")
        for name, deleted, age in (("old", True, 91), ("late", True, 89), ("there", False, 400)):
            row = an_instance(name, updated_at=now - age * day)
            number = inserted_id(connection.execute(sa.insert(tables.instance).values(**row)))
            connection.execute(
                sa.update(tables.instance).where(tables.instance.c.id == number).values(deleted=number * deleted)
            )
            uuids[name] = row["uuid"]
            action = {"action": "create", "request_id": "req-1", "started_at": 1, "details": {}}
            key = connection.execute(
                sa.insert(tables.instance_action).values(instance_uuid=row["uuid"], **action)
            ).inserted_primary_key
            assert key is not None
            event = {"event": "compute_build", "started_at": 1}
            connection.execute(sa.insert(tables.instance_action_event).values(action_id=key[0], **event))
            add_vif(connection, row["uuid"], network["id"], mac=f"fa:16:3e:00:00:{number:02x}")
    before = dump(ledger)
    assert archive.archive(ledger, str(tmp_path), 90, check_mode=True) == (1, None) and dump(ledger) == before
    count, path = archive.archive(ledger, str(tmp_path), 90)
    assert count == 1 and path is not None and stat.S_IMODE(pathlib.Path(path).stat().st_mode) == 0o600
    rows = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    assert sorted(row["table"] for row in rows) == ["instance", "instance_action", "instance_action_event", "vif"]
    assert {row["row"]["uuid"] for row in rows if row["table"] == "instance"} == {uuids["old"]}
    after = dump(ledger)
    assert not any(uuids["old"] in line for line in after)
    assert [line for line in before if uuids["late"] in line or uuids["there"] in line] == [
        line for line in after if uuids["late"] in line or uuids["there"] in line
    ]
    assert len(before) - len(after) == len(rows)
    assert archive.archive(ledger, str(tmp_path), 90) == (0, None)
