# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tenant networks across hosts, ways out, floating IPs and an address that moves, with packets."""

from __future__ import annotations

import ipaddress
import json
import time
import typing as t

import pytest

pytestmark = pytest.mark.root

FLOAT = "192.0.2.70"
ECHO = """
import socket, struct, sys
server = socket.create_server(("", 7))
print("ready", flush=True)
connection = server.accept()[0]
# killed, it must not keep its namespace until the end of TCP's patience
connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
while data := connection.recv(1):
    connection.sendall(data)
"""
BANNER = """
import socket, sys
server = socket.create_server(("", 7))
print("ready", flush=True)
with server.accept()[0] as connection:
    connection.sendall(b"SSH-2.0-" + (sys.argv[1:] or ["guest"])[0].encode())
    connection.recv(1)
"""
EARLY = """
import select, socket, sys
connection = socket.socket()
connection.setblocking(False)
connection.connect_ex((sys.argv[1], 7))
print("ready", flush=True)
for _line in sys.stdin:
    select.select([connection], [], [], 20)
    print(connection.recv(99).decode(), flush=True)
"""
CLIENT = """
import socket, sys
connection = socket.create_connection((sys.argv[1], 7), 3)
connection.settimeout(0.7)
for _line in sys.stdin:
    try:
        connection.sendall(b"x")
        print("answer" if connection.recv(1) else "closed", flush=True)
    except OSError:
        print("silence", flush=True)
"""

WATCH = """
import socket
pings = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
pings.settimeout(3)
print("ready", flush=True)
print(pings.recvfrom(99)[1][0], flush=True)
"""


def tenant(bridge: str, host: int, *remotes: int) -> dict[str, t.Any]:
    """A project's network as host 1 or 2 has it; all of them use the same addresses."""
    return {
        "name": bridge,
        "namespace": f"nova-{bridge}",
        "mtu": 1450,
        "addresses": [f"10.0.0.{1 + host}/24"],
        "vxlan": {
            "vni": int(bridge[2:]),
            "local": f"192.0.2.1{host}",
            "remotes": [f"192.0.2.1{remote}" for remote in remotes],
        },
    }


def way_out(bridge: str, *floating: tuple[str, str], snat: bool = True) -> dict[str, t.Any]:
    return {
        "network": bridge,
        "bridge": bridge,
        "namespace": f"nova-{bridge}",
        "cidr": "10.0.0.0/24",
        "address": "10.0.0.2",
        "snat": snat,
        "floating": [{"fixed": fixed, "floating": address, "interface": "eth0"} for fixed, address in floating],
    }


def done(results: list[t.Any]) -> list[bool]:
    """Tell whether each call changed something; an error is none of them."""
    assert all(isinstance(result, dict) for result in results), results
    return [result["changed"] for result in results]


def links(place: t.Any) -> dict[str, dict[str, t.Any]]:
    return {row["ifname"]: row for row in json.loads(place.run("ip", "-j", "addr").stdout)}


