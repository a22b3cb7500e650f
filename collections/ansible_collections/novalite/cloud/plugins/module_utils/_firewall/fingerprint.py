# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fingerprint of a host's packet filter: shows whether anybody has written to it since we did, without reading it.

nftables counts its transactions: as long as the count stands still, nothing has changed, whoever it were. The legacy
tables have no such count; the kernel says in no time how many rules a table has, how many bytes they take and where
its hooks begin, which shows whatever is added or taken away, but not one rule put in the place of another of the same
size. So where legacy tables are small enough to be read quickly, they are read (see `trusted`).
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import typing as t

from .._host.files import read_text

LEGACY_ENTRIES = 5000  # read in less than 20 ms

_GET_GENERATION = 10 << 8 | 16  # NFNL_SUBSYS_NFTABLES, NFT_MSG_GETGEN
_NEW_GENERATION = 10 << 8 | 15
_NETLINK_NETFILTER = 12
_SO_NETNS_COOKIE = 71
_GET_INFO = 64  # IPT_SO_GET_INFO, IP6T_SO_GET_INFO
_INFO = struct.Struct("=32s13I")
_LEVEL = {"IPv4": (socket.AF_INET, socket.IPPROTO_IP), "IPv6": (socket.AF_INET6, socket.IPPROTO_IPV6)}
_NAMES = {"IPv4": "/proc/net/ip_tables_names", "IPv6": "/proc/net/ip6_tables_names"}


class Fingerprint(t.TypedDict):
    """The state of the packet filter of a network namespace at one moment; kept as JSON."""

    namespace: list[t.Union[str, int]]
    generation: t.Optional[int]
    legacy: dict[str, list[int]]


def generation() -> int | None:
    """nftables' count of transactions in this network namespace; None where the kernel does not say."""
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER) as link:
            link.settimeout(2)
            # struct nlmsghdr, struct nfgenmsg
            link.sendto(struct.pack("=IHHII", 20, _GET_GENERATION, 1, 1, 0) + b"\0\0\0\0", (0, 0))
            answer = link.recv(4096)
    except OSError:
        return None
    length, kind = struct.unpack_from("=IH", answer)
    offset = 20
    while kind == _NEW_GENERATION and offset + 8 <= min(length, len(answer)):
        size, attribute = struct.unpack_from("=HH", answer, offset)
        if attribute == 1:  # NFTA_GEN_ID
            return int(struct.unpack_from(">I", answer, offset + 4)[0])
        offset += max(4, (size + 3) & ~3)
    return None


def namespace() -> list[str | int]:
    """The identity of this network namespace, of this boot."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as handle:
        identity: list[str | int] = [handle.read().strip(), os.stat("/proc/thread-self/ns/net").st_ino]
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            identity.append(any_socket.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8).hex())
    except OSError:
        pass  # before Linux 5.14: an inode may come again after its namespace has gone
    return identity


def legacy_tables() -> dict[str, list[int]]:
    """`IPv4 filter` -> size and shape of each legacy table that is there. Asking for one that is not would make it."""
    tables: dict[str, list[int]] = {}
    for family in _LEVEL:
        for name in sorted((read_text(_NAMES[family]) or "").split()):
            info = _legacy_info(family, name)
            if info is not None:
                tables[f"{family} {name}"] = info
    return tables


def take() -> Fingerprint:
    return {"namespace": namespace(), "generation": generation(), "legacy": legacy_tables()}


def trusted(then: Fingerprint, backend: str, now: Fingerprint, thorough: bool, rules: bool = True) -> bool:
    """Tell whether the tables of `backend` are as they were. `thorough`: do not take the legacy tables' shape for it.
    `rules`: whether it is about rules at all, or only about sets of addresses."""
    if then != now or now["generation"] is None:
        return False
    if backend == "nft":
        return True
    return not thorough and (not rules or sum(info[0] for info in now["legacy"].values()) > LEGACY_ENTRIES)


def _legacy_info(family: str, table: str) -> list[int] | None:
    """[entries, bytes, where hooks and policies begin]."""
    domain, level = _LEVEL[family]
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(table.encode().ljust(32, b"\0") + bytes(_INFO.size - 32), _INFO.size)
    length = ctypes.c_uint(_INFO.size)
    try:
        with socket.socket(domain, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
            if libc.getsockopt(raw.fileno(), level, _GET_INFO, buffer, ctypes.byref(length)):
                return None
    except OSError:
        return None
    numbers = _INFO.unpack(buffer.raw)[1:]
    return [numbers[11], numbers[12], *numbers[:11]]
