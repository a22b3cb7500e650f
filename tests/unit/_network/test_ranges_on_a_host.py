# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A network with two IPv4 ranges on one bridge, for real: DHCP, ways out, metadata, and a range that goes."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import typing as t

import pytest

from tests.unit._network.test_routing_on_a_host import WATCH, done, links

pytestmark = pytest.mark.root

FLOAT = "192.0.2.70"
HOST_OF = {"10.0.0.5": "10.0.0.2", "10.0.1.5": "10.0.1.2"}
UUID = "0c0f9e5e-7d0e-4bb5-8f0c-0d6f1e1b2c3d"
SCRIPT = """#!/bin/sh
[ "$1" = bound ] || exit 0
ip addr add "$ip/$mask" dev eth0
for router in $router; do ip route add default via "$router"; done
echo "$ip/$mask $router $dns $serverid ${staticroutes:-none}" > "$0.out"
"""
# Says where the first answer of a DHCP server to this guest comes from.
LISTEN = """
import socket
frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
frames.settimeout(9)
print("ready", flush=True)
own = open("/sys/class/net/eth0/address").read().strip().replace(":", "")
while True:
    frame = frames.recv(2048)
    if frame[34:36] == b"\\0\\x43" and frame[70:76].hex() == own:
        print(socket.inet_ntoa(frame[26:30]), flush=True)
        break
"""
# Answers every request with the address that the proxy signed for.
SERVICE = """
import http.server
class Door(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.headers["X-Forwarded-For"].encode())
    def log_message(self, *_words):
        pass
server = http.server.HTTPServer(("192.0.2.1", 8775), Door)
print("ready", flush=True)
server.serve_forever()
"""
FETCH = """
import http.client
connection = http.client.HTTPConnection("169.254.169.254", timeout=5)
connection.request("GET", "/latest/")
print(connection.getresponse().read().decode(), end="")
"""


def network(namespace: str | None) -> dict[str, t.Any]:
    """The arguments of the modules for the network of both ranges: bridge, dhcp without hosts, router."""
    place = {"namespace": namespace} if namespace else {}
    return {
        "bridge": {
            "name": "br10000",
            "addresses": ["10.0.0.2/24", "10.0.1.2/24"],
            "ranges": ["10.0.0.0/24", "10.0.1.0/24"],
            **place,
        },
        "dhcp": {
            "name": "tenant",
            "bridge": "br10000",
            "listen": "10.0.0.2",
            "cidr": "10.0.0.0/24",
            "gateway": "10.0.0.2",
            "further_ranges": [
                {
                    "cidr": "10.0.1.0/24",
                    "listen": "10.0.1.2",
                    "gateway": "10.0.1.2",
                    "routes": [{"destination": "198.51.100.0/24", "nexthop": "10.0.1.9"}],
                }
            ],
            **place,
        },
        "router": {
            "network": "tenant",
            "bridge": "br10000",
            "cidr": "10.0.0.0/24",
            "address": "10.0.0.2",
            "snat": True,
            "further_ranges": [{"cidr": "10.0.1.0/24", "address": "10.0.1.2"}],
            **place,
        },
    }


def single(arguments: dict[str, t.Any]) -> dict[str, t.Any]:
    """The same with its first range alone, as before there was another."""
    less = {
        name: {key: value for key, value in of_module.items() if key not in ("further_ranges", "ranges")}
        for name, of_module in arguments.items()
    }
    less["bridge"]["addresses"] = less["bridge"]["addresses"][:1]
    return less


class Site:
    """Two guests on the bridge of `hv1`, one for each range."""

    def __init__(self, bed: t.Any, directory: str, namespace: str | None) -> None:
        self.bed, self.hv1, self.directory = bed, bed.hv1, directory
        self.script = pathlib.Path(directory, "script")
        self.script.write_text(SCRIPT)
        self.script.chmod(0o755)
        self.network = network(namespace)
        assert done(self.hv1.call(["bridge", [self.network["bridge"]], "present"])) == [True]
        self.guests = {address: bed.guest(self.hv1, "br10000", None) for address in HOST_OF}
        self.hosts = [
            {"mac": links(guest)["eth0"]["address"], "ip": address, "hostname": f"web-{number}"}
            for number, (address, guest) in enumerate(self.guests.items())
        ]

    def dhcp(self, state: str, hosts: list[dict[str, t.Any]], *checks: bool, **changes: t.Any) -> list[bool]:
        dhcp_network = {**self.network["dhcp"], "hosts": hosts, **changes}
        return done(
            self.hv1.call(*(["dhcp", [dhcp_network], state, check, self.directory] for check in checks or (False,)))
        )

    def ask(self, address: str, *options: str) -> str:
        """Have the guest ask for its address, take it, and say what it was told."""
        out = pathlib.Path(f"{self.script}.out")
        out.unlink(missing_ok=True)
        words = ["udhcpc", "-i", "eth0", "-qnf", "-t", "5", "-T", "1", "-O", "staticroutes", "-O", "serverid", *options]
        guest = self.guests[address]
        guest.ip("addr", "flush", "dev", "eth0")
        guest.run("busybox", *words, "-s", str(self.script))
        return out.read_text().strip()

    def conf(self) -> str:
        return pathlib.Path(self.directory, "networks/br10000/conf").read_text()

    def addresses(self) -> list[str]:
        namespace = self.network["bridge"].get("namespace")
        words = ["-n", namespace] if namespace else []
        shown = self.hv1.run("ip", *words, "-4", "-o", "addr", "show", "dev", "br10000").stdout
        return re.findall(r"inet (\S+)", shown)


