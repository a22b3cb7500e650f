"""firewall.packet_*: what a packet to the last of n instances costs, beside three conntrack rules.

Small UDP packets are sent by one process through a router's namespace, to whose end nobody listens; the whole way is
timed, in turn through a router with our rules and one with three. The dearer of two kinds counts: packets of one flow,
and packets that each open a flow. firewall.bridged_*: the same from the first of n instances to the last on one bridge
that shows its packets to iptables, where they are told apart by device; the reference's bridge does so, too.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import subprocess
import tempfile
import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._firewall import apply, arguments

BURST = 3000
ROUNDS = int(os.environ.get("NOVALITE_BENCH_ROUNDS", "25"))
PORT = 443
_CLONE_NEWNET = 0x40000000
_REFERENCE = """*filter
-A FORWARD -m conntrack --ctstate INVALID -j DROP
-A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -p udp -m udp --dport 443 -j ACCEPT
COMMIT
"""
_RULES = [{"protocol": "tcp", "port_min": port} for port in (22, 80, 443)]
_RULES += [{"protocol": "icmp"}, {"protocol": "udp", "port_min": PORT}]


def cost(of: tuple[str, int]) -> t.Iterator[dict[str, t.Any]]:
    name, count = of
    kind = BridgedPath if name == "bridged" else Path
    with tempfile.TemporaryDirectory() as directory:
        ours, reference = kind(count), kind(count)
        ours.in_router(lambda: _our_rules(count, directory))
        reference.in_router(lambda: _run("iptables-nft-restore", "--noflush", stdin=_REFERENCE))
        figures = []
        for fresh in (False, True):
            times: tuple[list[float], list[float]] = ([], [])
            for round_ in range(ROUNDS):
                for path, of_path in zip((ours, reference), times):
                    of_path.append(path.burst(round_, fresh))
            best = [min(of_path) / BURST * 1e9 for of_path in times]
            figures.append((best[0] / best[1], best))
    ratio, (mine, theirs) = max(figures)
    yield {
        "bench": f"firewall.{name}_{count}",
        "ours": round(mine),
        "reference": round(theirs),
        "ratio": round(ratio, 3),
        "unit": "ns",
    }


def address(number: int) -> str:
    return f"10.0.{number >> 8}.{number & 255}"


def device(number: int) -> str:
    return f"tap{number:04x}"


class Path:
    """A sender's, a router's and a guest's namespace."""

    source = "192.168.0.2"

    def __init__(self, count: int) -> None:
        self.target = address(count)
        self.sender, self.router, self.guest = (_namespace() for _place in range(3))
        self._lay(count)
        with open_in(self.guest):
            self.sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            self.sink.bind((self.target, PORT))
        with open_in(self.sender):
            self.raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)

    def _lay(self, count: int) -> None:
        for number, place in enumerate((self.sender, self.guest)):
            self._wire(f"leg{number}", place, f"192.168.{number}.2/24")
            with open_in(self.router):
                _run("ip", "address", "add", f"192.168.{number}.1/24", "dev", f"leg{number}")
            with open_in(place):
                _run("ip", "route", "add", "default", "via", f"192.168.{number}.1")
        with open_in(self.router):
            for name in ("net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding"):
                with open(f"/proc/sys/{name}", "w", encoding="ascii") as handle:
                    handle.write("1\n")
            _run("ip", "route", "add", f"{self.target}/32", "via", "192.168.1.2")
        with open_in(self.guest):
            _run("ip", "address", "add", f"{self.target}/32", "dev", "lo")

    def _wire(self, name: str, place: int, address: str) -> None:
        with open_in(self.router):
            _run(
                "ip",
                "link",
                "add",
                name,
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                f"/proc/{os.getpid()}/fd/{place}",
            )
            _run("ip", "link", "set", name, "up")
        with open_in(place):
            _run("ip", "link", "set", "lo", "up")
            _run("ip", "address", "add", address, "dev", "eth0")
            _run("ip", "link", "set", "eth0", "up")

    def in_router(self, work: t.Callable[[], t.Any]) -> None:
        with open_in(self.router):
            work()

    def burst(self, round_: int, fresh: bool) -> float:
        """Seconds for BURST packets, of one flow or each of its own."""
        first = 1024 + round_ * BURST % 60000
        ports = (1024 + (first + number) % 60000 if fresh else 1024 for number in range(BURST))
        packets = [_packet(self.source, self.target, port) for port in ports]
        if fresh:
            self.in_router(lambda: _run("conntrack", "-F"))
        send, to = self.raw.sendto, (self.target, 0)
        for packet in packets[:10]:
            send(packet, to)
        began = time.perf_counter()
        for packet in packets:
            send(packet, to)
        return time.perf_counter() - began


class BridgedPath(Path):
    """Two guests on a bridge."""

    source = address(1)

    def _lay(self, count: int) -> None:
        with open_in(self.router):
            _run("ip", "link", "add", "br0", "type", "bridge", "nf_call_iptables", "1", "mcast_snooping", "0")
            _run("ip", "link", "set", "br0", "up")
        for number, place in ((1, self.sender), (count, self.guest)):
            self._wire(device(number), place, f"{address(number)}/8")
            with open_in(self.router):
                _run("ip", "link", "set", device(number), "master", "br0")


class open_in:
    """The block runs in a network namespace."""

    _libc = ctypes.CDLL(None, use_errno=True)

    def __init__(self, place: int) -> None:
        self._place = place

    def __enter__(self) -> None:
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._enter(self._place)

    def __exit__(self, *_error: object) -> None:
        self._enter(self._home)
        os.close(self._home)

    def _enter(self, place: int) -> None:
        if self._libc.setns(place, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


def _namespace() -> int:
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    if open_in._libc.unshare(_CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    made = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    open_in(home)._enter(home)
    os.close(home)
    return made


def _our_rules(count: int, directory: str) -> None:
    members = [
        {
            "id": number,
            "addresses": [address(number)],
            "devices": [device(number)],
            "dhcp_servers": ["10.0.255.254"],
            "security_groups": [number // 50],
        }
        for number in range(1, count + 1)
    ]
    groups = [{"id": number, "rules": _RULES} for number in sorted({number // 50 for number in range(1, count + 1)})]
    request = arguments.Request(tuple(arguments.parse_instances(members)), tuple(arguments.parse_groups(groups)))
    apply.apply(request, backend="nft", directory=directory)


def _packet(source: str, target: str, port: int) -> bytes:
    """An IPv4 packet with a UDP datagram of one byte; the kernel fills in length and checksum of the header."""
    udp = struct.pack(">HHHH", port, PORT, 9, 0) + b"x"
    return (
        struct.pack(
            ">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(target)
        )
        + udp
    )


def _run(*words: str, stdin: str | None = None) -> None:
    subprocess.run(words, check=True, capture_output=True, input=stdin, text=True)
