# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures that several rooms' tests share: a hypervisor and hosts as network namespaces."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._host import asker

CLONE_NEWNET = 0x40000000


@contextlib.contextmanager
def entered(name: str) -> t.Iterator[None]:
    """Run the block, and the commands that it starts, in a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        libc.setns(home, CLONE_NEWNET)
        os.close(there)
        os.close(home)


@pytest.fixture
def caller(monkeypatch: pytest.MonkeyPatch) -> t.Iterator[t.Callable[[], None]]:
    """A function that ends whoever waits for the output of this host's process."""
    reader, writer = os.pipe()
    gone = []

    def go() -> None:
        gone.append(reader)
        os.close(reader)

    monkeypatch.setattr(asker, "STDOUT", writer)
    yield go
    for fd in {reader, writer} - set(gone):
        os.close(fd)


@pytest.fixture
def nobody_reads(caller: t.Callable[[], None]) -> None:
    """A process on a host whose controller is gone."""
    caller()


class Lan(t.NamedTuple):
    """A hypervisor with bridge br0 (10.99.0.1/24, fd99::1/64) and hosts on it: .5, .6, ... on eth0."""

    hypervisor: str
    hosts: list[str]
    enter: t.Callable[[str], t.ContextManager[None]]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def lan(request: pytest.FixtureRequest) -> t.Iterator[Lan]:
    """`@pytest.mark.parametrize("lan", [n], indirect=True)` for n hosts, two otherwise."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    names = [f"nlt{os.getpid()}-{index}" for index in range(1 + getattr(request, "param", 2))]
    hypervisor, *hosts = names
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", hypervisor, "link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
        ip("-n", hypervisor, "link", "set", "br0", "up")
        ip("-n", hypervisor, "addr", "add", "10.99.0.1/24", "dev", "br0")
        ip("-n", hypervisor, "addr", "add", "fd99::1/64", "dev", "br0", "nodad")
        for number, host in enumerate(hosts, 5):
            ip("-n", hypervisor, "link", "add", f"tap{number}", "type", "veth", "peer", "name", "eth0", "netns", host)
            ip("-n", hypervisor, "link", "set", f"tap{number}", "master", "br0", "up")
            ip("-n", host, "addr", "add", f"10.99.0.{number}/24", "dev", "eth0")
            ip("-n", host, "addr", "add", f"fd99::{number}/64", "dev", "eth0", "nodad")
            ip("-n", host, "link", "set", "eth0", "up")
        yield Lan(hypervisor, hosts, entered)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
