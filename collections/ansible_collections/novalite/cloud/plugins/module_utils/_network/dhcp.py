# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""DHCP from one dnsmasq for each network on a host: files, process, and leases that must not outlive their guests."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
import secrets
import shutil
import signal
import socket
import struct
import time
import typing as t

from .._errors import ConflictError, NotFoundError, NovaliteError
from .._host.command import CommandError
from .._host.files import STATE_DIR, read_text, write_less
from .._host.locks import locked
from .._host.module import compared_each
from .._host.own_directory import make_own
from .._host.waiting import in_threads
from .._json import JsonObject
from . import dhcp_hosts, dhcp_ranges, dnsmasq, ownership
from .dhcp_hosts import Host
from .dnsmasq import Network
from .namespaces import entered
from .ownership import NO_LEDGER, Mark, Owner
from .process import Server as Process

# what dnsmasq says when a system-wide one (Debian's listens on all addresses, also on those that come later) was faster
_NAMES_TAKEN = re.compile(r"failed to create listening socket for \S+: Address already in use")
_FILES = ("conf", "hosts", "names", "others", "opts")


def ensure(
    networks: t.Sequence[Network],
    state: str,
    check_mode: bool = False,
    state_dir: str = STATE_DIR,
    mark: Mark = NO_LEDGER,
) -> JsonObject:
    """Bring the DHCP servers of `networks` to `state`. Returns `changed`, `warnings` and, when it is true, `diff`.

    `present` adds the hosts (one that has the same MAC or address is replaced), `absent` takes them out; with its last
    host a server ends and its directory goes. Another ledger's server is left alone. Raises NovaliteError;
    ConflictError when another ledger has a server on one of the bridges.
    """

    warnings: list[str] = []

    def work(network: Network) -> tuple[JsonObject, JsonObject]:
        with contextlib.nullcontext() if check_mode else locked(f"dhcp-{network.bridge}"):
            server = Server(network, os.path.join(state_dir, "networks", network.bridge), mark)
            try:
                return server.present(check_mode) if state == "present" else server.absent(check_mode)
            except OSError as error:
                where = error.filename or server.directory
                raise NovaliteError(f"the DHCP server of bridge {network.bridge}: {where}: {error.strerror}") from error
            finally:
                warnings.extend(server.warnings)

    return compared_each([network.bridge for network in networks], in_threads(work, networks), warnings=warnings)


