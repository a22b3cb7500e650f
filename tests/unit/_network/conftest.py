# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hypervisors, guests and an outside, as processes with network and mount namespaces of their own and no names.

They end with their processes; a hypervisor's own namespaces (/run/netns) are seen by it alone.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import time
import typing as t

import pytest

from tests.support.forking import Forking
from tests.support.patience import GENEROUS

READY = "mount -t tmpfs none /run && mkdir /run/netns && mount -t sysfs none /sys && ip link set lo up && echo ready"
IMPORTS = """
import dataclasses, json, sys
from ansible_collections.novalite.cloud.plugins.module_utils._drift import host_facts
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ssh import wait
from ansible_collections.novalite.cloud.plugins.module_utils._network import bridge, bridging, dhcp, dnsmasq
from ansible_collections.novalite.cloud.plugins.module_utils._network import haproxy, metadata_proxy
from ansible_collections.novalite.cloud.plugins.module_utils._network import router, routing, users
from ansible_collections.novalite.cloud.plugins.module_utils._firewall import tables
from ansible_collections.novalite.cloud.plugins.module_utils._host.module import HostCall
from ansible_collections.novalite.cloud.plugins.modules import firewall
"""
CALL = (
    IMPORTS
    + """
tables.SCRIPT = "/nonexistent"  # that of this machine's own hypervisor
users.domains = lambda uri: {}  # and its guests
RULES = {name: option.get("default") for name, option in firewall.ARGUMENT_SPEC.items()}
SERVICE = lambda url: metadata_proxy.Service(haproxy.parse_upstream(url), "hv1", bytes(32))
DOORS = {
    "bridge": lambda values, state, *rest: bridging.ensure(bridge.parse(values, state), state, *rest),
    "router": lambda values, *rest: routing.ensure(router.parse(values), *rest),
    "wait": lambda values, *rest: dataclasses.asdict(wait.wait_for_ssh([wait.Guest(**row) for row in values], *rest)),
    "metadata": lambda values, url, *rest: metadata_proxy.ensure(haproxy.parse(values), SERVICE(url), *rest),
    "firewall": lambda values, *rest: firewall.run(HostCall({**RULES, **values}, *rest)),
    "no metadata": metadata_proxy.remove,
    "places": host_facts.places,
    "dhcp": lambda values, *rest: dhcp.ensure(dnsmasq.parse(values), *rest),
}
for door, *arguments in json.loads(sys.argv[1]):
    try:
        print(json.dumps(DOORS[door](*arguments)))
    except NovaliteError as error:
        print(json.dumps(str(error)))
"""
)


@functools.cache
def _forking() -> Forking:
    """The process that calls functions in places."""
    return Forking("tests.unit._network.calls")


class Place:
    """A machine, as far as the network goes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process = subprocess.Popen(
            ["unshare", "-n", "-m", "sh", "-c", f"{READY} && exec sleep 300"], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            assert stdout.readline() == "ready\n"

    def run(
        self, *argv: str, check: bool = True, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["nsenter", "-t", str(self.process.pid), "-m", "-n", *argv],
            check=False,
            capture_output=True,
            text=True,
            timeout=GENEROUS,
            env={**os.environ, **(env or {})},
        )
        assert done.returncode == 0 or not check, f"{self.name}: {' '.join(argv)}: {done.stderr}{done.stdout}"
        return done

    @contextlib.contextmanager
    def running(self, script: str, *arguments: str) -> t.Iterator[t.Callable[[], str]]:
        """A Python script, as a function that sends it an empty line and returns the next one of its own."""
        argv = ["nsenter", "-t", str(self.process.pid), "-m", "-n", sys.executable, "-c", script, *arguments]
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None and process.stdout is not None
            into, out = process.stdin, process.stdout

            def say() -> str:
                with contextlib.suppress(BrokenPipeError):  # it may have nothing more to hear
                    os.write(into.fileno(), b"\n")
                return out.readline().strip()

            try:
                yield say
            finally:
                process.kill()

    def ip(self, *words: str) -> None:
        self.run("ip", *words)

    def call(self, *calls: list[t.Any], env: dict[str, str] | None = None) -> list[t.Any]:
        """The modules' functions, in one process: `["bridge", values, state, check_mode, ...]`."""
        environment = {**os.environ, "SSH_CONNECTION": "", **(env or {})}
        done = _forking().ask(self.process.pid, CALL, json.dumps(calls), environment)
        assert done.returncode == 0, f"{self.name}: {calls}: {done.stderr}{done.stdout}"
        return [json.loads(line) for line in done.stdout.splitlines()]

    def reaches(self, address: str, seconds: int = 0) -> bool:
        """Ping once, or until there is an answer: the first packets wait for ARP, on the way below a tunnel, too."""
        deadline = time.monotonic() + seconds
        # not with ping's own -w, which ends with the first "unreachable", such as of an ARP that was too early
        while self.run("ping", "-c", "1", "-W", "0.5", address, check=False).returncode:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.2)
        return True

    def end(self) -> None:
        if self.process.poll() is None:
            for pid in self._servers():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()

    def _servers(self) -> list[int]:
        """List what still runs here: it has the mount namespace."""
        own = os.readlink(f"/proc/{self.process.pid}/ns/mnt")
        pids = []
        for name in os.listdir("/proc"):
            if name.isdecimal() and int(name) != self.process.pid:
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{name}/ns/mnt") == own:
                        pids.append(int(name))
        return pids


def cable(place: Place, first: str, other: Place, second: str) -> None:
    """A wire between two places, up at both ends."""
    place.ip("link", "add", first, "type", "veth", "peer", "name", second, "netns", str(other.process.pid))
    place.ip("link", "set", first, "up")
    other.ip("link", "set", second, "up")


class Bed:
    """`hv1` (192.0.2.11) and `hv2` (192.0.2.12) with eth0 on a wire that `outside` (192.0.2.1) is on, too."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.wire = self.place("wire")
        self.wire.ip("link", "add", "wire", "type", "bridge", "forward_delay", "0")
        self.wire.ip("link", "set", "wire", "up")
        self.hv1, self.hv2 = self.host("hv1", "192.0.2.11/24"), self.host("hv2", "192.0.2.12/24")
        self.outside = self.host("outside", "192.0.2.1/24")

    def place(self, name: str) -> Place:
        self.places.append(Place(name))
        return self.places[-1]

    def host(self, name: str, address: str) -> Place:
        place = self.place(name)
        cable(self.wire, name, place, "eth0")
        self.wire.ip("link", "set", name, "master", "wire")
        place.ip("addr", "add", address, "dev", "eth0")
        return place

    def guest(self, hypervisor: Place, bridge: str, address: str | None, gateway: str | None = None) -> Place:
        """A guest on a bridge; its MAC address is the kernel's choice."""
        number = len(self.places)
        guest = self.place(f"guest{number}")
        cable(hypervisor, f"tap{number}", guest, "eth0")
        hypervisor.ip("link", "set", f"tap{number}", "master", bridge)
        if address:
            guest.ip("addr", "add", address, "dev", "eth0")
        if gateway:
            guest.ip("route", "add", "default", "via", gateway)
        return guest

    def end(self) -> None:
        for place in reversed(self.places):
            place.end()


@pytest.fixture
def bed() -> t.Iterator[Bed]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    made = Bed()
    try:
        yield made
    finally:
        made.end()
