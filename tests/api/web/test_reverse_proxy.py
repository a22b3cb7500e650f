# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The served application: alone, and behind the reverse proxy of the role controller."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import typing as t

import jinja2
import pytest

from tests.api import started
from tests.api.seeds import password
from tests.support.patience import GENEROUS

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOKENS = "/identity/v3/auth/tokens"
PATIENCE = GENEROUS


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Server:
    """`python -m api serve`, without a worker."""

    def __init__(self, home: pathlib.Path, **settings: str) -> None:
        self.port = free_port()
        self.log = home.parent / "log"
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("NOVALITE_")},
            "NOVALITE_HOME": str(home),
            "NOVALITE_API_BIND": f"127.0.0.1:{self.port}",
            "TMPDIR": str(home.parent),
            **settings,
        }
        self.process = started.start("api", "serve", "--no-worker", environment=environment, log=self.log)

    def lines(self) -> list[dict[str, t.Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)


def ask(
    port: int,
    path: str,
    method: str = "GET",
    body: t.Any = None,
    headers: t.Mapping[str, str] | None = None,
    context: ssl.SSLContext | None = None,
) -> tuple[int, t.Any, str]:
    """Status, headers and body of one request."""
    client: http.client.HTTPConnection
    if context is not None:
        client = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=PATIENCE)
    else:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(client):
        client.request(method, path, None if body is None else json.dumps(body), dict(headers or {}))
        answer = client.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def until(what: str, look: t.Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if look():
                return
        assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}"
        time.sleep(0.05)


@pytest.fixture
def home(seeded: pathlib.Path) -> t.Iterator[pathlib.Path]:
    """A copy of the small cloud, under a short path."""
    with tempfile.TemporaryDirectory(prefix="nl-") as directory:
        yield pathlib.Path(shutil.copytree(seeded, pathlib.Path(directory) / "home"))


@contextlib.contextmanager
def serving(home: pathlib.Path, **settings: str) -> t.Iterator[Server]:
    server = Server(home, **settings)
    try:
        until("the API answers", lambda: ask(server.port, "/healthz")[0] == 200)
        yield server
    finally:
        if server.process.poll() is None:
            os.killpg(server.process.pid, signal.SIGKILL)
            server.process.wait(PATIENCE)


def login(name: str, secret: str | None = None) -> dict[str, t.Any]:
    user = {"name": name, "domain": {"id": "default"}, "password": secret or password(name)}
    return {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}


def children(pid: int) -> list[int]:
    pids_text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in pids_text.split()]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_with_all_that_it_started(home: pathlib.Path, how: signal.Signals) -> None:
    with serving(home) as server:
        workers = children(server.process.pid)
        assert len(workers) == 2
        assert [path.name for path in home.parent.iterdir() if path.name.startswith("novalite-metrics-")]
        assert server.end(how) == 0
        assert [pid for pid in workers if pathlib.Path(f"/proc/{pid}").exists()] == []
        assert [path.name for path in home.parent.iterdir() if path.name.startswith("novalite-metrics-")] == []


def test_each_request_is_a_line_without_secrets(home: pathlib.Path) -> None:
    with serving(home) as server:
        status, headers, _ = ask(server.port, TOKENS, "POST", login("demo"))
        assert status == 201
        token = headers["X-Subject-Token"]
        ask(server.port, TOKENS, "POST", login("demo", "a wrong secret"))
        asked = f"/identity/v3/auth/projects?secret={token}"
        _, named, _ = ask(server.port, asked, headers={"X-Auth-Token": token})
        ask(server.port, "/nosuch")
        server.end()
        lines = [line for line in server.lines() if line["message"] == "request"]
        (projects,) = [line for line in lines if line["path"] == "/identity/v3/auth/projects"]
        assert projects["request_id"] == named["X-OpenStack-Request-Id"]
        assert projects["status"] == 200 and projects["method"] == "GET" and projects["ms"] >= 0
        assert len(projects["user"]) == len(projects["project"]) == 32
        assert [line["status"] for line in lines if line["path"] == TOKENS] == [201, 401]
        text = server.log.read_text()
        for secret in (token, password("demo"), "a wrong secret"):
            assert secret not in text


def test_both_processes_count_together(home: pathlib.Path) -> None:
    with serving(home) as server:
        for _ in range(20):
            ask(server.port, "/identity")
        status, _, text = ask(server.port, "/metrics")
        assert status == 200
        assert 'novalite_api_requests_total{method="GET",route="/identity/",status="300"} 20.0' in text
        assert 'novalite_api_request_seconds_count{method="GET",route="/identity/"} 20.0' in text
        assert 'novalite_host_capacity{host="hv1",resource="memory_mb"} 6144.0' in text
        assert "novalite_ledger_up 1.0" in text
        ask(server.port, "/whatever/somebody/likes")
        assert "somebody" not in ask(server.port, "/metrics")[2]