def test_projects_with_the_same_addresses(bed: t.Any) -> None:
    for host, place in ((1, bed.hv1), (2, bed.hv2)):
        bridges = [tenant(bridge, host, 3 - host) for bridge in ("br10000", "br10001")]
        calls = [["bridge", bridges, "present", check] for check in (True, False, False)]
        assert done(place.call(*calls)) == [True, True, False]
    guest = bed.guest(bed.hv1, "br10000", "10.0.0.5/24", "10.0.0.2")
    two = bed.guest(bed.hv2, "br10000", "10.0.0.6/24", "10.0.0.3")
    other = bed.guest(bed.hv1, "br10001", "10.0.0.5/24", "10.0.0.2")
    bed.guest(bed.hv2, "br10001", "10.0.0.7/24", "10.0.0.3")
    assert guest.reaches("10.0.0.6") and guest.reaches("10.0.0.3") and other.reaches("10.0.0.7")
    assert not guest.reaches("10.0.0.7") and not other.reaches("10.0.0.6")

    both = [way_out("br10000", ("10.0.0.5", FLOAT)), way_out("br10001")]
    calls = [["router", both, "present", check] for check in (True, False, False)]
    assert done(bed.hv1.call(*calls)) == [True, True, False]
    # each alone is no change either: neither depends on what else is given
    assert done(bed.hv1.call(*(["router", [each], "present"] for each in both))) == [False, False]
    assert guest.reaches("192.0.2.1") and other.reaches("192.0.2.1"), "out under the host's address"
    assert bed.outside.reaches(FLOAT) and bed.hv1.reaches(FLOAT) and other.reaches(FLOAT) and guest.reaches(FLOAT)
    # Not past the namespace to the host itself, nor to the other project's side of the host.
    guest.ip("route", "add", "192.0.2.11/32", "dev", "eth0")
    assert not guest.reaches("192.0.2.11")
    transits = [row["addr_info"][0]["local"] for name, row in links(bed.hv1).items() if name.startswith("nt-")]
    assert len(transits) == 2
    assert not other.reaches(str(ipaddress.ip_address(transits[0]) + 1))
    assert two.reaches("10.0.0.5")

    with guest.running(ECHO) as server:
        assert server() == "ready"
        with bed.outside.running(CLIENT, FLOAT) as say:
            assert say() == "answer"
            assert done(bed.hv1.call(["router", [way_out("br10000"), both[1]], "present"])) == [True]
            assert say() == "silence", "what is open is cut, too"
            assert not bed.outside.reaches(FLOAT) and guest.reaches("192.0.2.1")
    assert done(bed.hv1.call(["router", [way_out("br10000", snat=False)], "present"])) == [True]
    assert not guest.reaches("192.0.2.1") and other.reaches("192.0.2.1")

    bridges = [tenant(bridge, 1, 2) for bridge in ("br10000", "br10001")]
    kept = bed.hv1.call(["bridge", bridges, "absent"])[0]["kept"]
    assert [ports[0][:3] for ports in kept.values()] == ["tap", "tap"], "guests are still connected"
    guest.end()
    other.end()
    for _attempt in range(50):
        if not any(name.startswith("tap") for name in links(bed.hv1)):
            break
        time.sleep(0.05)
    calls = [
        ["router", both, "absent"],
        ["router", both, "absent"],
        ["bridge", bridges, "absent", True],
        ["bridge", bridges, "absent"],
        ["bridge", bridges, "absent"],
    ]
    assert done(bed.hv1.call(*calls)) == [True, False, True, True, False]
    assert set(links(bed.hv1)) == {"lo", "eth0"} and not bed.hv1.run("ip", "netns").stdout
    assert "nova" not in bed.hv1.run("iptables-save").stdout


def test_tunnels_lead_where_the_list_says(bed: t.Any) -> None:
    def ends() -> list[str]:
        rows = json.loads(bed.hv1.run("bridge", "-j", "fdb", "show", "dev", "vxlan10000").stdout)
        return sorted(row["dst"] for row in rows if row["mac"] == "00:00:00:00:00:00")

    calls = [["bridge", [tenant("br10000", 1, *remotes)], "present"] for remotes in ((2, 3), (3, 4), (4, 3), ())]
    assert done(bed.hv1.call(*calls[:2])) == [True, True]
    assert ends() == ["192.0.2.13", "192.0.2.14"]
    assert done(bed.hv1.call(*calls[2:])) == [False, True]
    assert ends() == []
    moved = tenant("br10000", 1, 2)
    moved["vxlan"]["local"] = "192.0.2.99"
    assert done(bed.hv1.call(["bridge", [moved], "present"], ["bridge", [moved], "present"])) == [True, False]
    assert ends() == ["192.0.2.12"]


