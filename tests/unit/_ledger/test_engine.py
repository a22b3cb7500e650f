# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import sqlite3
import stat
import subprocess
import sys
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import BusyError, ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import engine as rooms
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import made, sqlite_engine, tables, text
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from tests.support.beside import CONTEXT
from tests.support.former import make_former
from tests.support.patience import GENEROUS
from tests.unit._ledger.conftest import on_postgresql, on_sqlite

pytestmark = pytest.mark.both_databases
OF_USERS = sqlite_engine.SYNCHRONOUS  # tests/conftest.py has another one, later


def projects(engine: sa.Engine) -> set[str]:
    with transaction(engine) as connection:
        return set(connection.execute(sa.select(tables.project.c.name)).scalars())


def add_project(connection: sa.Connection, name: str) -> None:
    connection.execute(sa.insert(tables.project).values(id=name.ljust(32, "0"), name=name, created_at=0))


def open_and_close(home: str) -> None:
    open_ledger(home).dispose()


def count_up(url: str, times: int) -> None:
    engine = open_ledger(url=url)
    quota = tables.quota
    for _ in range(times):
        with transaction(engine) as connection:
            # PostgreSQL's transactions exclude each other only where they say so
            value = connection.execute(sa.select(quota.c.hard_limit).with_for_update()).scalar_one()
            connection.execute(sa.update(quota).values(hard_limit=value + 1))


def test_a_new_ledger_is_private_durable_and_strict(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setattr(sqlite_engine, "SYNCHRONOUS", OF_USERS)
    engine = open_ledger(str(home))
    with transaction(engine) as connection:
        add_project(connection, "one")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()}
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    engine.dispose()
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert "ledger.sqlite-wal" in modes
    assert set(modes.values()) == {0o600}
    assert pragmas == {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1, "busy_timeout": 30000}


def test_the_revisions_are_those_of_the_migrations() -> None:
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(rooms.MIGRATIONS)).walk_revisions()
    assert tuple(reversed([script.revision for script in scripts])) == rooms.REVISIONS


@pytest.mark.parametrize("module", ["alembic", "sqlalchemy.dialects.postgresql"])
def test_a_current_ledger_opens_without_what_it_does_not_need(home: pathlib.Path, module: str) -> None:
    code = (
        "import sys\n"
        f"import {tables.__name__}\n"
        f"from {rooms.__name__} import open_ledger\n"
        f"open_ledger({str(home)!r})\n"
        f"sys.exit({module!r} in sys.modules)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_the_home_comes_from_the_option_then_the_environment(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOVALITE_HOME", str(tmp_path / "a"))
    monkeypatch.delenv("NOVALITE_LEDGER_URL", raising=False)
    for home, expected in ((None, "a"), (str(tmp_path / "b"), "b")):
        open_ledger(home).dispose()
        assert (tmp_path / expected / "ledger.sqlite").exists()
    monkeypatch.setenv("NOVALITE_LEDGER_URL", f"sqlite:///{tmp_path}/c/own.sqlite")
    open_ledger().dispose()
    assert (tmp_path / "c" / "own.sqlite").exists()


@on_sqlite
def test_a_newer_ledger_is_refused(ledger: sa.Engine, home: pathlib.Path) -> None:
    with transaction(ledger) as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    for check_mode in (False, True):
        with pytest.raises(NovaliteError, match=r"revision 9999.*upgrade novalite"):
            open_ledger(str(home), check_mode=check_mode)


def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ledger.sqlite"
    path.write_text("something else, and more than a hundred bytes of it" * 10)
    before = path.read_bytes()
    with pytest.raises(NovaliteError, match=r"cannot be used: file is not a database"):
        open_ledger(str(tmp_path))
    assert path.read_bytes() == before


