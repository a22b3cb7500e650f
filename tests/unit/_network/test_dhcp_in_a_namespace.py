# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""DHCP and router advertisements of a network in a namespace."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
import tempfile
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.macs import eui64
from tests.unit._network.test_routing_on_a_host import BANNER, done, links, tenant

ASK = """
import socket, struct, sys
name, kind = sys.argv[1], int(sys.argv[2])
question = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + bytes(1)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
    asking.settimeout(3)
    asking.sendto(struct.pack("!6H", 7, 256, 1, 0, 0, 0) + question + struct.pack("!2H", kind, 1), ("10.0.0.2", 53))
    answer = asking.recv(999)
size = struct.unpack("!H", answer[-(16 if kind == 28 else 4) - 2:][:2])[0]
print(socket.inet_ntop(socket.AF_INET6 if kind == 28 else socket.AF_INET, answer[-size:]))
"""


def test_dhcp_and_router_advertisements_in_a_namespace(bed: t.Any) -> None:
    if not shutil.which("dnsmasq") or not shutil.which("busybox"):
        pytest.skip("needs dnsmasq and busybox")
    bridge = tenant("br10000", 1)
    bridge["addresses"] += ["fd00:20::a00:2/64", "fe80::a00:2/64"]
    bed.hv1.call(["bridge", [bridge], "present"])
    guest = bed.guest(bed.hv1, "br10000", None)
    mac = links(guest)["eth0"]["address"]
    own = eui64("fd00:20::/64", mac)
    directory = tempfile.mkdtemp(prefix="novalite-dhcp-", dir="/tmp")
    os.chmod(directory, 0o755)  # dnsmasq reads its files as its own user
    try:
        network: dict[str, t.Any] = {
            "name": "tenant",
            "bridge": "br10000",
            "namespace": "nova-br10000",
            "listen": "10.0.0.2",
            "cidr": "10.0.0.0/24",
            "gateway": "10.0.0.2",
            "ntp": ["192.0.2.123"],
            "mtu": 1450,
            "cidr_v6": "fd00:20::/64",
            "listen_v6": "fd00:20::a00:2",
            "router_v6": False,
            "hosts": [{"mac": mac, "ip": "10.0.0.5", "ipv6": own, "hostname": "web-1"}],
        }
        calls = [
            ["dhcp", [{**network, "hosts": []}], "present", False, directory],
            *(["dhcp", [network], "present", check, directory] for check in (True, False, False)),
        ]
        assert done(bed.hv1.call(*calls)) == [False, True, True, False], "it comes with its first host"
        script = pathlib.Path(directory, "script")
        script.write_text('#!/bin/sh\n[ "$1" != bound ] || echo "$ip $hostname $router $mtu $ntpsrv" > "$0.out"\n')
        script.chmod(0o755)
        guest.run(
            "busybox",
            "udhcpc",
            "-i",
            "eth0",
            "-qnf",
            "-t",
            "5",
            "-T",
            "1",
            "-O",
            "mtu",
            "-O",
            "ntpsrv",
            "-s",
            str(script),
        )
        assert pathlib.Path(f"{script}.out").read_text() == "10.0.0.5 web-1 10.0.0.2 1450 192.0.2.123\n"
        for _attempt in range(100):
            if own in guest.run("ip", "-6", "addr", "show", "dev", "eth0").stdout.replace("tentative", ""):
                break
            time.sleep(0.1)
        assert own in guest.run("ip", "-6", "addr", "show", "dev", "eth0").stdout
        assert "default" not in guest.run("ip", "-6", "route").stdout, "there is no way out over IPv6"
        guest.ip("addr", "add", "10.0.0.5/24", "dev", "eth0")
        names = {
            kind: guest.run(sys.executable, "-c", ASK, "web-1.novalocal", str(kind)).stdout.strip() for kind in (1, 28)
        }
        assert names == {1: "10.0.0.5", 28: own}
        with guest.running(BANNER) as speaker:
            assert speaker() == "ready"
            waited_for = {"name": "web-1", "address": "10.0.0.5", "namespace": "nova-br10000"}
            elsewhere = {**waited_for, "namespace": None}
            answers = bed.hv1.call(["wait", [waited_for], 7, "SSH-", 5], ["wait", [elsewhere], 7, "SSH-", 0.2])
        assert list(answers[0]["answered"]) == ["web-1"] and not answers[0]["silent"]
        assert [silence["name"] for silence in answers[1]["silent"]] == ["web-1"] and not answers[1]["answered"]
        server = pathlib.Path(directory, "networks/br10000")
        pid, other = (server / "pid").read_text(), {"mac": "fa:16:3e:00:00:09", "ip": "10.0.0.9", "hostname": "web-2"}
        assert mac in (server / "leases").read_text()
        network_with_names = {
            **network,
            "hosts": [],
            "names": [{"hostname": "far", "addresses": ["10.0.0.77", "fd00:20::77"]}],
        }
        calls = [["dhcp", [network_with_names], "present", False, directory]] * 2
        assert done(bed.hv1.call(*calls)) == [True, False]
        assert guest.run(sys.executable, "-c", ASK, "far.novalocal", "1").stdout == "10.0.0.77\n"
        calls = [
            ["dhcp", [{**network, "hosts": [other]}], "present", False, directory],
            ["dhcp", [network], "absent", False, directory],
        ]
        assert done(bed.hv1.call(*calls)) == [True, True]
        assert mac not in (server / "leases").read_text(), "its lease would run for a day"
        assert (server / "pid").read_text() == pid, "and nobody was restarted"
        assert done(bed.hv1.call(["dhcp", [{**network, "hosts": [other]}], "absent", False, directory])) == [True]
        assert not os.listdir(os.path.join(directory, "networks"))
    finally:
        shutil.rmtree(directory)


