# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bridges and DHCP for real, in network namespaces."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from ansible_collections.novalite.cloud.plugins.module_utils._network import dhcp, dnsmasq

pytestmark = pytest.mark.root

MINE, THEIRS = "0f5c8a52-9d2e-4a53-8c53-9a1d3c2b7e11", "7b0f6a52-9d2e-4a53-8c53-9a1d3c2b7e22"

ENSURE = """
import json, sys
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._network import additions, bridge, bridging, users
from ansible_collections.novalite.cloud.plugins.module_utils._network.ownership import of_ledger
additions.DIRECTORY = sys.argv[1] + "/run"
locks.locked.__wrapped__.__defaults__ = (60.0, sys.argv[1])
users.domains = lambda uri: {}
for spec, state, check, *ledger in json.loads(sys.argv[2]):
    try:
        asked = bridge.parse([spec], state, of_ledger(*ledger or [None]))
        print(json.dumps(bridging.ensure(asked, state, check)))
    except NovaliteError as error:
        print(json.dumps(str(error)))
"""


def ensure_bridges(
    place: str, directory: pathlib.Path, calls: t.Sequence[t.Any], environment: dict[str, str] | None = None
) -> list[t.Any]:
    """In a process of its own: what is in /sys belongs to the namespace that it was mounted in."""
    done = subprocess.run(
        ["ip", "netns", "exec", place, sys.executable, "-c", ENSURE, str(directory), json.dumps(calls)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})},
        check=True,
        capture_output=True,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_a_bridge_and_its_end(lan: t.Any, tmp_path: pathlib.Path) -> None:
    subprocess.run(["ip", "-n", lan.hypervisor, "link", "add", "p0", "type", "veth", "peer", "name", "p1"], check=True)
    spec = {"name": "br100", "interface": "p0", "addresses": ["10.98.0.2/24"], "mtu": 1450}
    planned, made, again, gone, gone_again = ensure_bridges(
        lan.hypervisor,
        tmp_path,
        [
            (spec, "present", True),
            (spec, "present", False),
            (spec, "present", False),
            (spec, "absent", False),
            (spec, "absent", False),
        ],
    )
    assert planned["changed"] and made["changed"] and gone["changed"]
    assert not again["changed"] and not gone_again["changed"]
    after = made["diff"]["after"]["br100"]
    assert (after["port"], after["addresses"], after["mtu"], after["up"]) == ("p0", ["10.98.0.2/24"], 1450, True)
    link = subprocess.run(["ip", "-n", lan.hypervisor, "-j", "link", "show", "p0"], check=True, capture_output=True)
    left = json.loads(link.stdout)[0]
    assert "UP" not in left["flags"] and left["mtu"] == 1500


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_a_port_routes_nothing_by_what_routers_told_it(lan: t.Any, tmp_path: pathlib.Path) -> None:
    """Another host of the network advertises it on the wire before this one has the bridge."""

    def ip(*words: str) -> str:
        return subprocess.run(["ip", "-n", lan.hypervisor, *words], check=True, capture_output=True, text=True).stdout

    ip("link", "add", "p0", "type", "veth", "peer", "name", "p1")
    for port in ("p0", "p1"):
        ip("link", "set", port, "up")
    ip("-6", "route", "add", "fd20::/64", "dev", "p0", "metric", "256", "proto", "kernel")
    spec = {"name": "br100", "interface": "p0", "addresses": ["10.98.0.2/24", "fd20::2/64"]}
    made, again = ensure_bridges(lan.hypervisor, tmp_path, [(spec, "present", False)] * 2)
    assert made["changed"] and not again["changed"]
    assert "p0" not in ip("-6", "route", "show", "fd20::/64")
    ensure_bridges(lan.hypervisor, tmp_path, [(spec, "absent", False)])
    assert "fe80::" in ip("-6", "addr", "show", "dev", "p0")


