# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ethernet frames, byte by byte. Nothing here knows a rule.

Every packet carries a mark and a number of its own, by which it is recognised where it comes out.
"""

from __future__ import annotations

import functools
import socket
import struct

MARK = b"novalite"
MARKER_TYPE = 0x88B5  # IEEE: for local experiments; no IP, so no iptables rule sees it
IPV4, IPV6, ARP = 0x0800, 0x86DD, 0x0806
ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


def tag(serial: int) -> bytes:
    """The payload of packet number `serial`."""
    return MARK + struct.pack("!I", serial)


def serial_of(frame: bytes) -> int | None:
    """Return the serial number of our packet that a frame is; None for what somebody else sent."""
    place = frame.find(MARK)
    if place < 0 or len(frame) < place + len(MARK) + 4:
        return None
    return int(struct.unpack_from("!I", frame, place + len(MARK))[0])


@functools.cache
def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def ethernet(to: str, sender: str, kind: int, body: bytes) -> bytes:
    return mac(to) + mac(sender) + struct.pack("!H", kind) + body


def arp(operation: int, sender_mac: str, sender: str, target_mac: str, target: str) -> bytes:
    """The body of an ARP request (1) or reply (2)."""
    return (
        struct.pack("!HHBBH", 1, IPV4, 6, 4, operation)
        + mac(sender_mac)
        + socket.inet_aton(sender)
        + mac(target_mac)
        + socket.inet_aton(target)
    )


def ip(source: str, destination: str, protocol: int, body: bytes, *, ident: int = 0, hops: int = 64) -> bytes:
    """An IPv4 or IPv6 packet; TCP, UDP and ICMP get their checksum."""
    body = _with_checksum(source, destination, protocol, body)
    if ":" not in source:
        return ipv4_header(source, destination, protocol, len(body), ident=ident, hops=hops) + body
    head = struct.pack("!IHBB", 6 << 28, len(body), protocol, hops)
    return head + address(source) + address(destination) + body


def ipv4_header(
    source: str, destination: str, protocol: int, length: int, *, ident: int = 0, hops: int = 64, fragment: int = 0
) -> bytes:
    """`fragment` is the field of that name: flags in the upper three bits, offset in units of 8 bytes below."""
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + length, ident & 0xFFFF, fragment, hops, protocol, 0)
    head += address(source) + address(destination)
    return head[:10] + struct.pack("!H", _sum(head)) + head[12:]


def fragments(source: str, destination: str, protocol: int, body: bytes, *, ident: int, cut: int = 24) -> list[bytes]:
    """The packet in two pieces; the first holds `cut` bytes (a multiple of 8)."""
    body = _with_checksum(source, destination, protocol, body)
    pieces = (body[:cut], body[cut:])
    if ":" not in source:
        fields = (0x2000, cut // 8)
        return [
            ipv4_header(source, destination, protocol, len(piece), ident=ident, fragment=field) + piece
            for piece, field in zip(pieces, fields, strict=True)
        ]
    packets = []
    for piece, field in zip(pieces, (1, cut), strict=True):  # offset in the upper 13 bits, "more" in the lowest
        extension = struct.pack("!BBHI", protocol, 0, field, ident) + piece
        packets.append(
            struct.pack("!IHBB", 6 << 28, len(extension), 44, 64) + address(source) + address(destination) + extension
        )
    return packets


def tcp(source: int, destination: int, flags: int, payload: bytes, *, seq: int = 1000, ack: int = 0) -> bytes:
    return struct.pack("!HHIIBBHHH", source, destination, seq, ack, 5 << 4, flags, 65535, 0, 0) + payload


def udp(source: int, destination: int, payload: bytes) -> bytes:
    return struct.pack("!HHHH", source, destination, 8 + len(payload), 0) + payload


def icmp(kind: int, code: int, payload: bytes, *, word: int = 0) -> bytes:
    """ICMP or ICMPv6; `word` are the four bytes after the checksum (identifier and sequence number of an echo)."""
    return struct.pack("!BBHI", kind, code, 0, word) + payload


def _with_checksum(source: str, destination: str, protocol: int, body: bytes) -> bytes:
    place = {TCP: 16, UDP: 6, ICMP: 2, ICMPV6: 2}.get(protocol)
    if place is None or len(body) < place + 2:
        return body
    pseudo = b""
    if protocol != ICMP:
        pseudo = address(source) + address(destination) + struct.pack("!II", len(body), protocol)
    value = _sum(pseudo + body)
    if protocol == UDP and value == 0:
        value = 0xFFFF
    return body[:place] + struct.pack("!H", value) + body[place + 2 :]


def _sum(data: bytes) -> int:
    if len(data) % 2:
        data += b"\0"
    number = int.from_bytes(data, "big")  # of digits to the base 65536, whose sum it is but for multiples of 65535
    return ~(number % 0xFFFF or (number and 0xFFFF)) & 0xFFFF


@functools.cache
def address(text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
