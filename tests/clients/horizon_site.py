# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Debian's Horizon, unmodified, with settings of its own: served beside a proxy that keeps what it asks the API."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import os
import pathlib
import re
import secrets
import signal
import socket
import subprocess
import threading
import time
import typing as t
import urllib.parse

from playwright.sync_api import Error, Page

from tests.support.browser import chromium, listening, network_namespace

from .cloud import ROOT

PACKAGE = "openstack-dashboard"  # without what it recommends there is no service of it
MANAGE = "/usr/share/openstack-dashboard/manage.py"
INSTALL, START = 600.0, 120.0  # seconds
PATIENCE = 90.0  # for a page: the machine is busy with guests
SETTINGS = """\
from openstack_dashboard.settings import *

{of_the_docs}
ALLOWED_HOSTS = ["127.0.0.1"]
SECRET_KEY = "{secret}"
SESSION_ENGINE = "django.contrib.sessions.backends.cache"
CACHES = {{"default": {{"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}}}
"""
HOP = ("connection", "transfer-encoding", "content-length", "accept-encoding")  # headers of one connection


class Call(t.NamedTuple):
    """A request of Horizon to the API, and the answer."""

    method: str
    path: str
    status: int
    text: str  # of a refusal

    def __str__(self) -> str:
        return f"{self.method} {self.path}: {self.status} {self.text}".strip()


class Proxy(http.server.ThreadingHTTPServer):
    """Passes requests on to the API at `target`, and keeps them."""

    daemon_threads = True

    def __init__(self, listener: socket.socket, target: str) -> None:
        super().__init__(listener.getsockname(), Passing, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.target = target
        self.calls: list[Call] = []


class Passing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        # with the client's Host, so that the catalog leads through here
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
        with contextlib.closing(http.client.HTTPConnection(self.server.target, timeout=PATIENCE)) as connection:
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        text = content[:300].decode(errors="replace") if answer.status >= 400 else ""
        self.server.calls.append(Call(self.command, self.path, answer.status, text))
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = pass_on

    def log_message(self, *_arguments: object) -> None:
        """Say nothing: what was asked is kept."""


class Site(t.NamedTuple):
    """Horizon's address, a page of a browser that can reach it, and what it asked the API."""

    url: str
    page: Page
    calls: list[Call]


@contextlib.contextmanager
def site(api: str, directory: pathlib.Path) -> t.Iterator[Site]:
    """Horizon over the API at that URL, and a browser, in a network namespace from which a proxy alone leads out."""
    _install()
    with network_namespace(f"horizon-{os.getpid()}") as namespace:
        proxy = Proxy(listening(namespace), urllib.parse.urlsplit(api).netloc)
        thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        thread.start()
        try:
            with listening(namespace) as spare:
                port = spare.getsockname()[1]
            keystone = f"http://127.0.0.1:{proxy.server_address[1]}{urllib.parse.urlsplit(api).path}"
            with _served(namespace, port, keystone, directory), chromium(namespace, directory) as browser:
                page = browser.new_page(viewport={"width": 1280, "height": 1000})
                page.set_default_timeout(PATIENCE * 1000)
                url = f"http://127.0.0.1:{port}"
                _await(page, url, directory / "horizon.log")
                yield Site(url, page, proxy.calls)
        finally:
            proxy.shutdown()
            proxy.server_close()


def _install() -> None:
    if os.geteuid() != 0:
        raise AssertionError(f"the part horizon installs {PACKAGE} and makes a network namespace: run it as root")
    if pathlib.Path(MANAGE).exists():
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=600", PACKAGE]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=INSTALL, check=False)
    assert done.returncode == 0, done.stderr


def settings_of_the_docs(keystone: str) -> str:
    """The settings that docs/api.md tells to make, for Identity at that URL."""
    text = (ROOT / "docs/api.md").read_text()
    block = re.search(r"^## Horizon\n.*?^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert block is not None, "docs/api.md has no settings of Horizon any more"
    return re.sub(r'(?<=OPENSTACK_KEYSTONE_URL = ")[^"]*', keystone, block[1])


@contextlib.contextmanager
def _served(namespace: str | None, port: int, keystone: str, directory: pathlib.Path) -> t.Iterator[None]:
    text = SETTINGS.format(of_the_docs=settings_of_the_docs(keystone), secret=secrets.token_hex(20))
    (directory / "horizon_settings.py").write_text(text)
    arguments = ["runserver", "--noreload", "--insecure", f"127.0.0.1:{port}"]  # insecure: it serves its own files
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "VIRTUAL_ENV")},
        "PYTHONPATH": str(directory),
        "PYTHONDONTWRITEBYTECODE": "1",
        "DJANGO_SETTINGS_MODULE": "horizon_settings",
    }
    with (directory / "horizon.log").open("wb") as log:
        server = subprocess.Popen(
            ["nsenter", f"--net={namespace}", "/usr/bin/python3", MANAGE, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def _await(page: Page, url: str, log: pathlib.Path) -> None:
    deadline = time.monotonic() + START
    while True:
        try:
            page.goto(url)
            return
        except Error as error:
            if "ERR_CONNECTION_REFUSED" not in str(error) or time.monotonic() > deadline:
                raise AssertionError(f"Horizon did not start:\n{log.read_text()[-3000:]}") from error
            time.sleep(0.5)
