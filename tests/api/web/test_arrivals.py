# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clients that send, or close, drop by drop take no thread from those that ask: the served application, no proxy."""

from __future__ import annotations

import contextlib
import http.client
import json
import pathlib
import shutil
import socket
import tempfile
import threading
import time
import typing as t

import pytest

from tests.api.web.test_reverse_proxy import TOKENS, Server, ask, login, serving
from tests.support.patience import GENEROUS

CROWD = 200
HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "
POST = b"POST /identity/v3/auth/tokens HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
BODY = POST + b"Content-Length: %d\r\n\r\n"
CHUNKS = POST + b"Transfer-Encoding: chunked\r\n\r\n"
# An answer must be there in so many seconds, and so many times as long as it takes when nobody else asks: long before
# the service sends away whoever is slow
PATIENCE, TIMES = 5.0, 10


@pytest.fixture(scope="module")
def server(seeded: pathlib.Path) -> t.Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="nl-") as directory:
        home = pathlib.Path(shutil.copytree(seeded, pathlib.Path(directory) / "home"))
        with serving(home) as service:
            yield service


@contextlib.contextmanager
def crowd(port: int, begin: bytes, drop: bytes) -> t.Iterator[list[socket.socket]]:
    """CROWD connections that send `begin`, and then one drop a second."""
    clients = []
    for _number in range(CROWD):
        client = socket.create_connection(("127.0.0.1", port))
        client.sendall(begin)
        clients.append(client)
    done = threading.Event()

    def drip() -> None:
        while not done.wait(1):
            for client in clients:
                with contextlib.suppress(OSError):
                    client.send(drop)

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield clients
    finally:
        done.set()
        thread.join()
        for client in clients:
            client.close()


def launch(port: int, token: str) -> int:
    """The status of a request for a server that cannot be: it goes all the way to the ledger."""
    body = {"server": {"name": "x", "flavorRef": "nosuch", "imageRef": "nosuch", "networks": "none"}}
    headers = {"X-Auth-Token": token, "Content-Type": "application/json", "X-OpenStack-Nova-API-Version": "2.37"}
    return ask(port, "/compute/v2.1/servers", "POST", body, headers)[0]


@pytest.mark.parametrize(
    ("begin", "drop"),
    [
        (HEAD, b"a"),
        (BODY % 1000, b" "),
        (BODY % 100_000_000, b" "),
        (CHUNKS, b"1\r\na\r\n"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" + HEAD, b"a"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", b""),
        (b"\r\n\r\n", b"\r\n"),
        (b"", b""),
    ],
    ids=["heads", "bodies", "large bodies", "chunks", "second requests", "never close", "empty lines", "silent"],
)
def test_others_are_answered_meanwhile(server: Server, begin: bytes, drop: bytes) -> None:
    status, headers, _body = ask(server.port, TOKENS, "POST", login("demo"), {"Content-Type": "application/json"})
    assert status == 201

    def answered() -> float:
        """Seconds until there are answers."""
        began = time.monotonic()
        assert ask(server.port, "/healthz")[0] == 200
        assert launch(server.port, headers["X-Subject-Token"]) == 400
        return time.monotonic() - began

    alone = answered()
    with crowd(server.port, begin, drop):
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            assert answered() < PATIENCE + TIMES * alone
            time.sleep(0.2)


def test_who_takes_too_long_is_told_so_and_sent_away(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=GENEROUS) as client:
        client.sendall(HEAD)
        assert client.recv(100).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/1.1\r\nX-Large: " + b"a" * 100_000, b"431"),
        (CHUNKS, b"411"),
        (b"\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
        (b"no request at all\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n", b"400"),
    ],
)
def test_what_cannot_be_is_answered_at_once(server: Server, sent: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=GENEROUS) as client:
        client.sendall(sent)
        assert client.recv(1000).split()[1] == status


def test_requests_in_pieces_and_one_after_the_other_are_understood(server: Server) -> None:
    body = json.dumps(login("demo")).encode()
    requests = (BODY % len(body) + body) + b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=GENEROUS) as client:
        for position in range(0, len(requests), 40):
            client.sendall(requests[position : position + 40])
            time.sleep(0.005)
        answers = b""
        while piece := client.recv(65536):
            answers += piece
    assert answers.startswith(b"HTTP/1.1 201 ")
    assert b"HTTP/1.1 200 OK" in answers[100:]


def test_who_waits_to_be_told_to_go_on_is_told_so(server: Server) -> None:
    body = json.dumps(login("demo")).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=GENEROUS) as client:
        client.sendall((BODY % len(body)).replace(b"Host:", b"Expect: 100-continue\r\nHost:"))
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        assert client.recv(1000).startswith(b"HTTP/1.1 201 ")


def test_a_connection_is_kept_for_the_next_request(server: Server) -> None:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=GENEROUS)) as client:
        ports = set()
        for path, status in (("/healthz", 200), ("/compute/v2.1/servers", 401), ("/healthz", 200)):
            client.request("GET", path)
            answer = client.getresponse()
            assert (answer.status, bool(answer.read())) == (status, True)
            ports.add(client.sock.getsockname())
    assert len(ports) == 1
