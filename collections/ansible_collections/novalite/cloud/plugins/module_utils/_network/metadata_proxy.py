# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Metadata proxy of each network on a host: its file, its process, and the address that guests ask at."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import socket
import typing as t

from .._errors import ConflictError, NovaliteError
from .._host.command import CommandError, run
from .._host.files import STATE_DIR, read_text, write_atomically
from .._host.libvirt_connection import DEFAULT_URI
from .._host.locks import locked
from .._host.module import compared_each
from .._host.own_directory import make_own
from .._host.waiting import in_threads
from .._json import JsonObject
from . import haproxy, ownership, users
from .haproxy import ADDRESS, Proxy, Upstream
from .links import ip
from .ownership import NO_LEDGER, Mark, Owner
from .process import Server

_NAMESPACES = "/run/netns"


@dataclasses.dataclass(frozen=True)
class Service:
    """The things that all proxies of this host have in common."""

    upstream: Upstream
    host: str
    key: bytes
    mark: Mark = NO_LEDGER


def ensure(
    proxies: t.Sequence[Proxy], service: Service, check_mode: bool = False, state_dir: str = STATE_DIR
) -> JsonObject:
    """Let `proxies` run. Returns `changed` and, when it is true, `diff`. Raises NovaliteError."""

    def work(proxy: Proxy) -> tuple[JsonObject, JsonObject]:
        with _locked(proxy.bridge, check_mode):
            return _Place(proxy.bridge, state_dir, service.mark).present(proxy, service, check_mode)

    return compared_each([proxy.bridge for proxy in proxies], in_threads(work, proxies))


def remove(
    bridges: t.Sequence[str],
    check_mode: bool = False,
    state_dir: str = STATE_DIR,
    mark: Mark = NO_LEDGER,
    uri: str = DEFAULT_URI,
) -> JsonObject:
    """End the proxies of `bridges`, whatever is there of them, but another ledger's, and those of bridges that have
    users (`kept`); the rest as in ensure()."""

    def work(bridge: str) -> tuple[JsonObject, JsonObject]:
        with _locked(bridge, check_mode):
            return _Place(bridge, state_dir, mark).absent(check_mode)

    with users.alone(bridges, uri, check_mode, state_dir) as kept:
        going = [bridge for bridge in bridges if bridge not in kept]
        return compared_each(going, in_threads(work, going), kept=kept)


def _locked(bridge: str, check_mode: bool) -> t.ContextManager[None]:
    return contextlib.nullcontext() if check_mode else locked(f"metadata-{bridge}")