@pytest.mark.parametrize("promote", ["0", "1"])
@pytest.mark.parametrize("lan", [0], indirect=True)
def test_a_second_address_of_its_range(lan: t.Any, tmp_path: pathlib.Path, promote: str) -> None:
    spec = {"name": "br100", "addresses": ["10.98.0.2/24"]}
    ensure_bridges(lan.hypervisor, tmp_path, [(spec, "present", False)])
    place = ["ip", "netns", "exec", lan.hypervisor]
    subprocess.run([*place, "sysctl", "-qw", f"net.ipv4.conf.br100.promote_secondaries={promote}"], check=True)
    subprocess.run(["ip", "-n", lan.hypervisor, "addr", "add", "10.98.0.9/24", "dev", "br100"], check=True)
    other = {**spec, "addresses": ["10.98.0.3/24"]}
    made, again = ensure_bridges(lan.hypervisor, tmp_path, [(other, "present", False), (other, "present", False)])
    assert made["diff"]["after"]["br100"]["addresses"] == ["10.98.0.3/24", "10.98.0.2/24", "10.98.0.9/24"]
    assert not again["changed"]


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_the_way_of_the_ssh_session_is_refused(lan: t.Any, tmp_path: pathlib.Path) -> None:
    def ip(*words: str) -> None:
        subprocess.run(["ip", "-n", lan.hypervisor, *words], check=True)

    ip("link", "add", "p0", "type", "veth", "peer", "name", "p1")
    ip("addr", "add", "192.0.2.1/24", "dev", "p0")
    for name in ("p0", "p1"):
        ip("link", "set", name, "up")
    calls = [({"name": "br100", "interface": "p0"}, "present", False)]
    session = {"SSH_CONNECTION": "192.0.2.7 40000 192.0.2.1 22"}
    assert "ssh session" in ensure_bridges(lan.hypervisor, tmp_path, calls, session)[0]
    assert "192.0.2.1/24" in ensure_bridges(lan.hypervisor, tmp_path, calls, {"SSH_CONNECTION": ""})[0]
    links = subprocess.run(["ip", "-n", lan.hypervisor, "-br", "link"], check=True, capture_output=True, text=True)
    assert "br100" not in links.stdout


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_a_failure_takes_back_what_was_made(lan: t.Any, tmp_path: pathlib.Path) -> None:
    subprocess.run(["ip", "-n", lan.hypervisor, "link", "add", "p0", "type", "veth", "peer", "name", "p1"], check=True)
    # The kernel refuses it: a veth carries no more than 65535, but a bridge's port cannot have less than 1280 for IPv6.
    calls = [({"name": "br100", "interface": "p0", "addresses": ["fd00::2/64"], "mtu": 600}, "present", False)]
    assert isinstance(ensure_bridges(lan.hypervisor, tmp_path, calls)[0], str)
    links = json.loads(
        subprocess.run(["ip", "-n", lan.hypervisor, "-j", "link"], check=True, capture_output=True, text=True).stdout
    )
    by_name = {link["ifname"]: link for link in links}
    assert "br100" not in by_name
    assert "master" not in by_name["p0"] and by_name["p0"]["mtu"] == 1500


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_an_operators_bridge_is_as_before(lan: t.Any, tmp_path: pathlib.Path) -> None:
    """A bridge with its uplink and guests that are off, through a launch and a deletion, and through one that fails."""

    def ip(*words: str) -> str:
        return subprocess.run(["ip", "-n", lan.hypervisor, *words], check=True, capture_output=True, text=True).stdout

    def shown() -> list[t.Any]:
        rows = json.loads(ip("-d", "-j", "addr", "show"))
        ours = [row for row in rows if row.get("ifname") in ("up0", "br1", "brop")]
        for row in ours:
            for part in ("info_data", "info_slave_data"):
                data = row["linkinfo"].get(part, {})
                for key in [key for key in data if key.endswith("_timer")]:
                    del data[key]
        forwarding = subprocess.run(
            ["ip", "netns", "exec", lan.hypervisor, "sysctl", "net.ipv4.ip_forward", "net.ipv4.conf.br1.forwarding"],
            check=True,
            capture_output=True,
            text=True,
        )
        return [*ours, forwarding.stdout]

    ip("link", "add", "up0", "type", "veth", "peer", "name", "far0")
    ip("link", "add", "br1", "type", "bridge", "priority", "4096", "ageing_time", "12300")
    ip("link", "add", "brop", "type", "bridge")
    ip("link", "set", "up0", "master", "br1")
    for name in ("up0", "far0", "br1", "brop"):
        ip("link", "set", name, "up")
    ip("addr", "add", "192.0.2.1/24", "dev", "br1")
    time.sleep(2.2)  # the kernel's own addresses are there, and no carrier comes any more
    before = shown()
    used = {"name": "br1", "interface": "up0", "addresses": ["10.98.0.2/24"], "mtu": 1450}
    broken = {"name": "brop", "interface": "nothere", "addresses": ["10.97.0.2/24"]}
    made, failed, undone, gone, gone_again = ensure_bridges(
        lan.hypervisor,
        tmp_path,
        [
            (used, "present", False, MINE),
            (broken, "present", False, MINE),
            (broken, "absent", False, MINE),
            (used, "absent", False, MINE),
            (used, "absent", False, MINE),
        ],
    )
    assert made["diff"]["after"]["br1"]["addresses"][:2] == ["192.0.2.1/24", "10.98.0.2/24"]
    assert "no interface nothere" in failed and not undone["changed"]
    assert gone["changed"] and not gone_again["changed"]
    assert shown() == before
    assert not (tmp_path / "run" / MINE).exists()


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_two_ledgers_on_one_host(lan: t.Any, tmp_path: pathlib.Path) -> None:
    spec = {"name": "br100", "addresses": ["10.98.0.2/24"], "namespace": "nova-br100"}
    made, refused, left, again, gone = ensure_bridges(
        lan.hypervisor,
        tmp_path,
        [
            (spec, "present", False, MINE),
            (spec, "present", False, THEIRS),
            (spec, "absent", False, THEIRS),
            (spec, "present", False, MINE),
            (spec, "absent", False, MINE),
        ],
    )
    assert made["changed"] and not again["changed"] and gone["changed"]
    assert "made by another ledger" in refused and MINE in refused
    assert not left["changed"] and MINE in left["kept"]["br100"][0]
    there = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert "nova-br100" not in there