@pytest.fixture(params=[None, "nova-br10000"], ids=["of the host", "isolated"])
def site(bed: t.Any, request: pytest.FixtureRequest) -> t.Iterator[Site]:
    if not all(map(shutil.which, ("dnsmasq", "busybox"))):
        pytest.skip("needs dnsmasq and busybox")
    directory = tempfile.mkdtemp(prefix="novalite-ranges-", dir="/tmp")
    os.chmod(directory, 0o755)  # dnsmasq reads its files as its own user
    try:
        yield Site(bed, directory, request.param)
    finally:
        shutil.rmtree(directory)


def expected_lease(address: str) -> str:
    """The whole of what DHCP tells the guest with the address."""
    host = HOST_OF[address]
    routes = f"0.0.0.0/0 {host}" if address == "10.0.0.5" else f"198.51.100.0/24 10.0.1.9 0.0.0.0/0 {host}"
    return f"{address}/24 {host} {host} {host} {routes}"


def test_each_guest_gets_what_is_of_its_range(site: Site) -> None:
    assert site.dhcp("present", site.hosts, True, False, False) == [True, True, False]
    for address in HOST_OF:
        assert site.ask(address) == expected_lease(address)
        assert site.ask(address, "-B") == expected_lease(address), "as a client that has the answer broadcast"
    # one of them leaves, and its lease with it, by the server's address in its own range
    leases = pathlib.Path(site.directory, "networks/br10000/leases")
    pid = pathlib.Path(site.directory, "networks/br10000/pid").read_text()
    assert site.dhcp("absent", site.hosts[1:], True, False, False) == [True, True, False]
    assert "10.0.1.5" not in leases.read_text() and "10.0.0.5" in leases.read_text()
    assert pathlib.Path(site.directory, "networks/br10000/pid").read_text() == pid, "and nobody was restarted"
    assert site.dhcp("absent", site.hosts[:1]) == [True]
    assert not os.listdir(os.path.join(site.directory, "networks"))


def test_a_run_that_was_slower_takes_no_range_away(site: Site) -> None:
    """It worked out what to tell the host before there was a guest of the other range."""
    site.dhcp("present", site.hosts[1:])
    before = set(site.conf().splitlines())
    assert site.dhcp("present", site.hosts[:1], True, False, False, further_ranges=[]) == [True, True, False]
    assert set(site.conf().splitlines()) == before
    assert [site.ask(address) for address in HOST_OF] == [expected_lease(address) for address in HOST_OF]
    assert site.dhcp("present", site.hosts) == [False]
    # once the host has no address there, nobody could be answered
    site.hv1.call(["bridge", [single(site.network)["bridge"]], "present"])
    assert site.dhcp("present", [], False, False, further_ranges=[]) == [True, False]
    assert "10.0.1." not in site.conf() and site.ask("10.0.0.5").startswith("10.0.0.5/24")


def test_an_answer_comes_from_the_address_that_guests_are_allowed_it_from(site: Site) -> None:
    """By the one of the range; to a guest that has no way to be reached at its address, by the bridge's first."""
    site.dhcp("present", site.hosts)
    for address, guest in site.guests.items():
        for options, server in (((), HOST_OF[address]), (("-B",), "10.0.0.2")):
            with guest.running(LISTEN) as listener:
                assert listener() == "ready"
                site.ask(address, *options)
                assert listener() == server


