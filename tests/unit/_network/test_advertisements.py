# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Router advertisements for guests, on a bridge of others, in network namespaces."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
import typing as t

import pytest

from tests.unit._network.test_on_a_host import MINE, ensure_bridges

pytestmark = pytest.mark.root

ADVERTISE = """
import ipaddress, socket, struct, sys
out = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
prefix = struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 3600, 1800, 0) + ipaddress.ip_address(sys.argv[2]).packed
packet = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 0, 0, 0) + prefix
out.sendto(packet, ("ff02::1", 0, 0, socket.if_nametoindex(sys.argv[1])))
"""


@pytest.mark.parametrize("heeds", [False, True])
@pytest.mark.parametrize("lan", [0], indirect=True)
def test_advertisements_for_guests_give_an_operators_bridge_no_address(
    heeds: bool, lan: t.Any, tmp_path: pathlib.Path
) -> None:
    """A bridge that has an address by advertisements (`heeds`) goes on heeding them, whoever sends them."""

    def run(*words: str) -> str:
        words = ("ip", "netns", "exec", lan.hypervisor, *words)
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def addresses() -> set[str]:
        (row,) = json.loads(run("ip", "-6", "-j", "addr", "show", "dev", "br1", "scope", "global"))
        return {entry["local"].partition("::")[0] for entry in row["addr_info"] if entry.get("dynamic")}

    def advertise(prefix: str) -> None:
        run(sys.executable, "-c", ADVERTISE, "far0", prefix)
        time.sleep(0.5)

    for words in (
        ("link", "add", "br1", "type", "bridge"),
        ("link", "add", "up0", "type", "veth", "peer", "name", "far0"),
        ("link", "set", "up0", "master", "br1"),
        *(("link", "set", name, "up") for name in ("up0", "far0", "br1")),
    ):
        run("ip", *words)
    time.sleep(2.2)  # duplicates of the link-local addresses were looked for
    if heeds:
        advertise("fd97::")
    used = {"name": "br1", "interface": "up0", "addresses": ["fd98::2/64"]}
    made, again = ensure_bridges(lan.hypervisor, tmp_path, [(used, "present", False, MINE)] * 2)
    assert made["changed"] and not again["changed"]
    advertise("fd98::")
    assert addresses() == ({"fd97", "fd98"} if heeds else set())
    ensure_bridges(lan.hypervisor, tmp_path, [(used, "absent", False, MINE)])
    assert run("sysctl", "-n", "net.ipv6.conf.br1.autoconf").strip() == "1"
