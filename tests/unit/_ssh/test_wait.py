# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting for ssh servers, with real sockets on the loopback interface, and the reasons of those that do not answer."""

from __future__ import annotations

import contextlib
import socket
import threading
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ssh.wait import Guest, wait_for_ssh


@contextlib.contextmanager
def service(greeting: bytes | None) -> t.Iterator[int]:
    """A TCP service on 127.0.0.1 that greets who connects (None: nobody listens at its port); yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        if greeting is None:
            listener.close()
            yield port
            return

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _address = listener.accept()
                    with connection:
                        connection.sendall(greeting)

        threading.Thread(target=serve, daemon=True).start()
        yield port
        listener.shutdown(socket.SHUT_RDWR)


def test_a_guest_that_greets_has_answered() -> None:
    with service(b"SSH-2.0-dropbear\r\n") as port:
        waited = wait_for_ssh([Guest("web", "127.0.0.1")], port, "SSH-", timeout=5)
    assert list(waited.answered) == ["web"]
    assert waited.silent == ()


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [(None, "it is up, but nothing listens on TCP port"), (b"", "does not begin with 'SSH-'"), (b"HTTP", "does not")],
)
def test_who_does_not_greet_is_told_with_the_reason(greeting: bytes | None, reason: str) -> None:
    with service(greeting) as port:
        waited = wait_for_ssh([Guest("web", "127.0.0.1")], port, "SSH-", timeout=0.2)
    assert waited.answered == {}
    assert reason in waited.silent[0].reason
    assert waited.silent[0].message.startswith("web (127.0.0.1): ")


def test_what_is_known_to_be_in_the_way_is_not_waited_for() -> None:
    guests = [Guest("web", "192.0.2.1", hindrance="no rule lets it in"), Guest("db")]
    waited = wait_for_ssh(guests, 22, "SSH-", timeout=600)
    assert [silence.reason for silence in waited.silent] == ["no rule lets it in", "it has no address"]
    assert waited.silent[1].message == "db (no address): it has no address"


def test_one_silent_guest_does_not_hide_that_others_answered() -> None:
    with service(b"SSH-2.0-x\r\n") as port:
        waited = wait_for_ssh([Guest("db"), Guest("web", "127.0.0.1")], port, "SSH-", timeout=5)
    assert (list(waited.answered), [silence.name for silence in waited.silent]) == (["web"], ["db"])
