# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A hypervisor, its guests and their neighbours as network namespaces, and frames sent through them in batches.

::

    outside ---- uplink [ host: routes, bridge br0 10.99.0.1, fd99::1 ] br0 ---- guest-1 .. guest-n, bystander, witness
                                                                        br1 ---- twin-1, twin-2, twin-bystander, ...

br1 is an isolated network: nothing leads there, and it uses the addresses of br0 again.

Only `host` has an IP stack. The others are sockets that put frames on a wire and take frames off it, so that a packet
is exactly what a test says and nobody answers by himself. One process holds all of them.

No test waits for a packet that must not come. All frames are sent from one CPU, whose queue the kernel empties in
order; after a batch the witness sends a marker, no IP, to everybody, and when it has arrived, so has everything that
ever will.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import shutil
import socket
import subprocess
import time
import typing as t

from tests.packets import frames
from tests.packets.runner import Runner, entered, run_firewall

SOL_PACKET, PACKET_STATISTICS, PACKET_IGNORE_OUTGOING, ETH_P_ALL = 263, 6, 23, 3
BATCH = 256  # frames on the way at a time; the kernel's queue of a CPU holds 1,000
PATIENCE = 300.0  # seconds for a marker, which always comes

EMPTY = {
    "filter": ["*filter", ":INPUT ACCEPT", ":FORWARD ACCEPT", ":OUTPUT ACCEPT", "COMMIT"],
    "security": ["*security", ":INPUT ACCEPT", ":FORWARD ACCEPT", ":OUTPUT ACCEPT", "COMMIT"],
    "raw": ["*raw", ":PREROUTING ACCEPT", ":OUTPUT ACCEPT", "COMMIT"],
}
HOST_MAC, UPLINK_MAC = "fe:16:3e:00:00:01", "fe:16:3e:00:00:02"
HOST, HOST6, HOST_LINK = "10.99.0.1", "fd99::1", "fe80::1"


class Place(t.NamedTuple):
    """A place where frames enter and leave the wire. `outside` has every address beyond the bridge's networks."""

    name: str
    mac: str
    ip: str
    ip6: str
    link_local: str
    bridge: str = ""


class Packet(t.NamedTuple):
    """`packets` are sent from `sender` by hand of `gateway` (its MAC) or, from the host itself, by its routes."""

    serial: int
    sender: str
    receiver: str
    frames: tuple[bytes, ...]  # whole Ethernet frames; bare IP packets when the host sends


class Failed(Exception):
    """The module under test failed; the message is what it said."""


def run(*argv: str, text: str | None = None) -> str:
    """A command's output. Raises with what it said."""
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