class Site:
    """A lan's DHCP: the server in the hypervisor's namespace, a client in the first host's."""

    def __init__(self, lan: t.Any, directory: str) -> None:
        self.lan, self.directory = lan, directory
        self.script = os.path.join(directory, "script")
        pathlib.Path(self.script).write_text(
            '#!/bin/sh\n[ "$1" != bound ] || echo "$ip $hostname $router $mtu $lease" > "$0.out"\n'
        )
        os.chmod(self.script, 0o755)
        show = subprocess.run(
            ["ip", "-n", lan.hosts[0], "-j", "link", "show", "eth0"], check=True, capture_output=True, text=True
        )
        self.mac = json.loads(show.stdout)[0]["address"]

    @staticmethod
    def network(*hosts: tuple[str, str, str], **values: t.Any) -> dict[str, t.Any]:
        return {
            "name": "private",
            "bridge": "br0",
            "listen": "10.99.0.1",
            "cidr": "10.99.0.0/24",
            "gateway": "10.99.0.1",
            "hosts": [dict(zip(("mac", "ip", "hostname", "uuid"), (*host, MINE))) for host in hosts],
            **values,
        }

    def ensure(
        self, *hosts: tuple[str, str, str], state: str = "present", check_mode: bool = False, **values: t.Any
    ) -> dict[str, t.Any]:
        with self.lan.enter(self.lan.hypervisor):
            networks = dnsmasq.parse([self.network(*hosts, **values)])
            return dhcp.ensure(networks, state, check_mode, self.directory)

    def lease(self) -> str | None:
        """Return what a client is told, or None when nobody answers it."""
        out = pathlib.Path(f"{self.script}.out")
        out.unlink(missing_ok=True)
        with self.lan.enter(self.lan.hosts[0]):
            subprocess.run(
                ["busybox", "udhcpc", "-i", "eth0", "-qnf", "-t", "2", "-T", "1", "-O", "mtu", "-s", self.script],
                check=False,
                capture_output=True,
            )
        return out.read_text().strip() if out.exists() else None

    def pid(self) -> int:
        return int(pathlib.Path(self.directory, "networks/br0/pid").read_text())


@pytest.fixture
def site(lan: t.Any, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Site]:
    if not shutil.which("dnsmasq") or not shutil.which("busybox"):
        pytest.skip("needs dnsmasq and busybox")
    directory = tempfile.mkdtemp(prefix="novalite-dhcp-", dir="/tmp")
    os.chmod(directory, 0o755)  # dnsmasq reads its files as its own user
    monkeypatch.setattr(locks.locked.__wrapped__, "__defaults__", (60.0, directory))  # type: ignore[attr-defined]  # a wrapped function has it
    site = Site(lan, directory)
    try:
        yield site
    finally:
        with contextlib.suppress(FileNotFoundError):
            network = dnsmasq.parse([site.network()])[0]
            server = dhcp.Server(network, os.path.join(directory, "networks", "br0"))
            server.process.stop()  # by the module's own proof of whose process it is
        shutil.rmtree(directory)


