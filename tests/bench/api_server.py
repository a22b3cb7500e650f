"""The API under gunicorn, one worker on one core, and beside it in the same worker bare Flask routes to measure it by.

`python -m tests.bench.api_server HOME PORT CORE`
"""

from __future__ import annotations

import json
import os
import pathlib
import sqlite3
import sys
import threading
import typing as t
import uuid

from flask import Flask, request
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from api.server import Server
from api.settings import Settings

ROW = "INSERT INTO server (id, name, body) VALUES (?, ?, ?)"


def bare(home: pathlib.Path) -> Flask:
    """POST /insert writes one row of what was sent; GET /list serves what lies in list.json, made anew each time."""
    app = Flask(__name__)
    local = threading.local()
    listed: list[t.Any] = []

    def connection() -> sqlite3.Connection:
        if not hasattr(local, "connection"):
            local.connection = sqlite3.connect(home / "bare.sqlite", timeout=30, isolation_level=None)
            local.connection.execute("PRAGMA synchronous=NORMAL")
        return t.cast(sqlite3.Connection, local.connection)

    @app.post("/insert")
    def insert() -> tuple[dict[str, t.Any], int]:
        body = request.get_json()
        server_id = str(uuid.uuid4())
        with connection() as unit:
            unit.execute(ROW, (server_id, body["server"]["name"], json.dumps(body)))
        return {"server": {"id": server_id}}, 202

    @app.get("/list")
    def show() -> dict[str, t.Any]:
        if not listed:
            listed.append(json.loads((home / "list.json").read_text()))
        return t.cast("dict[str, t.Any]", listed[0])

    return app


class BenchServer(Server):
    def __init__(self, home: pathlib.Path, port: int) -> None:
        self._home = home
        super().__init__(Settings(home=str(home)), f"127.0.0.1:{port}", ["openstack.compute"], workers=1, threads=4)

    def load(self) -> t.Any:
        return DispatcherMiddleware(super().load(), {"/bare": bare(self._home)})


def main() -> None:
    home, port, core = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    os.sched_setaffinity(0, {core})
    with sqlite3.connect(home / "bare.sqlite") as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE IF NOT EXISTS server (id TEXT PRIMARY KEY, name TEXT, body TEXT)")
    sys.argv = sys.argv[:1]  # gunicorn's own
    BenchServer(home, port).run()


if __name__ == "__main__":
    main()