def test_a_network_of_the_host(bed: t.Any) -> None:
    bridge = {"name": "br100", "addresses": ["10.20.0.1/24"]}
    assert done(bed.hv1.call(["bridge", [bridge], "present"])) == [True]
    first, second = (bed.guest(bed.hv1, "br100", f"10.20.0.{number}/24", "10.20.0.1") for number in (5, 6))
    bed.outside.ip("route", "add", "10.20.0.0/24", "via", "192.0.2.11")  # only to see under which address they come
    for rule in (
        "-A FORWARD -i br9 -j ACCEPT",
        "-t nat -A POSTROUTING -s 172.17.0.0/16 -j MASQUERADE",
        "-N nova-local",
        "-I FORWARD -j nova-local",
    ):
        bed.hv1.run("iptables", *rule.split())
    before = bed.hv1.run("iptables-save").stdout
    router = {
        "network": "private",
        "bridge": "br100",
        "cidr": "10.20.0.0/24",
        "address": "10.20.0.1",
        "floating": [{"fixed": "10.20.0.5", "floating": FLOAT, "interface": "eth0"}],
    }
    calls = [["router", [router], "present", check] for check in (True, False, False)]
    assert done(bed.hv1.call(*calls)) == [True, True, False]
    rules = [line for line in bed.hv1.run("iptables-save", "-t", "filter").stdout.splitlines() if "-A FORWARD" in line]
    assert rules[:2] == ["-A FORWARD -j nova-local", "-A FORWARD -j nova-forward"], "security groups judge first"
    assert bed.outside.reaches(FLOAT) and bed.hv1.reaches(FLOAT) and second.reaches(FLOAT)

    def seen(guest: t.Any) -> str:
        """The address under which the outside sees a guest's ping."""
        with bed.outside.running(WATCH) as watch:
            assert watch() == "ready"
            guest.reaches("192.0.2.1")
            return watch()

    assert (seen(first), seen(second)) == (FLOAT, "10.20.0.6"), "no SNAT was asked for"
    assert done(bed.hv1.call(["router", [{**router, "snat": True}], "present"])) == [True]
    assert (seen(first), seen(second)) == (FLOAT, "192.0.2.11")
    assert second.reaches("10.20.0.5")
    # Another run that knows of other networks only leaves it alone, unless it is to be the only one.
    calls = [["router", [way_out("br100")], "absent"], ["router", [], "present", False, True]]
    assert done(bed.hv1.call(*calls[1:])) == [True]
    assert not bed.outside.reaches(FLOAT)
    assert bed.hv1.run("iptables-save").stdout.splitlines()[1:-1] == before.splitlines()[1:-1] or all(
        "nova-" not in line or "nova-local" in line for line in bed.hv1.run("iptables-save").stdout.splitlines()
    )
    assert f"{FLOAT}/32" not in bed.hv1.run("ip", "addr").stdout


def test_a_floating_ip_that_is_the_hosts_own_address_is_refused(bed: t.Any) -> None:
    def state() -> tuple[str, list[str]]:
        return bed.hv1.run("ip", "-4", "addr").stdout, bed.hv1.run("iptables-save").stdout.splitlines()[1:-1]

    assert done(bed.hv1.call(["bridge", [{"name": "br100", "addresses": ["10.20.0.1/24"]}], "present"])) == [True]
    router = {
        "network": "private",
        "bridge": "br100",
        "cidr": "10.20.0.0/24",
        "address": "10.20.0.1",
        "floating": [{"fixed": "10.20.0.5", "floating": FLOAT, "interface": "eth0"}],
    }
    for prefix in (24, 32):
        bed.hv1.ip("addr", "add", f"{FLOAT}/{prefix}", "dev", "eth0")
        before = state()
        (refused,) = bed.hv1.call(["router", [router], "present"])
        assert FLOAT in refused and "eth0" in refused
        assert done(bed.hv1.call(["router", [router], "absent"])) == [False]
        assert state() == before
        bed.hv1.ip("addr", "del", f"{FLOAT}/{prefix}", "dev", "eth0")
    # its own is known as such when the rules are lost, and goes with it
    assert done(bed.hv1.call(["router", [router], "present"])) == [True]
    bed.hv1.run("iptables", "-t", "nat", "-F")
    assert done(bed.hv1.call(*(["router", [router], state] for state in ("present", "absent")))) == [True, True]
    assert FLOAT not in bed.hv1.run("ip", "addr").stdout


def test_what_came_before_its_floating_ip_is_not_answered_by_the_host(bed: t.Any) -> None:
    """A packet that came first was tracked without translation, and so was all that followed: the host's sshd spoke."""
    assert done(bed.hv1.call(["bridge", [{"name": "br100", "addresses": ["10.20.0.1/24"]}], "present"])) == [True]
    guest = bed.guest(bed.hv1, "br100", "10.20.0.5/24", "10.20.0.1")
    router = {"network": "private", "bridge": "br100", "cidr": "10.20.0.0/24", "address": "10.20.0.1", "snat": True}
    floating = [{"fixed": "10.20.0.5", "floating": FLOAT, "interface": "eth0"}]
    assert done(bed.hv1.call(["router", [router], "present"])) == [True]
    # as after an instance that had the address before
    bed.outside.ip("neigh", "replace", FLOAT, "lladdr", links(bed.hv1)["eth0"]["address"], "dev", "eth0")
    bed.outside.run("iptables", "-A", "INPUT", "-p", "icmp", "--icmp-type", "destination-unreachable", "-j", "DROP")
    with bed.hv1.running(BANNER, "host") as host, guest.running(BANNER) as there:
        assert (host(), there()) == ("ready", "ready")
        with bed.outside.running(EARLY, FLOAT) as early:
            assert early() == "ready"
            assert done(bed.hv1.call(["router", [{**router, "floating": floating}], "present"])) == [True]
            assert early() == "SSH-2.0-guest"
    refused = [line for line in bed.hv1.run("iptables-save", "-t", "filter").stdout.splitlines() if FLOAT in line]
    assert len(refused) == 1 and refused[0].startswith("-A nova-input") and refused[0].endswith("-j DROP")