def test_both_ranges_reach_out_and_each_other(site: Site) -> None:
    site.dhcp("present", site.hosts)
    for address in HOST_OF:
        site.ask(address)
    calls = [["router", [site.network["router"]], "present", check] for check in (True, False, False)]
    assert done(site.hv1.call(*calls)) == [True, True, False]

    def seen(at: t.Any, guest: t.Any, to: str) -> str:
        """The address under which a ping of the guest arrives."""
        with at.running(WATCH) as watch:
            assert watch() == "ready"
            assert guest.reaches(to)
            return watch()

    first, second = site.guests.values()
    assert [seen(site.bed.outside, guest, "192.0.2.1") for guest in (first, second)] == ["192.0.2.11"] * 2
    assert seen(second, first, "10.0.1.5") == "10.0.0.5", "from one range to the other nothing is translated"
    assert seen(first, second, "10.0.0.5") == "10.0.1.5"
    # a floating IP of the guest in the further range: from outside, the host, its neighbours, and as its sender
    floating = [{"fixed": "10.0.1.5", "floating": FLOAT, "interface": "eth0"}]
    router = {**site.network["router"], "floating": floating}
    assert done(site.hv1.call(*(["router", [router], "present"] for _time in range(2)))) == [True, False]
    assert site.bed.outside.reaches(FLOAT) and site.hv1.reaches(FLOAT) and first.reaches(FLOAT)
    assert seen(site.bed.outside, second, "192.0.2.1") == FLOAT
    (kept,) = site.hv1.call(["router", [site.network["router"]], "absent"])  # planned before there was a floating IP
    assert kept["kept"].keys() == {site.network["router"]["bridge"]} and not kept["changed"], "guests are there"
    assert site.bed.outside.reaches(FLOAT) and seen(site.bed.outside, first, "192.0.2.1") == "192.0.2.11"
    for port in json.loads(site.hv1.run("ip", "-j", "link", "show", "type", "veth").stdout):
        if port["ifname"].startswith("tap"):
            site.hv1.ip("link", "del", port["ifname"])
    assert done(site.hv1.call(*(["router", [router], "absent"] for _time in range(2)))) == [True, False]
    assert "nova-snat" not in site.hv1.run("iptables-save").stdout


def test_a_range_comes_and_goes_while_guests_of_the_other_stay(site: Site) -> None:
    several, single_network = site.network, single(site.network)
    site.hv1.call(["bridge", [several["bridge"]], "present"], ["router", [single_network["router"]], "present"])
    site.dhcp("present", site.hosts[:1], further_ranges=[])
    assert site.ask("10.0.0.5") == "10.0.0.5/24 10.0.0.2 10.0.0.2 10.0.0.2 none"

    assert site.dhcp("present", site.hosts[1:], True, False, False) == [True, True, False]
    assert done(site.hv1.call(*(["router", [several["router"]], "present"] for _time in range(2)))) == [True, False]
    assert site.addresses() == ["10.0.0.2/24", "10.0.1.2/24"] and "10.0.1.0" in site.conf()
    assert [site.ask(address) for address in HOST_OF] == [expected_lease(address) for address in HOST_OF]

    # the guest leaves, and then the network loses its range
    assert site.dhcp("absent", site.hosts[1:]) == [True]
    calls = [["bridge", [single_network["bridge"]], "present", check] for check in (True, False, False)]
    assert done(site.hv1.call(*calls)) == [True, True, False]
    assert site.dhcp("present", [], True, False, False, further_ranges=[]) == [True, True, False]
    calls = [["router", [single_network["router"]], "present", check] for check in (True, False, False)]
    assert done(site.hv1.call(*calls)) == [True, True, False]
    assert site.addresses() == ["10.0.0.2/24"] and "10.0.1." not in site.conf()
    assert "10.0.1." not in site.hv1.run("iptables-save").stdout
    assert site.ask("10.0.0.5") == "10.0.0.5/24 10.0.0.2 10.0.0.2 10.0.0.2 none"
    assert site.guests["10.0.0.5"].reaches("192.0.2.1")

    # and the first range may go as well as the second
    site.hv1.call(["bridge", [several["bridge"]], "present"])
    other = {**several["bridge"], "addresses": ["10.0.1.2/24"], "ranges": ["10.0.1.0/24"]}
    assert done(site.hv1.call(*(["bridge", [other], "present"] for _time in range(2)))) == [True, False]
    assert site.addresses() == ["10.0.1.2/24"]


def test_metadata_is_answered_in_each_range(site: Site) -> None:
    if not shutil.which("haproxy"):
        pytest.skip("needs haproxy")
    site.dhcp("present", site.hosts)
    proxy = {"bridge": "br10000", "namespace": site.network["bridge"].get("namespace"), "network": UUID}
    call = ["metadata", [proxy], "http://192.0.2.1:8775", False, site.directory]
    with contextlib.ExitStack() as stack:
        stack.callback(site.hv1.call, ["no metadata", ["br10000"], False, site.directory])
        assert done(site.hv1.call(call, call)) == [True, False]
        service = stack.enter_context(site.bed.outside.running(SERVICE))
        assert service() == "ready"
        for address, guest in site.guests.items():
            site.ask(address)
            assert guest.run(sys.executable, "-c", FETCH).stdout == address