def test_ready_says_what_is_missing(home: pathlib.Path) -> None:
    with serving(home) as server:
        status, _, text = ask(server.port, "/readyz")
        assert json.loads(text)["ledger"] == "ok"
        assert (status == 200) == (json.loads(text)["worker"] == "ok")
        assert status == 503  # nobody carries jobs out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NOVALITE_API_TRUSTED_PROXIES", "everybody"),
        ("NOVALITE_API_METRICS_FROM", "127.0.0.1/8"),
        ("NOVALITE_API_PUBLIC_URL", "cloud.example.org"),
        ("NOVALITE_API_THREADS", "many"),
    ],
)
def test_settings_that_cannot_be_are_refused_in_one_line(home: pathlib.Path, name: str, value: str) -> None:
    server = Server(home, **{name: value})
    assert server.process.wait(PATIENCE) == 1
    (line,) = server.log.read_text().splitlines()
    assert line.startswith("novalite: ") and name in line


def test_nobody_says_where_a_request_came_from(home: pathlib.Path) -> None:
    forged = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}
    with serving(home) as server:
        status, _, text = ask(server.port, "/identity", headers=forged)
        assert status == 300 and "evil" not in text and "https" not in text
        assert ask(server.port, "/metrics")[0] == 200
        for name in (*forged, "Forwarded", "Via"):  # who asks through a proxy that is not trusted is not known
            assert ask(server.port, "/metrics", headers={name: "203.0.113.9"})[0] == 404
        server.end()
        assert {line["address"] for line in server.lines() if line["message"] == "request"} == {"127.0.0.1"}


def test_a_header_or_line_without_end_is_refused(home: pathlib.Path) -> None:
    with serving(home) as server:
        for head in (b"GET /" + b"a" * 10000, b"GET / HTTP/1.1\r\nX: " + b"a" * 20000, b"X: a\r\n" * 200):
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
                start = b"" if head.startswith(b"GET") else b"GET / HTTP/1.1\r\n"
                client.sendall(start + head + b"\r\n\r\n")
                assert client.recv(100).split()[1][:1] == b"4"
        assert ask(server.port, "/healthz")[0] == 200


@contextlib.contextmanager
def proxied(server: Server, directory: pathlib.Path) -> t.Iterator[tuple[int, ssl.SSLContext]]:
    """haproxy as the role has it; its port, and what trusts its certificate."""
    pem, port = directory / "api.pem", free_port()
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "1",
            "-subj",
            "/CN=127.0.0.1",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            str(pem),
            "-out",
            str(directory / "cert.pem"),
        ],
        check=True,
        capture_output=True,
    )
    pem.write_text(pem.read_text() + (directory / "cert.pem").read_text())
    template = jinja2.Template((ROOT / "roles/controller/templates/haproxy.cfg.j2").read_text())
    text = template.render(controller_proxy_bind=f"127.0.0.1:{port}", controller_api_bind=f"127.0.0.1:{server.port}")
    config = directory / "haproxy.cfg"
    config.write_text(text + "\n")
    haproxy = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    assert haproxy is not None
    environment = {**os.environ, "CREDENTIALS_DIRECTORY": str(directory)}
    subprocess.run([haproxy, "-c", "-f", str(config)], check=True, capture_output=True, env=environment)
    process = subprocess.Popen([haproxy, "-db", "-f", str(config)], stderr=subprocess.DEVNULL, env=environment)
    try:
        yield port, ssl.create_default_context(cafile=str(directory / "cert.pem"))
    finally:
        process.terminate()
        process.wait(PATIENCE)


def test_behind_the_example_proxy(home: pathlib.Path) -> None:
    with (
        serving(home, NOVALITE_API_TRUSTED_PROXIES="127.0.0.1") as server,
        proxied(server, home.parent) as (port, context),
    ):
        until("the proxy answers", lambda: ask(port, "/healthz", context=context)[0] == 200)
        forged = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Host": "evil.example", "X-Forwarded-Prefix": "/evil"}
        status, headers, text = ask(port, TOKENS, "POST", login("demo"), forged, context)
        assert status == 201 and "Strict-Transport-Security" in headers
        urls = {
            endpoint["url"] for service in json.loads(text)["token"]["catalog"] for endpoint in service["endpoints"]
        }
        assert f"https://127.0.0.1:{port}/compute/v2.1" in urls
        assert all(url.startswith(f"https://127.0.0.1:{port}/") for url in urls)
        for path in ("/metrics", "/%6detrics", "/metrics/", "/metric%73", "//metrics", "/metrics?x"):
            assert ask(port, path, context=context)[0] == 404, path
        server.end()
        assert {line["address"] for line in server.lines() if line["message"] == "request"} == {"127.0.0.1"}
