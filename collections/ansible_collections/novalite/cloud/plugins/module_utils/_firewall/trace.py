# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A packet's way through the chains of a host as they are, rule by rule with their counters. Pure.

It reads what `iptables-save -c` prints and asks of each rule what the kernel would, for the first packet of a
connection. Rules that are not novalite's are read as well; one whose match is not known here is passed over, and the
verdict is uncertain then.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import shlex
import typing as t

from .._json import JsonObject
from .rules import NUMBERS

TABLES = ("filter", "security")  # in the order in which a packet comes to them; where novalite judges
ACCEPT, DROP, REJECT, RETURN = "ACCEPT", "DROP", "REJECT", "RETURN"
DEEPEST = 40  # chains that call each other
LONGEST = 400  # rules that match on a packet's way

# ICMP that opens a conversation, and what conntrack does not look at
_REQUESTS = {1: (8, 13, 15, 17), 58: (128, 139)}
_UNTRACKED = (130, 131, 132, 133, 134, 135, 136, 143)
_COUNTED = re.compile(r"\[(\d+):(\d+)\] -A (\S+) ?(.*)")
_POLICY = re.compile(r":(\S+) (\S+)")
_PASSING = ("LOG", "NFLOG", "MARK", "CONNMARK", "CT", "AUDIT", "CHECKSUM", "TRACE", "TCPMSS", "SET", "CLASSIFY")
_UNNAMED = {"ipv6-icmp": 58, "icmp": 1, "all": None}

Sets = t.Callable[[str], t.Optional[t.Container[str]]]  # the members of a set by its name; None where there is none


@dataclasses.dataclass(frozen=True)
class Packet:
    """The first packet of a connection, as a host meets it. `port` is a port or an ICMP type, `code` an ICMP code.

    `hook` is FORWARD, INPUT or OUTPUT. `device_in` and `device_out` are ports of a bridge that it comes in by and
    leaves by (the latter only where it is bridged), `interface_in` and `interface_out` the bridges or interfaces.
    """

    source: str
    destination: str
    protocol: int | None = None
    port: int | None = None
    code: int | None = None
    source_port: int | None = None
    hook: str = "FORWARD"
    interface_in: str = ""
    interface_out: str = ""
    device_in: str = ""
    device_out: str = ""

    @property
    def family(self) -> str:
        return "IPv6" if ":" in self.source else "IPv4"

    @property
    def state(self) -> str:
        """The state that conntrack gives to it."""
        if self.protocol == 58 and self.port in _UNTRACKED:
            return "UNTRACKED"
        requests = _REQUESTS.get(self.protocol or 0)
        return "INVALID" if requests and self.port is not None and self.port not in requests else "NEW"


class Line(t.NamedTuple):
    """A rule with its counters."""

    packets: int
    octets: int
    rule: str


@dataclasses.dataclass(frozen=True)
class Table:
    chains: t.Mapping[str, t.Sequence[Line]]
    policies: t.Mapping[str, str]


@dataclasses.dataclass
class Walk:
    """`verdict` is ACCEPT, DROP or REJECT. `passed` are the rules that matched on the way, `unknown` those that were
    passed over because it is not known here what they match."""

    verdict: str
    passed: list[JsonObject] = dataclasses.field(default_factory=list)
    unknown: list[str] = dataclasses.field(default_factory=list)

    @property
    def accepted(self) -> bool:
        return self.verdict == ACCEPT


def parse(text: str) -> dict[str, Table]:
    """Read the output of `iptables-save -c`: the tables by name."""
    tables: dict[str, Table] = {}
    chains: dict[str, list[Line]] = {}
    policies: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("*"):
            chains, policies = {}, {}
            tables[line[1:].strip()] = Table(chains, policies)
        elif match := _POLICY.match(line):
            chains.setdefault(match[1], [])
            if match[2] != "-":
                policies[match[1]] = match[2]
        elif match := _COUNTED.match(line):
            chains.setdefault(match[3], []).append(Line(int(match[1]), int(match[2]), match[4].rstrip()))
    return tables


def walk(tables: t.Mapping[str, Table], packet: Packet, members: Sets = lambda _name: None) -> Walk:
    """Return the way of `packet` through the `tables` of its family."""
    done = Walk(ACCEPT)
    for name in TABLES:
        table = tables.get(name)
        if table is None or packet.hook not in table.chains:
            continue
        verdict = _chain(name, table, packet.hook, packet, members, done, DEEPEST)
        policy = table.policies.get(packet.hook, ACCEPT)
        if verdict is None and policy != ACCEPT:
            done.passed.append({"table": name, "chain": packet.hook, "rule": f"policy {policy}"})
        done.verdict = verdict or policy
        if not done.accepted:
            break
    return done


def _chain(name: str, table: Table, chain: str, packet: Packet, members: Sets, done: Walk, depth: int) -> str | None:
    """The verdict of a chain; None where the packet comes back from it."""
    for line in table.chains.get(chain, ()):
        matches, target, goes = _asks(line.rule, packet, members)
        if matches is None and target not in _PASSING:
            done.unknown.append(f"{name} {chain}: {line.rule}")
            continue
        if not matches or target is None:
            continue
        if len(done.passed) < LONGEST:
            counters = {"packets": line.packets, "bytes": line.octets}
            done.passed.append({"table": name, "chain": chain, "rule": line.rule, **counters})
        if target == RETURN:
            return None
        if target in (ACCEPT, DROP, REJECT):
            return target
        if target in table.chains and depth:
            verdict = _chain(name, table, target, packet, members, done, depth - 1)
            if verdict is not None or goes:
                return verdict
        elif target not in _PASSING:
            done.unknown.append(f"{name} {chain}: {line.rule}")
    return None


