# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A network in a range that its host lives in, on hosts with real links and routes: nothing changes, nobody is lost."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._host import places
from ansible_collections.novalite.cloud.plugins.module_utils._network import ownership
from tests.unit._network.conftest import Bed, Place

BRIDGE = {"name": "br101", "addresses": ["10.50.0.1/24"]}
OFFICE = "192.0.2.100 40000 192.0.2.11 22"  # an ssh session of somebody on the hosts' wire
AFAR = "10.50.0.77 40000 192.0.2.11 22"  # of somebody behind the default gateway


def shown(place: Place) -> t.Any:
    """Links, their lasting addresses, routes, and the settings of the kernel that bridges change."""
    links = json.loads(place.run("ip", "-j", "addr", "show").stdout)
    addresses = [
        (link["ifname"], entry["local"]) for link in links for entry in link["addr_info"] if entry["scope"] == "global"
    ]
    lines = place.run("sh", "-c", "ip -4 route show table all; ip -6 route show").stdout.splitlines()
    routes = [line for line in lines if not line.startswith("fe80::")]
    names = place.run("ls", "/sys/class/net").stdout
    return names, addresses, routes, place.run("sysctl", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding").stdout


def refused(bed: Bed, spec: dict[str, t.Any], session: str = "") -> str | None:
    """Have hv1 make a bridge; returns why it does not. Then nothing is as it was before."""
    hv1 = bed.hv1
    before = shown(hv1)
    (made,) = hv1.call(["bridge", [spec], "present"], env={"SSH_CONNECTION": session})
    if not isinstance(made, str):
        return None
    assert shown(hv1) == before
    assert bed.outside.reaches("192.0.2.11")
    return made


def connected(bed: Bed) -> None:
    bed.hv1.ip("route", "add", "default", "via", "192.0.2.1")


DOCKER = "link add docker0 type bridge; addr add 10.50.0.1/16 dev docker0"
VPN = "link add tun0 type bridge; link set tun0 up"


def set_up(place: Place, commands: str) -> None:
    for words in filter(None, commands.split("; ")):
        place.ip(*words.split())


@pytest.mark.parametrize(
    ("commands", "addresses", "lost"),
    [
        ("", "192.0.2.1/24", "its gateway 192.0.2.1 (eth0)"),  # which the bridge would be itself
        ("", "192.0.2.77/25", "its gateway 192.0.2.1 (eth0)"),
        ("", "192.0.2.10/31", "its address 192.0.2.11 (eth0)"),
        ("", "192.0.2.129/25", "its address 192.0.2.11 (eth0)"),  # a part of the LAN without the host itself
        (DOCKER, "10.50.0.9/24", "its address 10.50.0.1 (docker0)"),  # a link that is down
        (f"{DOCKER}; link set docker0 up", "10.50.9.1/24", "its address 10.50.0.1 (docker0)"),
        (f"{VPN}; route add 10.50.0.0/24 dev tun0", "10.50.0.1/24", "its route to 10.50.0.0/24 (tun0)"),
        (f"{VPN}; route add 10.50.0.0/24 dev tun0", "10.50.0.129/25", "its route to 10.50.0.0/24 (tun0)"),
        (f"{VPN}; route add 10.50.0.5 dev tun0", "10.50.0.1/24", "its route to 10.50.0.5 (tun0)"),
        (f"{VPN}; route add 10.0.0.0/8 dev tun0 table 77", "10.50.0.1/24", "its route to 10.0.0.0/8 (tun0)"),
        ("route add 10.0.0.0/8 via 192.0.2.1", "10.50.0.1/24", "its route to 10.0.0.0/8 (eth0)"),
        ("addr add fd00:50::7/64 dev eth0", "10.60.0.1/24 fd00:50::1/64", "its address fd00:50::7 (eth0)"),
        (f"{VPN}; route add fd00::/8 dev tun0", "10.60.0.1/24 fd00:50::1/64", "its route to fd00::/8 (tun0)"),
    ],
)
def test_no_address_is_taken_in_a_range_that_the_host_lives_in(
    bed: Bed, commands: str, addresses: str, lost: str
) -> None:
    connected(bed)
    set_up(bed.hv1, commands)
    message = refused(bed, {**BRIDGE, "addresses": addresses.split()})
    assert message is not None and message.startswith("bridge br101: with the address ") and lost in message


@pytest.mark.parametrize(("session", "address"), [(AFAR, "10.50.0.1/24"), (OFFICE, "192.0.2.129/25")])
def test_nor_where_its_controller_is(bed: Bed, session: str, address: str) -> None:
    """Behind the gateway, and on the hosts' own wire."""
    connected(bed)
    message = refused(bed, {**BRIDGE, "addresses": [address]}, session)
    assert message is not None
    assert "the address 10.50.0.77 that it is logged in to from" in message or session == OFFICE


@pytest.mark.parametrize(
    ("commands", "more"),
    [
        ("", {}),
        ("route add blackhole 10.0.0.0/8", {}),  # leads nowhere
        ("route add 0.0.0.0/1 via 192.0.2.1; route add 128.0.0.0/1 via 192.0.2.1", {}),  # a default route in halves
        ("route add 10.0.0.0/8 via 192.0.2.1", {"shared_routes": ["10.0.0.0/8"]}),
        (DOCKER, {"namespace": "nova-br101"}),  # in a namespace the host is not there itself
        (DOCKER, {"addresses": []}),  # nor where another is the router and answers DHCP
    ],
)
def test_other_ranges_are_taken(bed: Bed, commands: str, more: dict[str, t.Any]) -> None:
    connected(bed)
    set_up(bed.hv1, commands)
    assert refused(bed, {**BRIDGE, **more}, AFAR.replace("10.50", "198.51")) is None
    assert bed.outside.reaches("192.0.2.11")


def test_a_bridge_that_is_there_stays(bed: Bed) -> None:
    """Its guests run: what others have added to the host since is no reason to leave them without what they need."""
    hv1 = bed.hv1
    (made,) = hv1.call(["bridge", [BRIDGE], "present"])
    assert made["changed"]
    hv1.ip("link", "add", "docker0", "type", "bridge")
    hv1.ip("addr", "add", "10.50.0.200/24", "dev", "docker0")
    (again,) = hv1.call(["bridge", [BRIDGE], "present"])
    assert again["changed"] is False


def test_on_the_hosts_own_bridge_only_what_is_somebodys_is_refused(bed: Bed) -> None:
    """A provider's network: the hosts' LAN, by the bridge that the host itself is connected by."""
    hv1 = bed.hv1
    hv1.run(
        "sh", "-c", "ip link add br0 type bridge forward_delay 0; ip addr flush dev eth0; ip link set eth0 master br0"
    )
    hv1.run("sh", "-c", "ip link set br0 up; ip addr add 192.0.2.11/24 dev br0; ip route add default via 192.0.2.1")
    assert "its gateway 192.0.2.1 (br0)" in (refused(bed, {"name": "br0", "addresses": ["192.0.2.1/24"]}) or "")
    assert "192.0.2.100" in (refused(bed, {"name": "br0", "addresses": ["192.0.2.100/24"]}, OFFICE) or "")
    assert refused(bed, {"name": "br0", "addresses": ["192.0.2.50/24"]}, OFFICE) is None
    assert bed.outside.reaches("192.0.2.50") and bed.outside.reaches("192.0.2.11")


def test_of_several_bridges_none_is_begun(bed: Bed) -> None:
    connected(bed)
    before = shown(bed.hv1)
    specs = [{"name": "br100", "addresses": ["10.60.0.1/24"]}, {**BRIDGE, "addresses": ["192.0.2.1/24"]}]
    (message,) = bed.hv1.call(["bridge", specs, "present"])
    assert "its gateway 192.0.2.1" in message
    assert shown(bed.hv1) == before


def test_a_floating_ip_is_nobodys_address(bed: Bed) -> None:
    hv1 = bed.hv1
    connected(bed)
    hv1.call(["bridge", [{"name": "br100", "addresses": ["10.60.0.1/24"]}], "present"])

    def floating(address: str) -> t.Any:
        pair = {"fixed": "10.60.0.5", "floating": address, "interface": "eth0"}
        own = {"network": "n", "bridge": "br100", "cidr": "10.60.0.0/24", "address": "10.60.0.1", "floating": [pair]}
        return hv1.call(["router", [own], "present"], env={"SSH_CONNECTION": OFFICE})[0]

    for address, whose in (("192.0.2.1", "its gateway 192.0.2.1"), ("192.0.2.100", "logged in to from")):
        before = shown(hv1)
        assert whose in floating(address)
        assert shown(hv1) == before and bed.outside.reaches("192.0.2.11")
    assert floating("192.0.2.60")["changed"]
    assert floating("192.0.2.60")["changed"] is False


def test_what_a_host_reports(bed: Bed) -> None:
    """Neither what novalite made, which goes again, nor loopback and links' own addresses."""
    hv1 = bed.hv1
    connected(bed)
    set_up(hv1, DOCKER)
    hv1.ip("addr", "add", "fd00:50::7/64", "dev", "eth0")
    hv1.ip("route", "add", "10.8.0.0/24", "via", "192.0.2.1")
    hv1.call(["bridge", [{"name": "br100", "addresses": ["10.60.0.1/24"]}], "present"])
    hv1.ip("link", "set", "br100", "alias", ownership.Mark("6f2e0c0e-51c0-4d9e-8a3d-6a2f6f1f8a11").text)
    (rows,) = hv1.call(["places"], env={"SSH_CONNECTION": OFFICE})
    listed = [(row["kind"], row["cidr"], row["device"]) for row in rows if row["kind"] != "name server"]
    assert [row for row in listed if row[0] != "libvirt network"] == [
        ("gateway", "192.0.2.1", "eth0"),
        ("address", "192.0.2.11/24", "eth0"),
        ("address", "fd00:50::7/64", "eth0"),
        ("address", "10.50.0.1/16", "docker0"),
        ("client", "192.0.2.100", "eth0"),
        ("route", "10.8.0.0/24", "eth0"),
    ]


def test_networks_of_libvirts_that_are_not_started(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "default.xml").write_text(
        "<network><name>default</name><bridge name='virbr0'/>"
        "<ip address='192.168.122.1' netmask='255.255.255.0'/>"
        "<ip family='ipv6' address='fd00:122::1' prefix='64'/></network>"
    )
    (tmp_path / "bridged.xml").write_text("<network><forward mode='bridge'/><bridge name='br0'/></network>")
    (tmp_path / "broken.xml").write_text("<network>")
    monkeypatch.setattr(places, "_LIBVIRTS", str(tmp_path / "*.xml"))
    monkeypatch.setattr(places, "_name_servers", list)
    here = places.of_rows([], [], [])
    assert [(place.text, place.device) for place in here] == [
        ("libvirt's network fd00:122::/64 (virbr0)", "virbr0"),
        ("libvirt's network 192.168.122.0/24 (virbr0)", "virbr0"),
    ]
    started = {"local": "192.168.122.1", "prefixlen": 24, "scope": "global"}
    here = places.of_rows([{"ifname": "virbr0", "addr_info": [started]}], [], [])
    assert [place.kind for place in here] == ["address", "libvirt network"]


@pytest.mark.parametrize("kept", [True, False])
def test_the_ssh_session_is_known_behind_sudo(kept: bool) -> None:
    code = f"""
import os, sys
sys.path[:] = {sys.path!r}
from ansible_collections.novalite.cloud.plugins.module_utils._host import places
print(places.ssh_session(os.environ))
"""
    without = ["env"] if kept else ["env", "-i"]
    done = subprocess.run(
        ["sh", "-c", '"$@"; exit $?', "login", *without, sys.executable, "-c", code],
        env={**os.environ, "SSH_CONNECTION": "2001:db8::7%eth0 40000 2001:db8::1 22"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(["2001:db8::7", "40000", "2001:db8::1", "22"])