def test_a_home_without_a_parent_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(NovaliteError, match=r"no/where cannot be made, for .*/no does not exist"):
        open_ledger(str(tmp_path / "no" / "where"))
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_is_a_file_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(NovaliteError, match=r"home"):
        open_ledger(str(tmp_path / "home"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become another user")
def test_a_home_of_another_user_is_refused(tmp_path: pathlib.Path) -> None:
    for directory in (tmp_path, *tmp_path.parents[:3]):
        directory.chmod(0o755)
    pid = os.fork()
    if not pid:  # the child ends here, without pytest noticing it
        try:
            os.setuid(65534)
            open_ledger(str(tmp_path))
        except NovaliteError as error:
            os._exit(0 if "is not writable for this user" in str(error) else 2)
        except BaseException:
            os._exit(3)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://root:hunter2@db/nova", "cannot live in mysql"),
        ("nonsense hunter2", "cannot be read"),
        ("sqlite://", "names no file"),
        ("postgresql://novalite:hunter2@127.0.0.1:1/novalite", r"^postgresql.*127\.0\.0\.1:1/novalite cannot be"),
    ],
)
def test_a_url_that_cannot_work_is_refused_without_its_password(url: str, message: str) -> None:
    with pytest.raises(NovaliteError, match=message) as refused:
        open_ledger(url=url)
    assert "hunter2" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_check_mode_without_a_ledger_makes_none(tmp_path: pathlib.Path) -> None:
    engine = open_ledger(str(tmp_path / "home"), check_mode=True)
    with transaction(engine, check_mode=True) as connection:
        add_project(connection, "one")
        assert connection.execute(sa.select(tables.project.c.name)).scalars().all() == ["one"]
    assert projects(engine) == set()
    engine.dispose()
    assert list(tmp_path.iterdir()) == []


@on_sqlite
def test_check_mode_writes_nothing(ledger: sa.Engine, home: pathlib.Path) -> None:
    ledger.dispose()
    before = (home / "ledger.sqlite").read_bytes()
    engine = open_ledger(str(home), check_mode=True)
    with transaction(engine, check_mode=True) as connection:
        add_project(connection, "one")
    assert projects(engine) == {"demo"}
    engine.dispose()
    assert (home / "ledger.sqlite").read_bytes() == before