def test_a_guest_gets_options_of_its_own(bed: t.Any) -> None:
    """They change while it runs; what dnsmasq does not know of them is in nobody's way."""
    if not shutil.which("dnsmasq") or not shutil.which("busybox"):
        pytest.skip("needs dnsmasq and busybox")
    bed.hv1.call(["bridge", [tenant("br10000", 1)], "present"])
    guest, other = bed.guest(bed.hv1, "br10000", None), bed.guest(bed.hv1, "br10000", None)
    macs = [links(each)["eth0"]["address"] for each in (guest, other)]
    directory = tempfile.mkdtemp(prefix="novalite-dhcp-", dir="/tmp")
    os.chmod(directory, 0o755)
    script = pathlib.Path(directory, "script")
    script.write_text('#!/bin/sh\n[ "$1" != bound ] || echo "$ip $ntpsrv $tftp" > "$0.out"\n')
    script.chmod(0o755)
    network: dict[str, t.Any] = {"name": "tenant", "bridge": "br10000", "namespace": "nova-br10000"}
    network |= {"listen": "10.0.0.2", "cidr": "10.0.0.0/24", "gateway": "10.0.0.2", "ntp": ["192.0.2.123"]}
    hosts = [{"mac": mac, "ip": f"10.0.0.{5 + at}", "hostname": f"web-{at}"} for at, mac in enumerate(macs)]

    def set_options(*options: tuple[str, str]) -> list[bool]:
        own = [{"name": name, "value": value} for name, value in options]
        call = ["dhcp", [{**network, "hosts": [{**hosts[0], "options": own}, hosts[1]]}], "present", False, directory]
        return done(bed.hv1.call(call, call))

    def asked(who: t.Any) -> str:
        words = ["udhcpc", "-i", "eth0", "-qnf", "-t", "5", "-T", "1", "-O", "ntpsrv", "-O", "tftp", "-s", str(script)]
        who.run("busybox", *words)
        return pathlib.Path(f"{script}.out").read_text().strip()

    try:
        assert set_options(("ntp-server", "192.0.2.99"), ("test_option_1", "x"), ("66", "192.0.2.66")) == [True, False]
        assert asked(guest) == "10.0.0.5 192.0.2.99 192.0.2.66"
        assert asked(other) == "10.0.0.6 192.0.2.123"
        assert set_options(("tftp-server", "192.0.2.67")) == [True, False]
        assert asked(guest) == "10.0.0.5 192.0.2.123 192.0.2.67"
        assert set_options() == [True, False]
        assert asked(guest) == "10.0.0.5 192.0.2.123"
        # and the other's lease is still there, whoever was started anew
        assert asked(other) == "10.0.0.6 192.0.2.123"
        call = ["dhcp", [{**network, "hosts": hosts}], "absent", False, directory]
        assert done(bed.hv1.call(call)) == [True]
        assert not os.listdir(os.path.join(directory, "networks"))
    finally:
        shutil.rmtree(directory)
