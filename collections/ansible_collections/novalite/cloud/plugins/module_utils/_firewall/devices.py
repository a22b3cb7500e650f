# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dispatch of a bridged packet to its instance's chain by the tap device that it leaves by, or came in by. Pure.

An address is what its sender writes: broadcast, multicast, an address that a guest gave itself or another guest's with
this one's MAC would find no chain, or a wrong one. The device is what the packet really reaches. So it comes first, and
addresses decide where no device is known: what is routed, and what the host itself sends. Up to LEAF devices are one
rule each; more of them are found through the first characters in which their names differ (tree.py)::

    nova-local      -m physdev --physdev-is-bridged -j nova-tap
    nova-tap        -m physdev --physdev-out tap0+ --physdev-is-bridged -g nova-tap-tap0
    nova-tap-tap0   -m physdev --physdev-out tap0a1b2c3d-4e --physdev-is-bridged -g nova-inst-17

Whoever is not ours falls through. A device whose port security is off is led by `nova-open` past all that, to
`nova-free-<id>`, which accepts whatever leaves by it. The same by the device that a packet came in by: `nova-dev` leads
to egress rules, `nova-nd` to the addresses that an instance may say are its own by neighbour discovery (Neutron:
`nd_target`).
"""

from __future__ import annotations

import ipaddress
import re
import typing as t

from .._errors import NovaliteError
from . import tree
from .dispatch import to_hex

LEAF = 24

Entries = tree.Entries  # device -> an instance's id
Devices = dict[str, Entries]  # by the root of a side
Chains = tree.Chains


class Side(t.NamedTuple):
    """Dispatch by tap device in one direction: its root chain, and the chains that it leads to."""

    root: str
    called_by: str  # by what is at its beginning; a built-in chain by its first rule
    match: str  # with {} for the device
    target: str  # prefix of the chains it leads to


TARGETS = "nova-target-"
ASKED = "nova-to-host"
TO = Side("nova-tap", "nova-local", "-m physdev --physdev-out {} --physdev-is-bridged", "nova-inst-")
FROM = Side("nova-dev", "nova-out", "-m physdev --physdev-in {}", "nova-out-")
OPEN = Side("nova-open", "nova-local", TO.match, "nova-free-")  # port security is off
ND = Side("nova-nd", "nova-out", "-m physdev --physdev-in {}", TARGETS)
SIDES = (TO, OPEN, FROM, ND)
JUDGED_BY_NOBODY = ("-j ACCEPT",)  # the rules of `nova-free-<id>`
ANY_TARGET = ("-j RETURN",)  # where the kernel cannot compare them
# What a guest asks of the host itself: one chain for all of them, which passage.py fills. Its devices are those of TO
# and OPEN.
ASKING = Side("nova-host", "INPUT", "-m physdev --physdev-in {}", "")
# What comes out of an isolated network's namespace (_network/namespaces.py) has been on no bridge of the host's.
_BY_THE_WAY_OUT = f"-i nt-+ -g {ASKED}"

ENTRY = re.compile(r"-m physdev --physdev-(?:out|in) (\S+)(?: --physdev-is-bridged)? -g (\S+)")
_NAME = re.compile(r"[0-9a-zA-Z_.-]{1,15}")
_NEXT_HEADER, _TARGET, _ICMPV6 = 6, 48, 58  # places in an IPv6 packet without extension headers
# Queries for listeners: a guest that does not hear them falls silent for a bridge that snoops.
_QUERIES = {
    "IPv4": "-d 224.0.0.1/32 -p 2 -j RETURN",
    "IPv6": "-d ff00::/8 -p ipv6-icmp -m icmp6 --icmpv6-type 130 -j RETURN",
}
# Detection of duplicates, by which a neighbour could be kept from using his address, and advertisements.
_ANNOUNCEMENTS = (
    f"-s ::/128 -p ipv6-icmp -m icmp6 --icmpv6-type 135 -j {ND.root}",
    f"-p ipv6-icmp -m icmp6 --icmpv6-type 136 -j {ND.root}",
)


def parse(instance: int, values: t.Iterable[str] | None) -> tuple[str, ...]:
    """An instance's `devices`, or its `open_devices`. Raises NovaliteError."""
    names = tuple(dict.fromkeys(str(value) for value in values or ()))
    for name in names:
        if not _NAME.fullmatch(name):
            raise NovaliteError(f"instance {instance}: {name!r} is not a name of a network device")
    return names


def heads(devices: Devices) -> dict[str, tuple[str, ...]]:
    """The rules that the chains which dispatch by address begin with."""
    return {
        TO.called_by: tuple(
            f"-m physdev --physdev-is-bridged -j {side.root}" for side in (OPEN, TO) if devices.get(side.root)
        ),
        FROM.called_by: (
            *(_ANNOUNCEMENTS if devices.get(ND.root) else ()),
            *((f"-j {FROM.root}",) if devices.get(FROM.root) else ()),
        ),
    }