class Server:
    """The dnsmasq of one network; `directory` holds all that belongs to it."""

    def __init__(self, network: Network, directory: str, mark: Mark = NO_LEDGER) -> None:
        self.network = network
        self.mark = mark
        self.directory = directory
        self.warnings: list[str] = []
        self.conf = os.path.join(directory, "conf")
        self.process = Process("dnsmasq", f"--conf-file={self.conf}", os.path.join(directory, "pid"))
        self._old = {name: self._read(name) for name in _FILES}
        self._hosts = dhcp_hosts.read_hosts(self._old["hosts"] or "", self._old["opts"] or "")
        self._marked = ownership.of_file((self._old["conf"] or "").splitlines())
        self._is_others = mark.owner(self._marked) is Owner.OTHER_LEDGER

    def present(self, check_mode: bool) -> tuple[JsonObject, JsonObject]:
        hosts = dhcp_hosts.merged(self._hosts, self.network.hosts)
        if not hosts and self._old["conf"] is None:
            return {}, {}  # it comes with its first host: there may be no bridge yet
        if self._is_others:
            raise ConflictError(
                f"the DHCP server of bridge {self.network.bridge} on this host is another ledger's ({self._marked}); "
                "give the network another bridge"
            )
        # Another run, which knew that this host has an address in one more range, may have been faster than this one.
        more = dnsmasq.ranges_in_use(self._old["conf"] or "", self.network, hosts)
        more = [each for each in more if self._has_address(each.listen)]
        further = (*self.network.further_ranges, *more)
        self.network = dataclasses.replace(self.network, further_ranges=further)
        options = any(host.options for host in hosts)
        new = self._texts(hosts, dnsmasq.config(self.network, self.directory, self.mark, options))
        pid = self.process.pid()
        before, after = self._state(self._old, pid is not None), self._state(new, True)
        if before == after or check_mode:
            return before, after
        stale = [host for host in self._hosts if (host.mac, host.ip) not in {(new.mac, new.ip) for new in hosts}]
        try:
            self._write(new)
            self._apply(pid, restart=new["conf"] != self._old["conf"] or bool(new["opts"]), stale=stale)
        except BaseException:
            self._take_back(was_running=pid is not None)
            raise
        return before, after

    def absent(self, check_mode: bool) -> tuple[JsonObject, JsonObject]:
        if not os.path.isdir(self.directory) or self._is_others:
            return {}, {}
        hosts = dhcp_hosts.without(self._hosts, self.network.hosts)
        self.network = dataclasses.replace(self.network, names=None)
        pid = self.process.pid()
        before = self._state(self._old, pid is not None)
        if not hosts:
            if not check_mode:
                self.process.stop()
                shutil.rmtree(self.directory)
            return before, {}
        new = self._texts(hosts, self._old["conf"] or "")
        after = self._state(new, pid is not None)
        if before != after and not check_mode:
            self._write(new)
            if pid is not None:
                stale = [host for host in self._hosts if host not in hosts]
                self._apply(pid, restart=bool(new["opts"]), stale=stale)
        return before, after

    def _texts(self, hosts: t.Sequence[Host], conf: str) -> dict[str, str | None]:
        others = self._old["others"] or ""
        if self.network.names is not None:
            others = dnsmasq.others_text(self.network.names, self.network.domain)
        return {
            "others": others,
            "conf": conf,
            "hosts": dhcp_hosts.hosts_text(hosts, self.network.domain),
            "names": dnsmasq.names_text(hosts, self.network.domain),
            "opts": dhcp_hosts.options_text(hosts) or (None if self._old["opts"] is None else ""),
        }

    @staticmethod
    def _state(texts: t.Mapping[str, str | None], running: bool) -> JsonObject:
        if texts["conf"] is None and not running:
            return {}
        shown = {name: (text or "").splitlines() for name, text in texts.items() if text or name != "opts"}
        return {**shown, "running": running}

    def _has_address(self, address: str) -> bool:
        """Tell whether the address is this host's, where the server runs."""
        with (
            contextlib.suppress(OSError, NotFoundError),
            entered(self.network.namespace),
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking,
        ):
            asking.bind((address, 0))
            return True
        return False

    def _read(self, name: str) -> str | None:
        return read_text(os.path.join(self.directory, name))

    def _write(self, texts: t.Mapping[str, str | None]) -> None:
        # dnsmasq reads hosts and names again as its own user.
        make_own(self.directory, 0o755, links=True)
        for name, text in texts.items():
            if text is not None and text != self._old[name]:
                write_less(os.path.join(self.directory, name), text)

    def _apply(self, pid: int | None, restart: bool, stale: t.Sequence[Host]) -> None:
        # With options of single hosts it is always started anew: dnsmasq 2.90 was seen to die when it read them again.
        if pid is not None and not restart:
            os.kill(pid, signal.SIGHUP)  # reads hosts and names again, keeps leases and sockets
            for host in stale:
                self._release(host)
            if not self._leased(stale, patience=1.0):
                return
        # dnsmasq would refuse an address to its new owner as long as the old one's lease runs, up to a day.
        self.process.stop()
        self._forget_leases(stale)
        self._start()

    def _start(self) -> None:
        what, hint = f"dnsmasq for {self.network.bridge}", f"the host's log and {self.conf}"
        start = functools.partial(self.process.start, what=what, hint=hint)
        command = ["dnsmasq", f"--conf-file={self.conf}"]
        with entered(self.network.namespace):
            try:
                start(command)
            except CommandError as error:
                if not _NAMES_TAKEN.search(str(error)):
                    raise
                self.warnings.append(
                    f"another name server of this host listens on {self.network.listen} (port 53), so guests on "
                    f"{self.network.bridge} get addresses, and are sent to the network's own dns for names: keep that "
                    f"server off the bridge (dnsmasq: except-interface={self.network.bridge}) for names of guests"
                )
                start([*command, "--port=0", *dhcp_ranges.names_elsewhere(self.network.ranges)])

    def _leased(self, hosts: t.Sequence[Host], patience: float) -> bool:
        """Tell whether one of the hosts still has a lease after up to `patience` seconds."""
        deadline = time.monotonic() + patience
        gone = {(host.mac, host.ip) for host in hosts}
        while any(tuple(line.split(" ")[1:3]) in gone for line in (self._read("leases") or "").splitlines()):
            if time.monotonic() >= deadline:
                return True
            time.sleep(0.01)
        return False

    def _forget_leases(self, hosts: t.Sequence[Host]) -> None:
        leases = self._read("leases")
        gone = {(host.mac, host.ip) for host in hosts}
        if leases and gone:
            kept = [line for line in leases.splitlines(True) if tuple(line.split(" ")[1:3]) not in gone]
            with open(os.path.join(self.directory, "leases"), "w", encoding="utf-8") as handle:
                handle.write("".join(kept))  # in place: it belongs to dnsmasq's user

    def _release(self, host: Host) -> None:
        """Send dnsmasq the DHCPRELEASE that a guest which was ended could not send (RFC 2131, 4.4.6)."""
        lease = [line.split(" ") for line in (self._read("leases") or "").splitlines()]
        client = next((line[4] for line in lease if line[1:3] == [host.mac, host.ip] and len(line) > 4), None)
        if client is None:
            return
        mac, listen = bytes.fromhex(host.mac.replace(":", "")), self.network.listens_for(host.ip)
        options = b"\x63\x82\x53\x63" + bytes((53, 1, 7)) + bytes((54, 4)) + socket.inet_aton(listen)
        if client != "*":
            identifier = bytes.fromhex(client.replace(":", ""))
            options += bytes((61, len(identifier))) + identifier
        # a request over Ethernet (6 bytes of MAC); nothing else is filled in but the address and its MAC (RFC 2131, 2)
        head = struct.pack("!4BI4x4s12x16s192x", 1, 1, 6, 0, secrets.randbits(32), socket.inet_aton(host.ip), mac)
        with (
            contextlib.suppress(OSError, NotFoundError),
            entered(self.network.namespace),
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        ):
            # Bound to the bridge, else the kernel delivers it by way of lo, where this server does not listen.
            sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self.network.bridge.encode() + b"\0")
            sender.sendto(head + options + b"\xff", (listen, 67))

    def _take_back(self, was_running: bool) -> None:
        """Put the old files back, or remove the directory that this call made, and let the old server run again."""
        with contextlib.suppress(NovaliteError, OSError):
            if self._old["conf"] is None:
                self.process.stop()
                shutil.rmtree(self.directory)
                return
            for name, text in self._old.items():
                if text is not None and text != self._read(name):
                    write_less(os.path.join(self.directory, name), text)
            pid = self.process.pid()
            if was_running and pid is None:
                self._start()
            elif pid is not None:
                os.kill(pid, signal.SIGHUP)
