# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ledgers on a full file system, which can be looked at, and damaged ones, which are noticed."""

from __future__ import annotations

import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import typing as t

import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from novalite_api.cli import main

from ansible_collections.novalite.cloud.plugins import modules as plugins_modules
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import copies, sqlite_files, tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.sqlite_engine import check_whole
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.host_marks import open_marks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.ledger import ledger as operation
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.server_info import server_info
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import operation_of, run_operation
from tests.support.cloud import checked
from tests.support.rows import DEMO, a_flavor, add_instance, add_project, insert

NAME = "ledger.sqlite"
INFO = {"name": None, "uuids": None, "project": None, "host": None}


def _made(home: pathlib.Path) -> None:
    engine = open_ledger(str(home))
    with transaction(engine) as connection:
        add_project(connection, "demo", DEMO)
        insert(connection, tables.flavor, **a_flavor("m1.tiny"))
        for number in range(40):
            add_instance(connection, f"web-{number}")
    engine.dispose()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The file of a ledger with some servers, which no process has open."""
    home = tmp_path_factory.mktemp("whole")
    _made(home)
    assert not (home / f"{NAME}-wal").exists()
    return home / NAME


@pytest.fixture
def full(tmp_path: pathlib.Path, whole: pathlib.Path) -> t.Iterator[pathlib.Path]:
    """A home on a file system without any room."""
    if os.geteuid():
        pytest.skip("needs root, to mount a file system")
    home = tmp_path / "full"
    home.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", home], check=False)
    if mounted.returncode:
        pytest.skip("this machine mounts nothing")
    try:
        shutil.copy(whole, home / NAME)
        (home / "filling").write_bytes(b"")
        with open(home / "filling", "wb", buffering=0) as filling:
            try:
                while filling.write(b"x" * 4096):
                    pass
            except OSError:
                pass
        yield home
    finally:
        subprocess.run(["umount", "-l", home], check=True)


def _servers(connection: sa.Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(tables.instance)).scalar_one()


def _rename(connection: sa.Connection, name: str) -> None:
    connection.execute(sa.update(tables.instance).values(hostname=name))


def test_a_full_file_system_keeps_nobody_from_looking(full: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for check_mode in (False, True):
        engine = open_ledger(str(full), check_mode=check_mode)
        for look in (reading, transaction):
            with look(engine) as connection:
                assert _servers(connection) == 40
        check_whole(engine)  # as the API does at its start
        engine.dispose()
    marks = open_marks(str(full), None)  # of trips to hosts that change nothing there
    assert marks is not None and marks.begin("hv1", leaves=False) is not None
    marks.close()
    monkeypatch.setenv("NOVALITE_HOME", str(full))
    listed = CliRunner().invoke(main, ["list", "--all-projects"])
    assert listed.exit_code == 0 and "web-39" in listed.output, listed.output


def test_who_writes_on_a_full_file_system_is_told_so(full: pathlib.Path) -> None:
    engine = open_ledger(str(full))
    with (
        pytest.raises(NovaliteError, match=rf"no space is left on the file system of {full}/{NAME}: make room"),
        transaction(engine) as connection,
    ):
        _rename(connection, "one-more")
    os.unlink(full / "filling")
    with transaction(engine) as connection:  # the same process goes on, with what is there now
        _rename(connection, "one-more")
    with reading(engine) as connection:
        assert connection.execute(sa.select(tables.instance.c.hostname)).scalars().all() == ["one-more"] * 40
    engine.dispose()


@pytest.mark.parametrize("seed", range(12))
def test_damage_is_called_damage_or_does_no_harm(tmp_path: pathlib.Path, whole: pathlib.Path, seed: int) -> None:
    """64 random bytes in a random place, as a broken disk leaves them."""
    path = tmp_path / NAME
    content = bytearray(whole.read_bytes())
    chance = random.Random(seed)
    at = 0 if seed == 0 else chance.randrange(len(content) - 64)
    content[at : at + 64] = chance.randbytes(64)
    path.write_bytes(content)
    what = sqlite_files.damage(str(path))
    assert what is None or (str(path) in what and "ledger_restore.yml" in what)

    def used() -> None:
        engine = open_ledger(str(tmp_path))
        try:
            run_operation(server_info, {"home": str(tmp_path), "ledger_url": None, **INFO}, True)
            check_whole(engine)
        finally:
            engine.dispose()

    try:
        used()
    except NovaliteError as error:
        assert "ledger_restore.yml" in str(error) or "ledger.known" in str(error)
    else:
        assert what is None


# --- Each way of only looking, and each trouble of a file -----------------------------------------------------------

INFO_MODULES: dict[str, dict[str, t.Any]] = {
    "capacity_info": {"flavor": "m1.tiny"},
    "cloud_info": {},
    "reachability": {"source": "web-1", "destination": "web-2", "protocol": "tcp", "port": 22},
    "reserve_info": {},
    "security_group_info": {},
    "server_info": {},
}
COMMANDS = {
    "list": ["list", "--all-projects"],
    "list of a host": ["list", "--host", "hv1", "--output", "json"],
    "show": ["show", "web-7"],
    "hosts": ["hosts"],
}


def _by_module(name: str, home: pathlib.Path) -> str:
    params = {**checked(name, **INFO_MODULES[name]), "home": str(home), "ledger_url": None}
    return json.dumps(run_operation(operation_of(name), params, False), default=str)


def _by_command(name: str, home: pathlib.Path) -> str:
    done = CliRunner(env={"NOVALITE_HOME": str(home), "NOVALITE_PROJECT": "demo"}).invoke(main, COMMANDS[name])
    if done.exit_code:
        raise NovaliteError(done.output)
    return done.output


LOOKS: dict[str, tuple[t.Callable[[str, pathlib.Path], str], str]] = {
    **{f"module {name}": (_by_module, name) for name in INFO_MODULES},
    **{f"novalite {name}": (_by_command, name) for name in COMMANDS},
}


def _pages(path: pathlib.Path, first: int) -> None:
    """Remains of all pages from this one on, on a disk that lost its mind."""
    with path.open("r+b") as file:
        for start in range(first * 4096, path.stat().st_size, 4096):
            file.seek(start)
            file.write(b"\xa5" * 512)


DAMAGES: dict[str, t.Callable[[pathlib.Path], object]] = {
    "all pages but the first": lambda path: _pages(path, 1),
    "the first page": lambda path: path.write_bytes(b"\0" * 4096 + path.read_bytes()[4096:]),
    "cut in its middle": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut within its first page": lambda path: os.truncate(path, 1000),
    "a page": lambda path: path.write_text("<!doctype html>\n<title>Not found</title>\n" * 200),
    "random": lambda path: path.write_bytes(random.Random(1).randbytes(path.stat().st_size)),
}


def test_each_module_that_looks_at_the_ledger_is_tried() -> None:
    (modules,) = plugins_modules.__path__
    named = {path.stem for path in pathlib.Path(modules).glob("*_info.py")}
    assert named - {"domain_info"} <= INFO_MODULES.keys()  # which asks a host


@pytest.mark.parametrize("look", LOOKS)
def test_any_look_at_a_full_file_system_sees_what_is_there(
    tmp_path: pathlib.Path, whole: pathlib.Path, full: pathlib.Path, look: str
) -> None:
    ask, name = LOOKS[look]
    (roomy := tmp_path / "roomy").mkdir()
    shutil.copy(whole, roomy)
    assert ask(name, full).replace(str(full), "HOME") == ask(name, roomy).replace(str(roomy), "HOME")


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("look", LOOKS)
def test_any_look_at_a_damaged_ledger_says_so(
    tmp_path: pathlib.Path, whole: pathlib.Path, look: str, damage: str
) -> None:
    path = pathlib.Path(shutil.copy(whole, tmp_path))
    DAMAGES[damage](path)
    ask, name = LOOKS[look]
    with pytest.raises(NovaliteError) as caught:
        ask(name, tmp_path)
    assert f"the file {path} is damaged" in str(caught.value) and "ledger_restore.yml" in str(caught.value)


def test_no_backup_is_kept_of_a_damaged_ledger(tmp_path: pathlib.Path, whole: pathlib.Path) -> None:
    path = tmp_path / NAME
    shutil.copy(whole, path)
    params = {"home": str(tmp_path), "ledger_url": None, "operation": "backup", "file": None, "keep": 1}
    kept = operation(params, False)["file"]
    with sqlite3.connect(path) as raw:  # the table's root page becomes another one's
        (page, size) = raw.execute(
            "SELECT rootpage, page_size FROM sqlite_master, pragma_page_size WHERE name='vif'"
        ).fetchone()
    raw.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(range(64)))
    with pytest.raises(NovaliteError, match=r"damaged.*ledger_restore\.yml"):
        operation(params, False)
    assert os.listdir(tmp_path / copies.DIRECTORY) == [os.path.basename(kept)]