class _Place:
    """The directory of one bridge's proxy, and what is there."""

    def __init__(self, bridge: str, state_dir: str, mark: Mark) -> None:
        self.directory = os.path.join(state_dir, "metadata", bridge)
        self.bridge = bridge
        self.server = Server(
            "haproxy", os.path.join(self.directory, "haproxy.cfg"), os.path.join(self.directory, "pid")
        )
        self.old = read_text(self.server.conf)
        proxy = haproxy.read(self.old or "")
        self.namespace = proxy.namespace if proxy else None
        self.marked = ownership.of_file((self.old or "").splitlines())
        self.is_others = mark.owner(self.marked) is Owner.OTHER_LEDGER

    def present(self, proxy: Proxy, service: Service, check_mode: bool) -> tuple[JsonObject, JsonObject]:
        if self.is_others:
            raise ConflictError(
                f"the metadata proxy of bridge {proxy.bridge} on this host is another ledger's ({self.marked}); give "
                "the network another bridge"
            )
        place = _place(proxy)
        if place is None and not check_mode:
            # haproxy would go without, and answer guests of every network in the name of this one
            missing = f"network namespace {proxy.namespace}" if proxy.namespace else f"bridge {proxy.bridge}"
            raise NovaliteError(f"there is no {missing} on this host: make it before its metadata proxy")
        new = haproxy.config(proxy, service.upstream, service.host, service.key, place, service.mark)
        pid = self.server.pid()
        running, address = pid is not None, _has_address(proxy.namespace)
        before, after = _state(self.old, running, address), _state(new, True, True)
        if (self.old, running, address) == (new, True, True) or check_mode:
            return before, after
        try:
            if (self.old, running) != (new, True):
                self._write(new)
            if not address:
                _add_address(proxy.namespace)  # after the file: from then on nobody takes it away
            if (self.old, running) != (new, True):
                self._start(pid)
        except BaseException:
            self._take_back(running)
            if not address:
                self._drop_address(proxy.namespace)
            raise
        if self.old is not None and self.namespace != proxy.namespace:
            self._drop_address(self.namespace)
        return before, after

    def absent(self, check_mode: bool) -> tuple[JsonObject, JsonObject]:
        running = self.server.pid() is not None
        if self.is_others or (self.old is None and not running and not os.path.isdir(self.directory)):
            return {}, {}
        before = _state(self.old, running, _has_address(self.namespace))
        if not check_mode:
            self.server.stop()
            if os.path.isdir(self.directory):
                shutil.rmtree(self.directory)
            self._drop_address(self.namespace)
        return before, {}

    def _write(self, text: str) -> None:
        make_own(self.directory, links=True)
        write_atomically(self.server.conf, text, 0o600)

    def _start(self, pid: int | None) -> None:
        """Start it; one that runs already passes its connections on and ends."""
        words = ["haproxy", "-q", "-D", "-f", self.server.conf, "-p", self.server.pid_file]
        words += [] if pid is None else ["-sf", str(pid)]
        self.server.start(words, f"the metadata proxy of {self.bridge}", f"haproxy -c -f {self.server.conf}")

    def _take_back(self, was_running: bool) -> None:
        """The old file again, or none; and the old proxy runs again."""
        with contextlib.suppress(NovaliteError, OSError):
            if self.old is None:
                self.server.stop()
                shutil.rmtree(self.directory)
                return
            write_atomically(self.server.conf, self.old, 0o600)
            if was_running and self.server.pid() is None:
                self._start(None)

    def _drop_address(self, namespace: str | None) -> None:
        """Take the address away, unless another network's proxy still answers at it."""
        with locked("metadata-address"):
            others = os.path.dirname(self.directory)
            for bridge in os.listdir(others) if os.path.isdir(others) else ():
                proxy = haproxy.read(read_text(os.path.join(others, bridge, "haproxy.cfg")) or "")
                if bridge != self.bridge and proxy is not None and proxy.namespace == namespace:
                    return
            if _has_address(namespace):
                run(ip(namespace, "addr", "del", f"{ADDRESS}/32", "dev", "lo"))
            with contextlib.suppress(OSError):  # others are left in it
                os.rmdir(others)


def _state(text: str | None, running: bool, address: bool) -> JsonObject:
    if text is None and not running:
        return {}
    return {"config": haproxy.shown(text), "running": running, "address": address}


def _place(proxy: Proxy) -> int | None:
    """The thing that the proxy's socket gets tied to; None when it is not there (yet)."""
    try:
        if proxy.namespace:
            return os.stat(os.path.join(_NAMESPACES, proxy.namespace)).st_ino
        return socket.if_nametoindex(proxy.bridge)
    except OSError:
        return None


def _has_address(namespace: str | None) -> bool:
    """Tell whether guests' packets to the address are this host's to answer."""
    try:
        links = json.loads(run(ip(namespace, "-json", "addr", "show", "dev", "lo")).stdout or "[]")
    except CommandError:
        return False  # no such namespace
    return any(
        address.get("local") == ADDRESS and "UP" in link.get("flags", ())
        for link in links
        for address in link.get("addr_info", ())
    )


def _add_address(namespace: str | None) -> None:
    with locked("metadata-address"):
        # In scope link it is never the source of what the host itself sends elsewhere.
        run(ip(namespace, "addr", "replace", f"{ADDRESS}/32", "dev", "lo", "scope", "link"))
        run(ip(namespace, "link", "set", "lo", "up"))