def test_check_mode_migrates_a_copy_of_an_older_ledger(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "ledger.sqlite"
    with sqlite3.connect(path) as old:
        old.execute("CREATE TABLE keepsake (id INTEGER)")
    old.close()
    before = path.read_bytes()
    engine = open_ledger(str(tmp_path), check_mode=True)
    with transaction(engine, check_mode=True) as connection:
        names = sa.inspect(connection).get_table_names()
    engine.dispose()
    assert {"keepsake", "instance"} <= set(names)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["ledger.sqlite"]


def test_a_ledger_whose_making_fails_is_not_there_and_can_be_made_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_some(connection: sa.Connection) -> None:
        made.make(connection)
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(rooms, "make", make_some)
        with pytest.raises(RuntimeError, match=r"power cut"):
            open_ledger(str(tmp_path))
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as raw:
        assert raw.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    engine = open_ledger(str(tmp_path))
    assert projects(engine) == set()
    engine.dispose()


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(
    ledger: sa.Engine, ledger_url: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make_and_fail(connection: sa.Connection) -> None:
        made.make(connection)
        raise RuntimeError("power cut")

    monkeypatch.setenv("NOVALITE_HOME", str(tmp_path))
    with transaction(ledger) as connection:
        add_project(connection, "one")
        make_former(connection, "0031")
    ledger.dispose()
    with monkeypatch.context() as patch:
        patch.setattr(text, "make", make_and_fail)
        with pytest.raises(RuntimeError, match=r"power cut"):
            open_ledger(url=ledger_url)
    with ledger.connect() as connection:
        assert made.revision_of(connection) == "0031"
    engine = open_ledger(url=ledger_url)
    assert projects(engine) == {"one", *projects(ledger)}
    engine.dispose()


def test_processes_that_open_a_new_ledger_at_once_all_find_it_made(tmp_path: pathlib.Path) -> None:
    workers = [CONTEXT.Process(target=open_and_close, args=(str(tmp_path / "home"),)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    engine = open_ledger(str(tmp_path / "home"))
    with transaction(engine) as connection:
        versions = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalars().all()
    engine.dispose()
    assert versions == [rooms.HEAD]


def test_what_a_transaction_read_cannot_change_before_it_writes(ledger: sa.Engine, ledger_url: str) -> None:
    with transaction(ledger) as connection:
        row = {"project_id": "d" * 32, "resource": "cores", "hard_limit": 0}
        connection.execute(sa.insert(tables.quota).values(**row))
    workers = [CONTEXT.Process(target=count_up, args=(ledger_url, 50)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 3
    with transaction(ledger) as connection:
        assert connection.execute(sa.select(tables.quota.c.hard_limit)).scalar_one() == 150


def test_an_error_undoes_the_whole_transaction(ledger: sa.Engine) -> None:
    with pytest.raises(ZeroDivisionError), transaction(ledger) as connection:
        add_project(connection, "one")
        raise ZeroDivisionError
    assert projects(ledger) == {"demo"}


def test_a_killed_process_leaves_nothing_behind(ledger: sa.Engine, ledger_url: str) -> None:
    code = (
        "import sys, time\n"
        f"from {rooms.__name__} import open_ledger, transaction\n"
        f"engine = open_ledger(url={ledger_url!r})\n"
        "with transaction(engine) as connection:\n"
        "    connection.exec_driver_sql(\"INSERT INTO project (id, name, created_at) VALUES ('1', 'killed', 0)\")\n"
        "    print('written', flush=True)\n"
        "    time.sleep(60)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=env) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "written\n"
        child.send_signal(signal.SIGKILL)
    assert projects(ledger) == {"demo"}


def test_a_ledger_that_stays_locked_is_said_to_be(
    ledger: sa.Engine, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "BUSY_TIMEOUT", 0.05)
    other = open_ledger(url=ledger_url)
    with transaction(ledger) as connection:
        add_project(connection, "one")
        held = pytest.raises(BusyError, match=r"another run has held the ledger for 0\.05 s")
        with held, transaction(other) as second:
            add_project(second, "one")
    other.dispose()


def lock_the_other_way(url: str, first: str, second: str, ready: t.Any, answers: t.Any) -> None:
    engine = open_ledger(url=url)
    table = tables.project
    try:
        with transaction(engine) as connection:
            connection.execute(sa.select(table).where(table.c.name == first).with_for_update())
            ready.wait(GENEROUS)
            connection.execute(sa.select(table).where(table.c.name == second).with_for_update())
        answers.put("")
    except ConflictError as error:
        answers.put(str(error))


@on_postgresql
def test_a_deadlock_is_a_conflict_for_one_of_the_two(ledger: sa.Engine, ledger_url: str) -> None:
    with transaction(ledger) as connection:
        add_project(connection, "one")
    ready, answers = CONTEXT.Barrier(2), CONTEXT.Queue()
    pairs = (("demo", "one"), ("one", "demo"))
    workers = [CONTEXT.Process(target=lock_the_other_way, args=(ledger_url, *pair, ready, answers)) for pair in pairs]
    for worker in workers:
        worker.start()
    messages = sorted(answers.get(timeout=GENEROUS) for _worker in workers)
    for worker in workers:
        worker.join()
    assert messages == ["", "another run changed the same records meanwhile (deadlock detected); run again"]


def test_a_constraint_that_another_run_won_is_a_conflict(ledger: sa.Engine) -> None:
    lost = pytest.raises(ConflictError, match=r"UNIQUE constraint failed: project\.name|uq_project_name")
    with lost, transaction(ledger) as connection:
        connection.execute(sa.insert(tables.project).values(id="e" * 32, name="demo", created_at=0))


def test_a_reader_does_not_wait_for_a_writer(
    ledger: sa.Engine, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "BUSY_TIMEOUT", 0.05)
    other = open_ledger(url=ledger_url)
    with transaction(ledger) as connection:
        add_project(connection, "one")
        with reading(other) as reader:
            assert reader.execute(sa.select(tables.project.c.name)).scalars().all() == ["demo"]
    other.dispose()