def _asks(rule: str, packet: Packet, members: Sets) -> tuple[bool | None, str | None, bool]:
    """Tell whether a rule matches (None: not known here), its target, and whether it is gone to."""
    words = shlex.split(rule)
    target, goes, unknown, negated = None, False, False, False
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if word == "!":
            negated = True
            continue
        if word in ("-j", "-g"):
            target, goes = words[place], word == "-g"
            break  # what comes after are the target's own options
        count = 2 if word in ("--tcp-flags", "--match-set") else 0 if word in _FLAGS else 1
        values = words[place : place + count]
        place += count
        answer = _matches(word, values, packet, members)
        if answer is None:
            unknown = True
        elif answer == negated:
            return False, target, goes
        negated = False
    return (None if unknown else True), target, goes


_FLAGS = ("--physdev-is-bridged", "--physdev-is-in", "--physdev-is-out", "--syn")


def _matches(option: str, values: t.Sequence[str], packet: Packet, members: Sets) -> bool | None:
    """Tell whether one option of a rule holds; None where it is not known here."""
    value = values[0] if values else ""
    if option in ("-m", "--comment"):
        return True
    if option in ("-s", "-d"):
        address = packet.source if option == "-s" else packet.destination
        return ipaddress.ip_address(address) in ipaddress.ip_network(value, strict=False)
    if option in _DEVICES:
        return _named(value, getattr(packet, _DEVICES[option]))
    if option == "-p":
        return packet.protocol == _number(value)
    if option in ("--dport", "--dports", "--sport", "--sports"):
        return _ported(value, packet.port if option.startswith("--d") else packet.source_port)
    if option in ("--icmp-type", "--icmpv6-type"):
        kind, _slash, code = value.partition("/")
        return kind in ("any", "255") or (_is(kind, packet.port) and (not code or _is(code, packet.code)))
    if option in ("--ctstate", "--state"):
        return packet.state in value.split(",")
    if option == "--ctdir":
        return value == "ORIGINAL"
    if option == "--tcp-flags":  # of a SYN
        return set(values[0].split(",")) & {"SYN", "ALL"} == set(values[1].split(",")) - {"NONE"}
    if option == "--match-set":
        there = members(value)
        return None if there is None else (packet.source if values[1] == "src" else packet.destination) in there
    if option == "--bytecode":
        return _filtered(value, packet)
    return _FLAG_OF[option](packet) if option in _FLAG_OF else None


def _filtered(program: str, packet: Packet) -> bool | None:
    """Run a program of classic BPF (devices.py) over an IPv6 packet; None for what else there is.

    A neighbour advertisement is about its source, and a solicitation about its destination.
    """
    if packet.family != "IPv6":
        return None
    ends = [ipaddress.IPv6Address(text).packed for text in (packet.source, packet.destination)]
    about = {135: ends[1], 136: ends[0]}.get(packet.port or 0, bytes(16))
    octets = bytes(6) + bytes([packet.protocol or 59, 255]) + b"".join(ends) + bytes(8) + about
    instructions = [tuple(map(int, part.split())) for part in program.split(",")[1:]]
    place = value = 0
    while place < len(instructions):  # jumps lead forward only
        code, if_true, if_false, constant = instructions[place]
        place += 1
        if code in (48, 32):  # a byte, a word
            value = int.from_bytes(octets[constant : constant + (1 if code == 48 else 4)], "big")
        elif code == 84:
            value &= constant
        elif code == 21:
            place += if_true if value == constant else if_false
        else:
            return bool(constant) if code == 6 else None
    return None


_DEVICES = {
    **{"-i": "interface_in", "-o": "interface_out"},
    **{"--physdev-in": "device_in", "--physdev-out": "device_out"},
}
_FLAG_OF: dict[str, t.Callable[[Packet], bool]] = {
    "--physdev-is-bridged": lambda packet: bool(packet.device_in and packet.device_out),
    "--physdev-is-in": lambda packet: bool(packet.device_in),
    "--physdev-is-out": lambda packet: bool(packet.device_out),
    "--syn": lambda packet: packet.protocol == 6,
}


def _named(pattern: str, name: str) -> bool:
    return bool(name) and (name.startswith(pattern[:-1]) if pattern.endswith("+") else name == pattern)


def _number(name: str) -> int | None:
    return int(name) if name.isdecimal() else _UNNAMED.get(name, NUMBERS.get(name))


def _is(text: str, number: int | None) -> bool:
    return text.isdecimal() and int(text) == number


def _ported(ranges: str, port: int | None) -> bool:
    if port is None:
        return False
    for part in ranges.split(","):
        low, _colon, high = part.partition(":")
        if int(low or 0) <= port <= int(high or (65535 if _colon else low)):
            return True
    return False


def lines(done: Walk) -> list[str]:
    """The way in words, one line for each rule."""
    shown = []
    for step in done.passed:
        counted = f"  ({step['packets']} packets, {step['bytes']} bytes)" if "packets" in step else ""
        shown.append(f"{step['table']} {step['chain']}: {step['rule']}{counted}")
    shown += [f"passed over, for it is not known here what it matches: {rule}" for rule in done.unknown]
    return [*shown, f"{done.verdict}{' (uncertain)' if done.unknown else ''}"]
