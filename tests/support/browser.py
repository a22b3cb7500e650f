# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Headless Chromium, Debian's, in a network namespace where others' interfaces neither come nor go.

Chromium gives up what it is loading (ERR_NETWORK_CHANGED) whenever one does. Only root can make a namespace.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import socket
import subprocess
import threading
import typing as t

if t.TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = "/usr/bin/chromium"
NEWNET = 0x40000000  # CLONE_NEWNET
ARGUMENTS = (  # root has no sandbox; what is shown is ours
    *("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@contextlib.contextmanager
def network_namespace(name: str) -> t.Iterator[str | None]:
    """The path of a new network namespace that has a loopback interface alone; None for anybody but root."""
    if os.geteuid() != 0:
        yield None
        return
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield f"/run/netns/{name}"
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def listening(namespace: str | None) -> socket.socket:
    """A socket on a port of 127.0.0.1 in that namespace."""
    made: list[socket.socket] = []

    def make() -> None:
        # a thread of its own goes there, and ends there
        if namespace is not None:
            with open(namespace, encoding="ascii") as handle:
                libc = ctypes.CDLL(None, use_errno=True)
                assert libc.setns(handle.fileno(), NEWNET) == 0, os.strerror(ctypes.get_errno())
        made.append(socket.create_server(("127.0.0.1", 0)))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


@contextlib.contextmanager
def chromium(namespace: str | None, directory: pathlib.Path) -> t.Iterator[Browser]:
    """A browser in that namespace; `directory` gets the command that goes there."""
    program = CHROMIUM
    if namespace is not None:
        program = str(directory / "chromium")
        pathlib.Path(program).write_text(f'#!/bin/sh\nexec nsenter --net={namespace} {CHROMIUM} "$@"\n')
        os.chmod(program, 0o755)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield opened
        opened.close()
