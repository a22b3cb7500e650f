# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Consoles without a browser: whom a token lets in, and what a hostile host or a hostile page can do: nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import typing as t

import pytest
import sqlalchemy as sa
from werkzeug.serving import make_server
from wsproto.events import BytesMessage, TextMessage

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_identity import console_token
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import console_tokens
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.tokens import revoke_token
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.token_holders import token_hash
from api.dashboard import session
from api.work import consoles, websocket
from tests.api import seeds
from tests.api.dashboard.consoles import WebSocket
from tests.api.dashboard.visitor import Visitor
from tests.api.web.test_reverse_proxy import TOKENS, ask, home, login, serving  # noqa: F401 - a fixture
from tests.support.cloud import Cloud, sqlite
from tests.support.patience import GENEROUS

Open = t.Callable[..., WebSocket]


class Door:
    """The application on a port, and a console whose host is a command of ours."""

    def __init__(self, api: seeds.Api, url: str, directory: pathlib.Path) -> None:
        self.api, self.url = api, url
        (directory / "ssh_config").write_text("# hv1 is this machine\n")
        self.server = api.instance("demo", "web", host="hv1", vm_state="active")
        self.asked: list[tuple[str, ...]] = []
        self.command = ["cat"]
        self.holder = api.token("demo")
        self.opened: list[WebSocket] = []

    def relay(self, host: str, console_type: str, uuid: str, path: str, local: bool) -> list[str]:
        self.asked.append((host, console_type, uuid))
        assert local
        return self.command

    def token(self, holder: str | None = None) -> str:
        client = self.api.app.test_client()
        headers = {"X-Auth-Token": holder or self.holder, "OpenStack-API-Version": "compute 2.96"}
        body = {"remote_console": {"protocol": "serial", "type": "serial"}}
        answer = client.post(f"/compute/v2.1/servers/{self.server}/remote-consoles", json=body, headers=headers)
        return str(answer.get_json()["remote_console"]["url"]).partition("#")[2]

    def open(self, token: str | None = None, **options: t.Any) -> WebSocket:
        self.opened.append(WebSocket(self.url, token or self.token(), **options))
        return self.opened[-1]

    def set(self, **settings: t.Any) -> None:
        of_app = self.api.app.extensions
        of_app["settings"] = dataclasses.replace(of_app["settings"], **settings)


@pytest.fixture
def door(api: seeds.Api, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Door]:
    server = make_server("127.0.0.1", 0, api.app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    opened = Door(api, f"http://127.0.0.1:{server.server_port}", pathlib.Path(api.app.extensions["settings"].home))
    monkeypatch.setattr(consoles, "RELAY", opened.relay)
    yield opened
    for each in opened.opened:
        each.socket.close()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_token_opens_the_console_of_its_server_once(door: Door) -> None:
    token = door.token()
    opened = door.open(token)
    opened.send(BytesMessage(data=b"hello"))
    assert opened.read(5) == b"hello" and door.asked == [("hv1", "serial", door.server)]
    assert door.open(token).refused == 403
    with door.api.engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(console_token)).scalar() == 0


def test_of_two_at_once_one_gets_in(door: Door) -> None:
    token = door.token()
    refused: list[int | None] = []
    threads = [threading.Thread(target=lambda: refused.append(door.open(token).refused)) for _number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, refused)) == ["403"] * 5 + ["None"]


def test_the_ledger_keeps_no_token(door: Door) -> None:
    token = door.token()
    with door.api.engine.connect() as connection:
        (kept,) = connection.execute(sa.select(console_token)).all()
    assert kept.hash == token_hash(token) and token not in map(str, kept)


@pytest.mark.parametrize("token", ["x", "A" * 43, "nl" + "A" * 200])
def test_guesses_are_refused(door: Door, token: str) -> None:
    door.token()
    assert door.open(token).refused == 403 and door.asked == []


