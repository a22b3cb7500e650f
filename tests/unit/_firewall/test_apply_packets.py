# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The firewall on real iptables, with packets between network namespaces."""

from __future__ import annotations

import contextlib
import socket
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._firewall import apply
from tests.support.patience import GENEROUS
from tests.unit._firewall.test_apply import SSH, SSH6, request_for

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("own_files")]


PATIENCE = GENEROUS  # for what must arrive
SILENCE = 0.25  # seconds for what must not


class Wire:
    """TCP between the namespaces of a lan."""

    def __init__(self, lan: t.Any) -> None:
        self.lan = lan
        self.stack = contextlib.ExitStack()

    def listen(self, place: str, port: int, family: int = socket.AF_INET) -> socket.socket:
        with self.lan.enter(place):
            server = self.stack.enter_context(socket.socket(family))
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.bind(("", port))
        server.listen()
        return server

    def accept(self, server: socket.socket) -> socket.socket:
        server.settimeout(PATIENCE)
        return self.stack.enter_context(server.accept()[0])

    def connect(self, place: str, address: str, port: int, timeout: float = PATIENCE) -> socket.socket:
        """Raises TimeoutError when nobody answers. A refusal is another error: DROP says nothing."""
        with self.lan.enter(place):
            client = self.stack.enter_context(socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET))
        client.settimeout(timeout)
        client.connect((address, port))
        return client

    def blocked(self, place: str, address: str, port: int) -> bool:
        try:
            self.connect(place, address, port, timeout=SILENCE)
        except TimeoutError:
            return True
        return False


def passes(source: socket.socket, sink: socket.socket, timeout: float = PATIENCE) -> bool:
    sink.settimeout(timeout)
    source.sendall(b"x")
    try:
        return sink.recv(100) != b""
    except TimeoutError:
        return False


def test_packets(lan: t.Any, backend: str) -> None:
    guest, other = lan.hosts
    wire = Wire(lan)
    with wire.stack:
        guest22 = wire.listen(guest, 22)
        wire.listen(guest, 23)
        wire.listen(guest, 22, socket.AF_INET6)
        other23 = wire.listen(other, 23)
        with lan.enter(lan.hypervisor):
            apply.apply(request_for([SSH, SSH6]), backend=backend)
        opened_to = wire.connect(other, "10.99.0.5", 22)
        opened_to_end = wire.accept(guest22)
        assert wire.blocked(other, "10.99.0.5", 23)
        wire.connect(lan.hypervisor, "10.99.0.5", 22)
        assert wire.blocked(lan.hypervisor, "10.99.0.5", 23)
        wire.connect(other, "fd99::5", 22)
        assert wire.blocked(other, "fd99::5", 23)
        opened_by = wire.connect(guest, "10.99.0.6", 23)
        opened_by_end = wire.accept(other23)
        wire.connect(lan.hypervisor, "10.99.0.6", 23)  # the neighbour is no instance
        assert passes(opened_to, opened_to_end)
        assert passes(opened_by_end, opened_by)

        # A rule that is removed cuts what it allowed, whichever end speaks first, and nothing else.
        with lan.enter(lan.hypervisor):
            apply.apply(request_for([{**SSH, "cidr": "10.99.0.77/32"}, SSH6]), backend=backend)
        assert passes(opened_to_end, opened_to), "what the guest sends is not filtered"
        assert not passes(opened_to, opened_to_end, SILENCE)
        assert passes(opened_by_end, opened_by)
        assert passes(opened_by, opened_by_end)

        with lan.enter(lan.hypervisor):
            apply.apply(request_for([], state="absent"), backend=backend)
        wire.connect(other, "10.99.0.5", 23)