class Bed:
    """Close it, or use it as a context manager: it removes its namespaces."""

    _count = itertools.count()

    def __init__(self, backend: str, guests: int, locks: str) -> None:
        self.backend = backend
        self.locks = locks
        self.prefix = f"nvp{os.getpid()}-{next(self._count)}-"
        self.places = {place.name: place for place in all_places(guests)}
        self.guests = [name for name in self.places if name.startswith("guest-")]
        self._serials = itertools.count(1)
        self._ends: dict[str, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._raw: dict[int, socket.socket] = {}
        self._inside: list[socket.socket] = []
        self._cpu = max(os.sched_getaffinity(0))
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Bed:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        for end in (*self._ends.values(), *self._raw.values(), *self._inside):
            end.close()
        self._selector.close()
        for name in self.places:
            subprocess.run(["ip", "netns", "del", self.prefix + name], check=False, capture_output=True)

    # ---- the host under test

    def on_host(self) -> t.ContextManager[None]:
        return entered(self.prefix + "host")

    def enforce(self, check: bool = False, **params: t.Any) -> dict[str, t.Any]:
        """Run the module `firewall` on the host, as Ansible would. Raises Failed with its message."""
        arguments = {"backend": self.backend, **params, "_ansible_check_mode": check, "_ansible_diff": True}
        result = run_firewall(self.prefix + "host", self.locks, arguments)
        if result.get("failed"):
            raise Failed(result["msg"])
        return result

    def runner(self) -> Runner:
        """The module in a process of its own; `backend` has to be among its arguments."""
        return Runner(self.prefix + "host", self.locks)

    def iptables(self, family: str, *words: str) -> str:
        with self.on_host():
            return run(f"{'ip6tables' if family == 'IPv6' else 'iptables'}-{self.backend}", *words)

    def saved(self, family: str) -> str:
        """The tables that are there as text, without counters and comments."""
        with self.on_host():
            text = run(f"{'ip6tables' if family == 'IPv6' else 'iptables'}-{self.backend}-save")
        return "\n".join(line.partition(" [")[0] for line in text.splitlines() if not line.startswith("#"))

    def saved_bridge(self) -> list[str]:
        """The table that bridged frames meet first."""
        with self.on_host():
            return [line for line in run("ebtables-save", "-t", "nat").splitlines() if not line.startswith("#")]

    def restore(self, family: str, text: str) -> None:
        """Make these the rules; tables that are not spoken of end up empty."""
        ruleset_lines = text.splitlines()
        rest = [line for table, lines in EMPTY.items() if f"*{table}" not in ruleset_lines for line in lines]
        with self.on_host():
            run(
                f"{'ip6tables' if family == 'IPv6' else 'iptables'}-{self.backend}-restore",
                text="\n".join([*ruleset_lines, *rest, ""]),
            )

    def sets(self) -> str:
        with self.on_host():
            return run("ipset", "save")

    def clear(self) -> None:
        """As after a boot: no rules, no sets, no connections. One shell: for Python to start a command costs as much as
        the command."""
        empty = "<<'END'\n" + "\n".join(itertools.chain(*EMPTY.values())) + "\nEND\n"
        second = "legacy" if self.backend == "nft" else "nft"
        script = ""
        for command in ("iptables", "ip6tables"):
            script += f"{command}-{self.backend}-restore {empty}"
            # of the other backend, where a test has put something there
            script += f"saved=$({command}-{second}-save)\n"
            script += f'case "$saved" in *nova*) {command}-{second}-restore {empty};; esac\n'
        with self.on_host():
            run("sh", "-e", text=f"{script}ipset destroy\nebtables -t nat --init-table\nconntrack -F\n")
        self.forget_notes()

    def forget_notes(self) -> None:
        """Remove what the module remembers of its last run: in /run, and gone after a boot (runner.own_locks)."""
        shutil.rmtree(os.path.join(self.locks, "notes"), ignore_errors=True)

    def connections(self) -> list[str]:
        with self.on_host():
            return [line for family in ("ipv4", "ipv6") for line in run("conntrack", "-L", "-f", family).splitlines()]

    def forget_connections(self) -> None:
        with self.on_host():
            subprocess.run(["conntrack", "-F"], check=True, capture_output=True)

    def tap(self, name: str) -> str:
        """The host's end of a place's wire."""
        return "up0" if name == "outside" else f"tap{list(self.places).index(name)}"

    # ---- packets

    def serial(self) -> int:
        return next(self._serials)

    def send(self, packets: t.Iterable[Packet]) -> set[int]:
        """Send them in order; the serials of those that came out at their receiver."""
        arrived: set[int] = set()
        packets = list(packets)
        expected = {packet.serial: packet.receiver for packet in packets}
        affinity = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self._cpu})
        try:
            for start in range(0, len(packets), BATCH):
                for packet in packets[start : start + BATCH]:
                    for frame in packet.frames:
                        self._put(packet.sender, frame)
                for serial, place in self._settle():
                    if expected.get(serial) == place:
                        arrived.add(serial)
        finally:
            os.sched_setaffinity(0, affinity)
        return arrived

    def _put(self, sender: str, frame: bytes) -> None:
        if sender != "host":
            self._ends[sender].send(frame)
            return
        with contextlib.suppress(PermissionError):  # so a process of the host learns that a rule dropped its packet
            if frame[0] >> 4 == 4:
                self._raw[4].sendto(frame, (socket.inet_ntoa(frame[16:20]), 0))
            else:
                scope = self._bridge_index if frame[24:26] == b"\xfe\x80" else 0
                self._raw[6].sendto(frame, (socket.inet_ntop(socket.AF_INET6, frame[24:40]), 0, 0, scope))

    def _settle(self) -> list[tuple[int, str]]:
        """Wait until everything on the way has arrived or is lost; (serial, place) of what arrived."""
        seen: list[tuple[int, str]] = []
        second = self.serial()
        broadcast = "ff:ff:ff:ff:ff:ff"
        for witness in ("twin-witness", "witness"):
            own, first = self.places[witness], self.serial()
            self._ends[witness].send(frames.ethernet(broadcast, own.mac, frames.MARKER_TYPE, frames.tag(first)))
            there = {name for name, place in self.places.items() if place.bridge == own.bridge and name != witness}
            self._drain(seen, first, there)
        # What the host takes for itself has passed its rules when a process gets it.
        for end in self._inside:
            with contextlib.suppress(BlockingIOError):
                while True:
                    serial = frames.serial_of(end.recv(65536))
                    if serial is not None:
                        seen.append((serial, "host"))
        # What the host routes out was on its way before the host's bridge saw the marker.
        self._ends["uplink"].send(frames.ethernet(broadcast, UPLINK_MAC, frames.MARKER_TYPE, frames.tag(second)))
        self._drain(seen, second, {"outside"})
        return seen

    def _drain(self, seen: list[tuple[int, str]], marker: int, waiting: set[str]) -> None:
        deadline = time.monotonic() + PATIENCE
        while waiting:
            ready = self._selector.select(max(0.0, deadline - time.monotonic()))
            if not ready and time.monotonic() >= deadline:
                raise RuntimeError(f"the marker did not arrive at {', '.join(sorted(waiting))}")
            for key, _events in ready:
                place = key.data
                mine = frames.mac(self.places[place].mac)
                while True:
                    try:
                        frame = key.fileobj.recv(65536)  # type: ignore[union-attr]  # sockets only are registered
                    except BlockingIOError:
                        break
                    serial = frames.serial_of(frame)
                    if serial == marker:
                        waiting.discard(place)
                    elif serial is not None and place != "host" and (frame[:6] == mine or frame[0] & 1):
                        seen.append((serial, place))
        for place, end in self._ends.items():
            _packets, dropped = memoryview(end.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8)).cast("I")
            if dropped:
                raise RuntimeError(f"{place} could not keep up: {dropped} frames lost")

    # ---- construction

    def _build(self) -> None:
        for name in self.places:
            run("ip", "netns", "add", self.prefix + name)
            with entered(self.prefix + name):
                _sysctl("net.ipv6.conf.default.accept_dad", "0")
                _sysctl("net.ipv6.conf.default.disable_ipv6", "0" if name == "host" else "1")
                _sysctl("net.ipv6.conf.all.disable_ipv6", "0" if name == "host" else "1")
                # A bridge that got a link-local address would speak by itself.
                _sysctl("net.ipv6.conf.default.addr_gen_mode", "1")
        lines = [
            "link set lo up",
            f"link add br0 address {HOST_MAC} type bridge forward_delay 0 mcast_snooping 0",
            "link set br0 up",
            "link add br1 type bridge forward_delay 0 mcast_snooping 0",
            "link set br1 up",
            f"addr add {HOST}/24 dev br0",
            f"addr add {HOST6}/64 dev br0 nodad",
            f"addr add {HOST_LINK}/64 dev br0 nodad",
        ]
        for place in self.places.values():
            if place.name == "host":
                continue
            tap = self.tap(place.name)
            peer = f"peer name eth0 address {place.mac} netns {self.prefix + place.name}"
            if place.name == "outside":
                lines += [
                    f"link add up0 address {UPLINK_MAC} type veth {peer}",
                    "link set up0 up",
                    "addr add 203.0.113.1/24 dev up0",
                    f"neigh add {place.ip} lladdr {place.mac} dev up0 nud permanent",
                    f"route add default via {place.ip} dev up0",
                    f"neigh add {place.link_local} lladdr {place.mac} dev up0 nud permanent",
                    f"route add default via {place.link_local} dev up0",
                ]
            else:
                lines += [f"link add {tap} type veth {peer}", f"link set {tap} master {place.bridge} up"]
                lines += [
                    f"neigh add {address} lladdr {place.mac} dev {place.bridge} nud permanent"
                    for address in (place.ip, place.ip6, place.link_local)
                ]
        with self.on_host():
            run("ip", "-batch", "-", text="\n".join(lines) + "\n")
            for place in self.places.values():
                if place.name not in ("host", "outside"):
                    run(
                        "bridge", "fdb", "replace", place.mac, "dev", self.tap(place.name), "master", "static", "sticky"
                    )  # or who sends under its MAC gets its frames
            for name, value in (
                ("net.ipv4.ip_forward", "1"),
                ("net.ipv6.conf.all.forwarding", "1"),
                ("net.ipv4.conf.all.rp_filter", "0"),
                ("net.ipv4.conf.default.rp_filter", "0"),
                ("net.ipv4.conf.up0.rp_filter", "0"),
                ("net.ipv4.conf.br0.rp_filter", "0"),
                ("net.ipv4.conf.all.send_redirects", "0"),
                ("net.ipv4.conf.br0.send_redirects", "0"),
                ("net.ipv4.icmp_ratelimit", "0"),
            ):
                _sysctl(name, value)
            self._bridge_index = socket.if_nametoindex("br0")
            self._listen("host", "br0")
            self._listen("uplink", "up0", listens=False)
            self._raw[4] = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
            self._raw[6] = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW)
            for family, protocols in (
                (socket.AF_INET, (frames.TCP, frames.UDP, frames.ICMP)),
                (socket.AF_INET6, (frames.TCP, frames.UDP, frames.ICMPV6)),
            ):
                for protocol in protocols:
                    end = socket.socket(family, socket.SOCK_RAW, protocol)
                    end.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
                    end.setblocking(False)
                    self._inside.append(end)
        for place in self.places.values():
            if place.name == "host":
                continue
            with entered(self.prefix + place.name):
                run("ip", "link", "set", "eth0", "up", "arp", "off")
                self._listen(place.name, "eth0")

    def _listen(self, place: str, device: str, listens: bool = True) -> None:
        # Protocol 0 until it is bound: nothing of another device gets in.
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        end.setsockopt(socket.SOL_SOCKET, 33, 32 << 20)  # SO_RCVBUFFORCE
        end.setblocking(False)
        end.bind((device, ETH_P_ALL if listens else 0))
        self._ends[place] = end
        if listens:
            self._selector.register(end, selectors.EVENT_READ, place)


def all_places(guests: int) -> t.Iterator[Place]:
    yield Place("host", HOST_MAC, HOST, HOST6, HOST_LINK, "br0")
    for number in range(1, guests + 1):
        yield _on_the_bridge(f"guest-{number}", 10 + number)
    yield _on_the_bridge("bystander", 200)
    yield _on_the_bridge("witness", 201)
    for name, number in (("twin-1", 11), ("twin-2", 12), ("twin-bystander", 200), ("twin-witness", 201)):
        yield _on_the_bridge(name, number)._replace(mac=f"fa:16:3e:00:01:{number:02x}", bridge="br1")
    yield Place("outside", "fe:16:3e:00:00:03", "203.0.113.2", "2001:db8:ffff::2", "fe80::2")


def _on_the_bridge(name: str, number: int) -> Place:
    mac = f"fa:16:3e:00:00:{number:02x}"
    return Place(name, mac, f"10.99.0.{number}", f"fd99::{number:x}", f"fe80::f816:3eff:fe00:{number:x}", "br0")


def _sysctl(name: str, value: str) -> None:
    with open(f"/proc/sys/{name.replace('.', '/')}", "w", encoding="ascii") as handle:
        handle.write(value)