def test_the_address_that_ansible_comes_by_moves_to_the_bridge_and_back(bed: t.Any) -> None:
    bed.hv1.ip("route", "add", "default", "via", "192.0.2.1")
    bed.hv1.ip("route", "add", "198.51.100.0/24", "via", "192.0.2.12", "metric", "7")
    session = {"SSH_CONNECTION": "192.0.2.1 40000 192.0.2.11 22"}
    bridge = {"name": "br100", "interface": "eth0", "addresses": ["10.20.0.1/24"]}
    mac = links(bed.hv1)["eth0"]["address"]
    routes = bed.hv1.run("ip", "route").stdout
    (refused,) = bed.hv1.call(["bridge", [bridge], "present"], env=session)
    assert "move_address" in refused and "br100" not in links(bed.hv1)
    # The kernel refuses the second address, when the first has moved already: all of it goes back.
    bed.hv1.ip("addr", "add", "2001:db8::7/64", "dev", "eth0", "nodad")
    bed.hv1.run("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6")
    calls = [["bridge", [bridge], "present", False, True]]
    assert isinstance(bed.hv1.call(*calls, env=session)[0], str)
    assert "br100" not in links(bed.hv1) and bed.outside.reaches("192.0.2.11")
    assert bed.hv1.run("ip", "route").stdout == routes
    bed.hv1.run("sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/default/disable_ipv6")

    calls = [["bridge", [bridge], "present", check, True] for check in (True, False, False)]
    assert done(bed.hv1.call(*calls, env=session)) == [True, True, False]
    host_links = links(bed.hv1)
    assert host_links["eth0"]["master"] == "br100" and host_links["br100"]["address"] == mac
    assert bed.outside.reaches("192.0.2.11")
    now = bed.hv1.run("ip", "route").stdout
    assert sorted(line for line in now.splitlines() if "10.20.0" not in line) == sorted(
        routes.replace("eth0", "br100").splitlines()
    )
    assert "2001:db8::7/64" in bed.hv1.run("ip", "addr", "show", "dev", "br100").stdout
    (kept,) = bed.hv1.call(["bridge", [bridge], "absent"], env=session)
    assert kept["kept"] == {"br100": ["the ssh session that Ansible came by"]}
    calls = [["bridge", [bridge], "absent", check, True] for check in (True, False, False)]
    assert done(bed.hv1.call(*calls, env=session)) == [True, True, False]
    assert "br100" not in links(bed.hv1) and bed.outside.reaches("192.0.2.11")
    assert sorted(bed.hv1.run("ip", "route").stdout.splitlines()) == sorted(routes.splitlines())


@pytest.mark.parametrize("born", [True, False], ids=["made down", "set down"])
def test_a_network_that_is_down_carries_nothing(bed: t.Any, born: bool) -> None:
    """Not within a host, nor between hosts, nor to the host's own end; the network beside it is as before."""
    places = {1: bed.hv1, 2: bed.hv2}

    def ensure(up: bool) -> list[bool]:
        changed = []
        for host, place in places.items():
            spec = [{**tenant("br10000", host, 3 - host), "up": up}, tenant("br10001", host, 3 - host)]
            changed += done(place.call(*(["bridge", spec, "present", check] for check in (True, False, False))))
        return changed

    assert ensure(not born) == [True, True, False] * 2
    guests = [bed.guest(place, "br10000", f"10.0.0.{5 + number}/24") for number, place in places.items()]
    guests.append(bed.guest(bed.hv1, "br10000", "10.0.0.9/24"))
    beside = [bed.guest(place, "br10001", f"10.0.0.{5 + number}/24") for number, place in places.items()]
    ways = [(guests[0], "10.0.0.7"), (guests[0], "10.0.0.9"), (guests[2], "10.0.0.2")]
    if not born:
        assert all(guest.reaches(address, 20) for guest, address in ways)
        assert ensure(False) == [True, True, False] * 2
    assert [guest.reaches(address) for guest, address in ways] == [False, False, False]
    assert beside[0].reaches("10.0.0.7", 20)
    assert ensure(True) == [True, True, False] * 2
    assert all(guest.reaches(address, 20) for guest, address in ways)