def test_a_token_ends_after_ten_minutes(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    ages = {599: None, 601: 403}
    for age, refused in ages.items():
        token = door.token()
        with transaction(door.api.engine) as connection:
            connection.execute(sa.update(console_token).values(expires_at=console_token.c.expires_at - age))
        assert door.open(token).refused == refused
    assert console_tokens.LIFETIME == 600


def test_a_token_ends_with_what_it_was_made_by(door: Door) -> None:
    """The caller logs out, loses the role, or the server goes to nobody."""
    token = door.token()
    with transaction(door.api.engine) as connection:
        revoke_token(connection, door.holder)
    assert door.open(token).refused == 403
    other = door.api.token("demo")
    token = door.token(other)
    with transaction(door.api.engine) as connection:
        connection.execute(sa.update(tables.instance).values(deleted=tables.instance.c.id))
    assert door.open(token).refused == 403 and door.asked == []


def test_the_browser_of_another_user_is_refused(door: Door) -> None:
    cookie = f"{session.COOKIE}={door.api.token('alt')}"
    assert door.open(cookie=cookie).refused == 403
    own = f"{session.COOKIE}={door.api.token('demo')}"
    assert door.open(cookie=own).refused is None


def test_the_openstack_command_shows_addresses_that_open(door: Door) -> None:
    project, _role = seeds.USERS["demo"]
    login = {"AUTH_URL": f"{door.url}/identity/v3", "USERNAME": "demo", "PASSWORD": seeds.password("demo")}
    login |= {"PROJECT_NAME": project, "USER_DOMAIN_ID": "default", "PROJECT_DOMAIN_ID": "default"}
    environment = {**os.environ, **{f"OS_{key}": value for key, value in login.items()}}

    def show(version: str, option: str) -> subprocess.CompletedProcess[str]:
        words = ["--os-compute-api-version", version, "console", "url", "show", option, door.server]
        command = [os.path.join(os.path.dirname(sys.executable), "openstack"), *words, "-f", "json"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=GENEROUS)

    for version, option, kind in (("2.96", "--serial", "serial"), ("2.1", "--novnc", "novnc")):
        shown = json.loads(show(version, option).stdout)
        page, _sign, token = shown["url"].partition("#")
        assert (shown["type"], page) == (kind, f"{door.url}/console/{kind}")
        opened = door.open(token)
        opened.send(BytesMessage(data=b"typed"))
        assert opened.read(5) == b"typed" and door.asked[-1] == ("hv1", kind, door.server)
    refused = show("2.96", "--spice")
    assert refused.returncode != 0 and "Unavailable console type spice-html5" in refused.stderr


def test_the_native_api_opens_consoles_as_compute_does(door: Door, client_as: t.Callable[[str], t.Any]) -> None:
    path = f"/v1/instances/{door.server}/console"
    shown = client_as("demo").post(path, json={"type": "serial"}).get_json()["console"]
    opened = door.open(shown["url"].partition("#")[2])
    opened.send(BytesMessage(data=b"typed"))
    assert opened.read(5) == b"typed" and shown["type"] == "serial"
    asked = {"demo": {"type": "spice"}, "reader": {"type": "serial"}, "alt": {"type": "serial"}}
    statuses = {user: client_as(user).post(path, json=body).status_code for user, body in asked.items()}
    assert statuses == {"demo": 400, "reader": 403, "alt": 404}
    no_display = {"image": {**seeds.IMAGE, "properties": {"hw_video_model": "none"}}}
    for values, kind, status in ((no_display, "novnc", 400), ({"vm_state": "stopped"}, "serial", 409)):
        with transaction(door.api.engine) as connection:
            connection.execute(sa.update(tables.instance).values(**values))
        answer = client_as("demo").post(path, json={"type": kind})
        assert (answer.status_code, answer.mimetype) == (status, "application/problem+json")


def test_members_of_its_project_alone_get_a_token(door: Door, client_as: t.Callable[[str], t.Any]) -> None:
    path = f"/compute/v2.1/servers/{door.server}/remote-consoles"
    headers = {"OpenStack-API-Version": "compute 2.96"}
    body = {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    for user, status in (("demo", 200), ("reader", 403), ("alt", 404), ("admin", 200)):
        assert client_as(user).post(path, json=body, headers=headers).status_code == status, user


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "https://127.0.0.1", "http://127.0.0.1"])
def test_pages_of_other_sites_open_nothing_and_use_nothing_up(door: Door, origin: str | None) -> None:
    token = door.token()
    assert door.open(token, origin=origin).refused == 400
    assert door.open(token).refused is None


def test_what_is_no_websocket_is_refused(door: Door) -> None:
    answer = door.api.app.test_client().get("/console/connect")
    assert answer.status_code == 404
    assert door.api.app.test_client().get("/console//evil.example/%2f..").status_code == 404


def test_one_user_has_half_of_the_places_and_gives_them_back(door: Door) -> None:
    most = door.api.app.extensions["settings"].api_consoles // 2
    opened = [door.open() for _number in range(most)]
    token = door.token()
    assert door.open(token).refused == 429
    opened[0].socket.close()
    deadline = time.monotonic() + 10
    while (again := door.open(token)).refused == 429 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert again.refused is None


def test_garbage_reaches_the_page_as_bytes(door: Door) -> None:
    said = b"\x81\x05hello\0\xff<script>\r\n\r\nHTTP/1.1 302 Found\r\nLocation: //evil.example\r\n\r\n"
    program = f"import os, time; os.write(1, {said!r}); os.write(2, b'x' * 65000); time.sleep(60)"
    door.command = [sys.executable, "-c", program]
    assert door.open().read(len(said)) == said


