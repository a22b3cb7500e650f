# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole plan of a host on a network with two IPv4 ranges, carried out, with packets of a guest in each."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
import tempfile
import typing as t

import pytest

from tests.unit._network.conftest import Bed
from tests.unit._network.test_routing_on_a_host import WATCH, done, links
from tests.unit._plan.test_plan_of_ranges import plan_by_host, ranges, render, server

pytestmark = pytest.mark.root

FIRST, SECOND = "10.20.0.11", "10.21.0.12"
SCRIPT = '#!/bin/sh\n[ "$1" != bound ] || echo "$ip/$mask $router $dns" > "$0.out"\n'
RULE = {"id": "r", "direction": "ingress", "ethertype": "IPv4", "protocol": "icmp", "port_min": None, "port_max": None}


class Host:
    """`hv1` of a bed, with a guest in each range; security groups let in what `rules` say."""

    def __init__(self, bed: Bed, directory: str, isolated: bool) -> None:
        self.bed, self.directory = bed, directory
        self.script = pathlib.Path(directory, "script")
        self.script.write_text(SCRIPT)
        self.script.chmod(0o755)
        self.network = {"isolated": isolated, "snat": True, "bridge_interface": None, "bridge": "br100"}
        self.guests: dict[str, t.Any] = {}
        assert done(bed.hv1.call(["bridge", self.plan()["bridges"], "present"])) == [True]
        self.guests = {address: bed.guest(bed.hv1, "br100", None) for address in (FIRST, SECOND)}

    def plan(self, *rules: dict[str, t.Any]) -> dict[str, t.Any]:
        all_ranges = ranges("10.20.0.1", "10.21.0.1", dns=[])
        servers = [server(number, number - 1, all_ranges, **self.network) for number in (1, 2)]
        for instance, guest in zip(servers, self.guests.values()):
            (nic,) = instance["nics"]
            nic["id"], nic["mac"] = guest.name.removeprefix("guest"), links(guest)["eth0"]["address"]
            instance["security_groups"][0]["rules"] = [t.cast(t.Any, rule) for rule in rules]
        return dataclasses.asdict(
            plan_by_host(servers, {"hv1": {"domain_type": "qemu", "antispoof": "chains"}}, render)["hv1"]
        )

    def carry_out(self, *rules: dict[str, t.Any], check_mode: bool = False) -> list[bool]:
        """As the steps of role `spawn` do. Returns for each module whether it changed something."""
        plan = self.plan(*rules)
        firewall = {
            "instances": plan["firewall_instances"],
            "security_groups": plan["security_groups"],
            "zones": plan["firewall_zones"],
            "bridges": ["br100"],
            "serving": plan["firewall_serving"],
        }
        calls: list[list[t.Any]] = [
            ["bridge", plan["bridges"], "present", check_mode],
            ["dhcp", plan["dhcp_networks"], "present", check_mode, self.directory],
            ["router", plan["routers"], "present", check_mode],
            ["firewall", firewall, check_mode],
        ]
        return done(self.bed.hv1.call(*calls))

    def ask(self, address: str, *options: str) -> str:
        out = pathlib.Path(f"{self.script}.out")
        out.unlink(missing_ok=True)
        words = ["udhcpc", "-i", "eth0", "-qnf", "-t", "5", "-T", "1", *options, "-s", str(self.script)]
        self.guests[address].run("busybox", *words)
        return out.read_text().strip()

    def seen(self, place: t.Any, sender: t.Any, address: str) -> str | None:
        """The address under which a ping arrives at a place; None where none does."""
        with place.running(WATCH) as watch:
            assert watch() == "ready"
            return watch() if sender.reaches(address) else None


@pytest.fixture(params=[False, True], ids=["of the host", "isolated"])
def host(request: pytest.FixtureRequest) -> t.Iterator[Host]:
    if os.geteuid() != 0 or not all(map(shutil.which, ("dnsmasq", "busybox"))):
        pytest.skip("needs root, dnsmasq and busybox")
    directory = tempfile.mkdtemp(prefix="novalite-ranges-", dir="/tmp")
    os.chmod(directory, 0o755)  # dnsmasq reads its files as its own user
    bed = Bed()
    try:
        yield Host(bed, directory, request.param)
    finally:
        bed.end()
        shutil.rmtree(directory)


def test_a_plan_of_two_ranges_is_what_packets_meet(host: Host) -> None:
    nobody = {**RULE, "cidr": "198.51.100.0/24"}
    assert host.carry_out(nobody, check_mode=True) == [False, True, True, True]
    assert host.carry_out(nobody) == [False, True, True, True]
    assert host.carry_out(nobody) == [False] * 4
    for address, router in ((FIRST, "10.20.0.1"), (SECOND, "10.21.0.1")):
        for options in ((), ("-B",)):  # a guest that is held to its own DHCP server, and has the answer broadcast
            assert host.ask(address, *options) == f"{address}/24 {router} {router}"
        guest = host.guests[address]
        guest.ip("addr", "add", f"{address}/24", "dev", "eth0")
        guest.ip("route", "add", "default", "via", router)
        assert host.seen(host.bed.outside, guest, "192.0.2.1") == "192.0.2.11"
    first, second = host.guests[FIRST], host.guests[SECOND]
    assert not first.reaches(SECOND) and not second.reaches(FIRST), "no rule lets it in"

    # a rule that names the range: the sender's own address arrives, and groups judge by it
    for cidr, opened in (("10.20.0.0/24", (True, False)), ("10.21.0.0/24", (False, True))):
        assert host.carry_out({**RULE, "cidr": cidr}) == [False, False, False, True]
        own = (host.seen(second, first, SECOND), host.seen(first, second, FIRST))
        assert own == tuple(address if is_open else None for address, is_open in zip((FIRST, SECOND), opened))

    # and no guest may send under an address of the other range
    second.ip("addr", "add", "10.20.0.99/24", "dev", "eth0")
    assert second.run("ping", "-c1", "-W", "0.5", "-I", SECOND, "192.0.2.1", check=False).returncode == 0
    assert second.run("ping", "-c1", "-W", "0.5", "-I", "10.20.0.99", "192.0.2.1", check=False).returncode != 0
