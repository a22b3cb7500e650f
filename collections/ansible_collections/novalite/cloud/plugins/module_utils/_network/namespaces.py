# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network namespaces of isolated networks: names, the devices that lead into them, entering one, and the connections
that the kernel tracks in them."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import typing as t

from .._errors import NotFoundError, NovaliteError
from .._host.command import run
from .._host.waiting import in_threads
from .._model.instance import Network

DIRECTORY = "/run/netns"
PREFIX = "nova-"
TRANSIT = "transit"  # the end of the way out that is inside a namespace

_CLONE_NEWNET = 0x40000000
_NAME = re.compile(r"nova-[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")
_LONGEST = 15  # the kernel's limit for the name of a device


def check_name(name: str) -> str:
    """`name` when it may be the namespace of a network (`nova-<bridge>`). Raises NovaliteError."""
    if not _NAME.fullmatch(name):
        raise NovaliteError(f"{name!r} is not a namespace of a network; it is called nova- and the name of its bridge")
    return name


def namespace_of(network: Network) -> str | None:
    """Namespace of a host's own side of the network; None for the host's own namespace, Nova's way."""
    return f"{PREFIX}{network['bridge']}" if network["isolated"] else None


def port_name(bridge: str) -> str:
    """The bridge's port into its namespace. The other end has the bridge's own name, as outside for servers."""
    return _device("nv-", bridge)


def transit_name(bridge: str) -> str:
    """The host's end of the way out of the bridge's namespace; the end inside is TRANSIT."""
    return _device("nt-", bridge)


def _device(prefix: str, bridge: str) -> str:
    name = prefix + bridge
    if len(name) > _LONGEST:
        name = prefix + hashlib.sha256(bridge.encode()).hexdigest()[: _LONGEST - len(prefix)]
    return name


def exists(name: str) -> bool:
    """Tell whether the host has this namespace. A file that is left from one is none."""
    try:
        return os.stat(os.path.join(DIRECTORY, name)).st_dev != os.stat(DIRECTORY).st_dev
    except OSError:
        return False


@contextlib.contextmanager
def entered(name: str | None) -> t.Iterator[None]:
    """Run the block, and the commands that it starts, in a namespace; None is where one is already.

    Only the calling thread moves. Sockets and processes that the block makes stay in the namespace; /sys does not
    follow, /proc/sys/net does. Raises NotFoundError where there is no such namespace.
    """
    if name is None:
        yield
        return
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            there = os.open(os.path.join(DIRECTORY, name), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            raise NotFoundError(f"there is no network namespace {name} on this host; make its bridge first") from None
        try:
            _enter(there, name)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _enter(home, "of this host")
    finally:
        os.close(home)


def _enter(descriptor: int, name: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns came with Python 3.12
    if libc.setns(descriptor, _CLONE_NEWNET):
        raise NovaliteError(f"the network namespace {name} cannot be entered: {os.strerror(ctypes.get_errno())}")


def forget_flows(changing: t.Collection[tuple[str | None, str]]) -> list[str]:
    """Delete the tracked connections under floating IPs that are no guest's any more, or another one's, or a guest's
    only now: flows go on as they began, whatever the rules say. Returns warnings."""
    jobs = [
        (where, end, address)
        for namespace, address in sorted(set(changing), key=str)
        for where in dict.fromkeys((None, namespace))
        if where is None or exists(where)
        for end in ("--orig-dst", "--reply-dst")
    ]

    def delete(job: tuple[str | None, str, str]) -> str | None:
        namespace, end, address = job
        try:
            with entered(namespace):
                run(["conntrack", "-D", "-f", "ipv4", end, address], ok=(0, 1))
        except NovaliteError as error:
            return str(error)
        return None

    problems = sorted({problem for problem in in_threads(delete, jobs, workers=4) if problem})
    return [f"open connections under a changed floating IP could not be cut: {problems[0]}"] if problems else []