def test_a_flood_waits_for_a_page_that_takes_nothing(door: Door, tmp_path: pathlib.Path) -> None:
    counted = tmp_path / "count"
    program = (
        "import os, sys\nsent = 0\nfile = open(sys.argv[1], 'w')\n"
        "while True:\n    sent += os.write(1, bytes(65536)); file.seek(0); file.write(str(sent)); file.flush()"
    )
    door.command = [sys.executable, "-c", program, str(counted)]
    opened = door.open()
    opened.read(1)
    time.sleep(0.5)
    before = int(counted.read_text())
    time.sleep(0.5)
    assert int(counted.read_text()) == before < 32 << 20
    assert len(opened.read(8 << 20)) >= 8 << 20


def test_a_page_that_sends_a_flood_waits_for_a_host_that_takes_nothing(door: Door) -> None:
    door.command = ["sleep", "60"]
    opened = door.open()
    opened.socket.settimeout(0.5)
    sent = 0
    with pytest.raises(TimeoutError):
        for _number in range(1000):
            opened.send(BytesMessage(data=bytes(1 << 20)))
            sent += 1
    assert sent < 64


def test_a_host_that_ends_says_so_and_one_that_says_nothing_ends(door: Door) -> None:
    door.command = ["sh", "-c", "echo 'no route to host' >&2; exit 255"]
    end = door.open().end()
    assert end is not None and end.code == 1011
    door.command = ["sleep", "60"]
    door.set(console_idle_seconds=1)
    end = door.open().end()
    assert end is not None and (end.code, end.reason) == (1000, "nothing was typed or shown for too long")


def test_a_console_ends_when_its_server_moves(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "LOOK", 0.1)
    opened = door.open()
    with transaction(door.api.engine) as connection:
        connection.execute(sa.update(tables.instance).values(host="hv2"))
    end = opened.end()
    assert end is not None and end.code == 1008


def test_a_page_is_told_the_reason_however_late_the_server_has_its_turn(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "LAST", 0)  # as on a machine that is too busy for what was to take two seconds
    door.command = ["true"]
    end = door.open().end()
    assert end is not None and end.code == 1011


def test_text_is_not_taken(door: Door) -> None:
    opened = door.open()
    opened.send(TextMessage(data="x"))
    end = opened.end()
    assert end is not None and end.code == 1003


def test_the_page_says_what_scripts_may_do(api: seeds.Api) -> None:
    for console_type, inline in (("novnc", False), ("serial", True)):
        answer = Visitor(api, None).client.get(f"/console/{console_type}")
        policy = answer.headers["Content-Security-Policy"]
        assert "script-src 'self';" in policy and "default-src 'none'" in policy and "connect-src 'self'" in policy
        assert ("style-src 'self' 'unsafe-inline'" in policy) is inline
    assert Visitor(api, None).client.get("/console/spice").status_code == 404


def test_the_served_application_goes_by_ssh(home: pathlib.Path) -> None:  # noqa: F811
    """gunicorn hands out the connection; ssh is imitated, and says what it was told."""
    programs = home.parent / "bin"
    programs.mkdir()
    (programs / "ssh").write_text('#!/bin/sh\nprintf "%s|" "$1" "$2" "$4" "$5" "$6" "$9"\nexec cat\n')
    (programs / "ssh").chmod(0o755)
    (home / "ssh_config").write_text("Host hv1\n")
    cloud = Cloud(sqlite(home))
    project = cloud.rows(sa.select(tables.project).where(tables.project.c.name == "demo"))[0].id
    server = cloud.instance(project, "web", host="hv1", vm_state="active", image={"properties": {}})
    with serving(home, PATH=f"{programs}:{os.environ['PATH']}") as served:
        _status, headers, _body = ask(served.port, TOKENS, "POST", login("demo"))
        known = {"X-Auth-Token": headers["X-Subject-Token"], "Content-Type": "application/json"}
        path, body = f"/compute/v2.1/servers/{server}/action", {"os-getSerialConsole": {"type": "serial"}}
        status, _headers, answer = ask(served.port, path, "POST", body, known)
        assert status == 200, answer
        url = json.loads(answer)["console"]["url"]
        with contextlib.closing(WebSocket(f"http://127.0.0.1:{served.port}", url.partition("#")[2])) as opened:
            opened.send(BytesMessage(data=b"typed"))
            said = b"-T|-F|-o|BatchMode=yes|-e|hv1|typed"
            assert opened.read(len(said)) == said
        assert ask(served.port, "/healthz")[0] == 200
        assert "unexpected" not in served.log.read_text()
