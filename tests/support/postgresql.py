# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A PostgreSQL server of the test run's own: one for all pytest workers, gone when the last of them is.

Run as a script, this file is the server's keeper. Each worker holds a shared lock on one file; the keeper waits for
that lock alone, and the kernel gives it even when the workers were killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
import typing as t

import sqlalchemy as sa

DEBIAN = pathlib.Path("/usr/lib/postgresql")  # <version>/bin, kept out of PATH
PATIENCE = 600  # seconds for the server to start
SETTINGS = {
    "listen_addresses": "",  # a socket in its own directory is the only way in
    "max_connections": "100",
    "shared_buffers": "32MB",
    # these databases outlive no crash of the machine; what a killed *process* leaves does not depend on it
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "on",
}
DURABLE = {"fsync": "on", "full_page_writes": "on"}


class Server:
    """The running server, as one worker sees it."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        url = sa.make_url(self.url("postgres")).set(drivername="postgresql+psycopg")
        self._admin = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)

    def url(self, database: str) -> str:
        """The URL of a database, as a user writes it."""
        return f"postgresql://{_user()[0]}@/{database}?host={self.directory}"

    def create(self, database: str) -> str:
        """Make an empty database and return its URL."""
        self.execute(f'CREATE DATABASE "{database}"')
        return self.url(database)

    def throw_out(self, database: str) -> None:
        """End every connection to a database. What a killed process has begun there ends with it."""
        self.execute(f"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{database}'")

    def execute(self, statement: str) -> None:
        """Run a statement that is about the server as a whole."""
        with self._admin.connect() as connection:
            connection.exec_driver_sql(statement)


@contextlib.contextmanager
def shared_server(run: pathlib.Path, durable: bool = False) -> t.Iterator[Server]:
    """The server of the test run that the directory `run` belongs to; started by who comes first.

    A `durable` one waits for the disk at each commit, as a real one does.

    Raises RuntimeError with what is missing when there is no PostgreSQL, or it does not start.
    """
    users = os.open(run / "postgresql.users", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        fcntl.flock(users, fcntl.LOCK_SH)  # waits while a keeper is stopping its server
        with (run / "postgresql.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            where = run / "postgresql.directory"
            if not where.exists():
                where.write_text(_start(run, durable))
        yield Server(where.read_text())
    finally:
        os.close(users)


def _start(run: pathlib.Path, durable: bool) -> str:
    log = run / "postgresql.log"
    with log.open("w") as errors:
        keeper = subprocess.Popen(
            [sys.executable, __file__, str(run), *(["durable"] if durable else [])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert keeper.stdout is not None
    with keeper.stdout as answer:
        directory = answer.readline().strip()
    if not directory:
        keeper.wait()
        lines = log.read_text().strip().splitlines() or ["it said nothing"]
        raise RuntimeError(f"the tests' PostgreSQL did not start: {lines[-1]} (all of it: {log})")
    keeper.returncode = 0  # it outlives this process on purpose, so nobody is to wait for it
    return directory


# --- The keeper -----------------------------------------------------------------------------------------------------


def keep(run: pathlib.Path, durable: bool = False) -> None:
    """Start a server, print its directory, and stop it when nobody holds the lock any more."""
    binaries = _binaries()
    name, uid, gid = _user()
    # not below `run`: only root may enter that, and a socket's path has 107 bytes
    directory = tempfile.mkdtemp(prefix="novalite-postgresql-")
    identity: dict[str, t.Any] = {}
    if os.geteuid() == 0:  # as root, PostgreSQL refuses to run
        os.chown(directory, uid, gid)
        identity = {"user": uid, "group": gid, "extra_groups": []}
    data = f"{directory}/data"
    try:
        subprocess.run(
            [binaries / "initdb", "-D", data, "-U", name, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"],
            check=True,
            stdout=sys.stderr,
            cwd=directory,
            **identity,
        )
        settings = {**SETTINGS, "unix_socket_directories": directory, **(DURABLE if durable else {})}
        options = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        server = subprocess.Popen(
            [binaries / "postgres", "-D", data, *options], stdout=sys.stderr, cwd=directory, **identity
        )
        try:
            _wait(server, Server(directory))
            print(directory, flush=True)
            with (run / "postgresql.users").open("r+") as users:
                fcntl.flock(users, fcntl.LOCK_EX)
                (run / "postgresql.directory").unlink(missing_ok=True)
                _stop(server)
                shutil.rmtree(directory)
        finally:
            _stop(server)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _wait(server: subprocess.Popen[bytes], access: Server) -> None:
    deadline = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(sa.exc.OperationalError):
            access.execute("SELECT 1")
            return
        time.sleep(0.05)
    raise RuntimeError(f"no answer from the server within {PATIENCE} s")


def _stop(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        server.send_signal(2)  # "fast": whoever is connected is thrown out
        server.wait()


def _binaries() -> pathlib.Path:
    versions = [path.parent for path in DEBIAN.glob("*/bin/initdb")]
    if versions:
        return max(versions, key=lambda path: float(path.parent.name))
    on_path = shutil.which("initdb")
    if on_path:
        return pathlib.Path(on_path).resolve().parent
    raise SystemExit("PostgreSQL's server is not installed: run tools/bootstrap")


def _user() -> tuple[str, int, int]:
    """Whom the server runs as: this user, or, for root, the one that the package made for it."""
    if os.geteuid() != 0:
        entry = pwd.getpwuid(os.geteuid())
    else:
        try:
            entry = pwd.getpwnam("postgres")
        except KeyError:
            entry = pwd.getpwnam("nobody")
    return entry.pw_name, entry.pw_uid, entry.pw_gid


if __name__ == "__main__":
    keep(pathlib.Path(sys.argv[1]), "durable" in sys.argv[2:])
