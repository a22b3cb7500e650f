#!/usr/bin/python3
"""A station on the guests' wire, in one VLAN: answers ARP and ping for one address, and tells what it heard.

Reads and writes whole frames, tags included, so the machine needs no 802.1Q of its own. Ends after --pings answers or
--seconds, with one line of JSON: the pings answered, and the number of frames from others by VLAN (0: untagged).
"""

from __future__ import annotations

import argparse
import collections
import ipaddress
import json
import socket
import struct
import time

SOL_PACKET = 263
PACKET_AUXDATA = 8
TP_STATUS_VLAN_VALID = 0x10
ETH_P_ALL = 0x0003
ETH_P_ARP = 0x0806
ETH_P_IP = 0x0800
ETH_P_8021Q = 0x8100
MAC = bytes.fromhex("02000000feed")
# struct tpacket_auxdata: status, len, snaplen, mac, net, vlan_tci, vlan_tpid
AUXDATA = struct.Struct("=IIIHHHH")


def receive(wire: socket.socket) -> tuple[int, bytes]:
    """The next frame without its tag, and its VLAN. The kernel takes the tag out of the frame and tells it aside."""
    frame, extras, _flags, _address = wire.recvmsg(65535, socket.CMSG_SPACE(AUXDATA.size))
    for level, kind, data in extras:
        if (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
            status, _, _, _, _, tci, _ = AUXDATA.unpack(data[: AUXDATA.size])
            if status & TP_STATUS_VLAN_VALID:
                return tci & 0xFFF, frame
    if frame[12:14] == ETH_P_8021Q.to_bytes(2, "big"):
        return int.from_bytes(frame[14:16], "big") & 0xFFF, frame[:12] + frame[16:]
    return 0, frame


def answer(frame: bytes, address: bytes) -> tuple[bytes, bool] | None:
    """Return what the station with this address says to a frame, and whether that answers a ping."""
    source, kind, payload = frame[6:12], int.from_bytes(frame[12:14], "big"), frame[14:]
    if kind == ETH_P_ARP and payload[6:8] == b"\0\1" and payload[24:28] == address:
        arp = payload[:6] + b"\0\2" + MAC + address + payload[8:18]
        return source + MAC + frame[12:14] + arp, False
    if kind == ETH_P_IP and payload[9] == socket.IPPROTO_ICMP and payload[16:20] == address:
        size = (payload[0] & 15) * 4
        icmp = payload[size : int.from_bytes(payload[2:4], "big")]
        if icmp[:1] != b"\x08":
            return None
        # the address pair changes places, which leaves the header's checksum as it is
        header = payload[:12] + address + payload[12:16] + payload[20:size]
        body = b"\0\0\0\0" + icmp[4:]
        return source + MAC + frame[12:14] + header + body[:2] + checksum(body) + body[4:], True
    return None


def checksum(data: bytes) -> bytes:
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    total = (total >> 16) + (total & 0xFFFF)
    return (~(total + (total >> 16)) & 0xFFFF).to_bytes(2, "big")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interface", default="wire")
    parser.add_argument("--vlan", type=int, required=True)
    parser.add_argument("--address", type=ipaddress.IPv4Address, required=True)
    parser.add_argument("--pings", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()

    heard: collections.Counter[int] = collections.Counter()
    answered = 0
    end = time.monotonic() + options.seconds
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as wire:
        wire.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        # SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC: frames for this station's own MAC
        wire.setsockopt(SOL_PACKET, 1, struct.pack("=iHH8x", socket.if_nametoindex(options.interface), 1, 0))
        wire.bind((options.interface, ETH_P_ALL))
        while answered < options.pings and (left := end - time.monotonic()) > 0:
            wire.settimeout(left)
            try:
                vlan, frame = receive(wire)
            except TimeoutError:
                break
            if frame[6:12] == MAC:
                continue
            heard[vlan] += 1
            reply = answer(frame, options.address.packed) if vlan == options.vlan else None
            if reply:
                message, is_ping = reply
                answered += is_ping
                wire.send(message[:12] + struct.pack("!HH", ETH_P_8021Q, vlan) + message[12:] if vlan else message)
    print(json.dumps({"answered": answered, "heard": {str(vlan): count for vlan, count in sorted(heard.items())}}))


main()