@pytest.mark.parametrize("lan", [1], indirect=True)
def test_a_guest_gets_its_address_and_the_next_one_gets_it_after(site: Site) -> None:
    guest = (site.mac, "10.99.0.50", "web-1")
    assert site.ensure(guest, check_mode=True)["changed"]
    assert not os.path.exists(os.path.join(site.directory, "networks"))
    assert site.ensure(guest, mtu=1450)["changed"]
    assert not site.ensure(guest, mtu=1450)["changed"]
    assert site.lease() == "10.99.0.50 web-1 10.99.0.1 1450 86400"
    pid = site.pid()
    other = ("fa:16:3e:00:00:09", "10.99.0.51", "web-2")
    assert site.ensure(other, mtu=1450)["changed"]
    # Its lease would run for a day, and the address could not be given to anyone else.
    assert site.ensure(guest, state="absent", mtu=1450)["changed"]
    assert site.ensure(("fa:16:3e:00:00:0a", "10.99.0.50", "web-3"), mtu=1450)["changed"]
    assert site.ensure((site.mac, "10.99.0.50", "web-4"), mtu=1450)["changed"]
    assert site.lease() == "10.99.0.50 web-4 10.99.0.1 1450 86400"
    assert site.pid() == pid, "a new guest costs no restart"
    assert site.ensure((site.mac, "10.99.0.52", "web-4"), mtu=1400)["changed"]
    assert site.pid() != pid
    assert site.lease() == "10.99.0.52 web-4 10.99.0.1 1400 86400"


@pytest.mark.parametrize("lan", [1], indirect=True)
def test_the_server_ends_with_its_last_guest(site: Site) -> None:
    first, second = ("fa:16:3e:00:00:01", "10.99.0.11", "one"), ("fa:16:3e:00:00:02", "10.99.0.12", "two")
    site.ensure(first, second)
    pid = site.pid()
    assert site.ensure(first, state="absent")["changed"]
    assert not site.ensure(first, state="absent")["changed"]
    os.kill(pid, 0)
    assert site.ensure(second, state="absent", check_mode=True)["changed"]
    assert site.ensure(second, state="absent")["changed"]
    assert not os.path.exists(os.path.join(site.directory, "networks/br0"))
    assert not pathlib.Path(f"/proc/{pid}/cmdline").exists() or not pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    assert not site.ensure(second, state="absent")["changed"]


@pytest.mark.parametrize("lan", [1], indirect=True)
def test_a_dead_server_is_started_and_a_strangers_pid_is_not_trusted(site: Site) -> None:
    guest = (site.mac, "10.99.0.50", "web-1")
    site.ensure(guest)
    pid = site.pid()
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            pid_file = pathlib.Path(site.directory, "networks/br0/pid")
            pid_file.write_text(f"{stranger.pid}\n")
            assert not site.ensure(guest)["changed"], "the one that runs is found"
            process = os.pidfd_open(pid)
            os.kill(pid, 9)
            select.select([process], [], [])
            os.close(process)
            assert site.ensure(guest)["changed"]
            assert site.pid() not in (pid, stranger.pid)
            assert stranger.poll() is None
            assert site.lease() is not None
        finally:
            stranger.kill()


@pytest.mark.parametrize("lan", [1], indirect=True)
def test_guests_get_addresses_beside_another_name_server(site: Site) -> None:
    """Debian's dnsmasq listens on every address of a host, and is faster on those that come."""
    pathlib.Path(site.script).write_text('#!/bin/sh\n[ "$1" != bound ] || echo "$ip $dns" > "$0.out"\n')
    guest = (site.mac, "10.99.0.50", "web-1")
    with site.lan.enter(site.lan.hypervisor), socket.create_server(("10.99.0.1", 53)):
        result = site.ensure(guest, dns=["10.99.0.9"])
        assert result["changed"] and "another name server" in result["warnings"][0]
        assert site.lease() == "10.99.0.50 10.99.0.9"
        again = site.ensure(guest, dns=["10.99.0.9"])
        assert not again["changed"] and not again["warnings"]


@pytest.mark.parametrize("lan", [1], indirect=True)
def test_a_failed_change_leaves_the_old_server(site: Site) -> None:
    guest = (site.mac, "10.99.0.50", "web-1")
    with pytest.raises(NovaliteError, match="dnsmasq"):
        site.ensure(guest, listen="10.99.0.77")
    assert not os.path.exists(os.path.join(site.directory, "networks/br0"))
    site.ensure(guest)
    with pytest.raises(NovaliteError, match="dnsmasq"):
        site.ensure(("fa:16:3e:00:00:09", "10.99.0.51", "web-2"), listen="10.99.0.77")
    assert not site.ensure(guest)["changed"]
    assert site.lease() is not None