def of(side: Side, devices: Devices) -> Entries:
    """The devices that are told apart on a side."""
    if side == ASKING:
        return {**devices.get(TO.root, {}), **devices.get(OPEN.root, {})}
    return devices.get(side.root, {})


def merged(
    old: Devices,
    instances: t.Mapping[str, t.Sequence[str]],
    opened: t.Mapping[str, t.Sequence[str]],
    keep: bool,
    family: str,
) -> Devices:
    """The devices by side after a request for the `instances` (id -> devices, and in `opened` those without port
    security); `keep` those of others. Of FROM what is kept only: who has egress rules is not known here."""
    requested_devices, freed = (
        {device: who for who, devices in of_whom.items() for device in devices} for of_whom in (instances, opened)
    )
    merged_sides = {}
    for side in SIDES:
        before = old.get(side.root, {}) if keep else {}
        merged_sides[side.root] = {
            device: who
            for device, who in before.items()
            if who not in instances and device not in requested_devices and device not in freed
        }
    merged_sides[TO.root].update(requested_devices)
    merged_sides[OPEN.root].update(freed)
    if family == "IPv6":
        merged_sides[ND.root].update(requested_devices)
    return merged_sides


def chains(side: Side, entries: Entries, family: str) -> Chains:
    """The chains that dispatch, with the root."""
    return changed(side, {}, entries, family).chains


def changed(side: Side, old: Entries, new: Entries, family: str) -> tree.Difference:
    """The chains that differ between `old` and `new`."""
    asking = (_BY_THE_WAY_OUT, "-m physdev ! --physdev-is-in -j RETURN")
    head = {TO.root: (_QUERIES[family],), ASKING.root: asking}.get(side.root, ())
    then, now = (tree.State(entries, head) if entries else tree.NOTHING for entries in (old, new))
    return tree.changed(_FORMS[side], then, now) if old != new else tree.Difference()


def _form(side: Side) -> tree.Form:
    return tree.Form(
        side.root,
        LEAF,
        LEAF,
        lambda prefix: f"{side.root}-{prefix}",
        lambda device, who: f"{side.match.format(device)} -g {side.target + who if side.target else ASKED}",
        lambda prefix, node: f"{side.match.format(prefix + '+')} -g {node}",
    )


_FORMS = {side: _form(side) for side in (*SIDES, ASKING)}


def read(side: Side, rules_of: t.Callable[[str], t.Sequence[str]]) -> Entries:
    """The entries of a side, from the rules that a host has."""
    return tree.read(side.root, rules_of, ENTRY, side.target, f"{side.root}-")


def targets_chain(own: t.Iterable[str], shared: t.Iterable[str] = ()) -> tuple[str, ...]:
    """The rules of `nova-target-<id>`: a neighbour advertisement, and the detection of duplicates, is about one of
    these IPv6 addresses (`fd00::5/128`), or is dropped. RFC 4861, 4.3 and 4.4: the target follows 8 bytes of ICMPv6.

    With extension headers before it, which no honest one has, the place would be another: those are dropped.
    """
    rules = [_about(to_hex(address), 128) for address in dict.fromkeys(own)]
    # of a pair that is a range, every address is named
    ranges = ipaddress.collapse_addresses(map(ipaddress.IPv6Network, shared)) if shared else ()
    rules += [_about(network.network_address.packed.hex(), network.prefixlen) for network in ranges]
    return (*rules, "-j DROP")


def _about(address: str, length: int) -> str:
    """The rule for the addresses that begin with the first `length` bits of `address` (32 hexadecimal digits).

    A program of classic BPF, instructions as `code jt jf k`: EL 9 and later have no xt_u32, which would do as well.
    """
    tests = [(f"48 0 0 {_NEXT_HEADER}", _ICMPV6)]
    for word in range((length + 31) // 32):
        bits = min(32, length - 32 * word)
        mask = 0xFFFFFFFF << 32 - bits & 0xFFFFFFFF
        load = f"32 0 0 {_TARGET + 4 * word}"
        tests.append(
            (load if bits == 32 else f"{load},84 0 0 {mask}", int(address[8 * word : 8 * word + 8], 16) & mask)
        )
    program = ["6 0 0 1", "6 0 0 0"]  # a match; none
    for load, value in reversed(tests):
        program = [*load.split(","), f"21 0 {len(program) - 1} {value}", *program]
    return f'-m bpf --bytecode "{len(program)},{",".join(program)}" -j RETURN'


def compare(rules: t.Collection[str]) -> bool:
    """Tell whether a host whose `nova-target-<id>` holds these can compare addresses as it is done here."""
    return bool(rules) and tuple(rules) != ANY_TARGET and not any("-m u32 " in rule for rule in rules)
