# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest's deletion beside the launch of another one on the same network, step by step, with the real modules."""

from __future__ import annotations

import contextlib
import json
import pathlib
import random
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._network import users
from tests.unit._network import conftest
from tests.unit._network.conftest import Place

pytestmark = pytest.mark.root

LEDGER = "0f5c8a52-9d2e-4a53-8c53-9a1d3c2b7e11"
# one call of CALL's doors for each line that it is sent, in one process until it is killed, as a trip takes its steps
STEPWISE = (
    conftest.CALL.replace(
        "for door,", "users.PATIENCE = 0.1\nsys.stdin.readline()\nprint('ready', flush=True)\nfor door,"
    )
    .replace("    try:", "    sys.stdin.readline()\n    try:")
    .replace("))\n", "), flush=True)\n")
    + "sys.stdin.readline()\n"
)


class Host:
    """A hypervisor with one network, and the steps of runs there."""

    def __init__(self, place: Place, state_dir: pathlib.Path) -> None:
        self.place, self.state_dir = place, str(state_dir)
        self.bridge = {"name": "br7", "addresses": ["10.7.0.2/24"]}
        self.router = {"network": "n", "bridge": "br7", "cidr": "10.7.0.0/24", "address": "10.7.0.2", "snat": True}

    def dhcp(self, state: str, number: int) -> list[t.Any]:
        host = {"mac": f"fa:16:3e:00:00:0{number}", "ip": f"10.7.0.1{number}", "hostname": f"guest-{number}"}
        network = {"name": "n", "bridge": "br7", "listen": "10.7.0.2", "cidr": "10.7.0.0/24", "hosts": [host]}
        return ["dhcp", [network], state, False, self.state_dir]

    def launch(self, number: int) -> list[t.Any]:
        return [
            ["bridge", [self.bridge], "present"],
            self.dhcp("present", number),
            ["router", [self.router], "present"],
        ]

    def terminate(self, number: int) -> list[t.Any]:
        end = [["router", [self.router], "absent"], ["bridge", [self.bridge], "absent"]]
        return [self.dhcp("absent", number), *end]

    def start(self, number: int) -> None:
        """Plug a guest in, as libvirt does."""
        self.place.ip("link", "add", f"tap{number}", "type", "veth", "peer", "name", f"guest{number}")
        self.place.ip("link", "set", f"tap{number}", "master", "br7")

    def end(self, number: int) -> None:
        self.place.ip("link", "del", f"tap{number}")

    def has(self) -> tuple[bool, bool]:
        """Whether the bridge is there, and the way out."""
        links = json.loads(self.place.run("ip", "-j", "link", "show", "type", "bridge").stdout)
        return bool(links), "MASQUERADE" in self.place.run("iptables-save", "-t", "nat").stdout

    @contextlib.contextmanager
    def run(self, calls: list[t.Any]) -> t.Iterator[t.Callable[[], dict[str, t.Any]]]:
        """A run of these steps: a function that takes the next one and returns its result."""
        with self.place.running(STEPWISE, json.dumps(calls)) as step:
            assert step() == "ready"

            def take() -> dict[str, t.Any]:
                result = json.loads(step())
                assert isinstance(result, dict), result
                return result

            yield take


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Host]:
    place = Place("hv")
    try:
        yield Host(place, tmp_path_factory.mktemp("state"))
    finally:
        place.end()


# of eight steps, the places of the deletion's four; a deletion that was stopped before its trip, then any
STOPPED = [4, 5, 6, 7]
INTERLEAVED = [sorted(random.Random(seed).sample(range(8), 4)) for seed in range(7)]


@pytest.mark.parametrize(
    "places",
    [STOPPED, *INTERLEAVED[:2], *(pytest.param(each, marks=pytest.mark.thorough) for each in INTERLEAVED[2:])],
    ids=str,
)
def test_a_deletion_takes_nothing_from_a_launch(host: Host, places: list[int]) -> None:
    """Guest 1 goes and guest 2 comes, by plans of which neither knows the other."""
    host.place.call(*host.launch(1))
    host.start(1)
    with host.run(host.terminate(1)) as leave, contextlib.ExitStack() as trip:
        come = trip.enter_context(host.run(host.launch(2)))
        leaving = iter([lambda: host.end(1), leave, leave, leave])
        trip.callback(host.start, 2)  # the last step, before its process ends
        coming = iter([come, come, come, trip.close])
        for place in range(8):
            next(leaving if place in places else coming)()
    assert host.has() == (True, True)
    host.end(2)
    host.place.call(*host.terminate(2))
    assert host.has() == (False, False)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_launch_that_was_killed_keeps_nothing_after_its_undo(host: Host, steps: int) -> None:
    with host.run(host.launch(2)) as come:
        for _step in range(steps):
            come()
        with host.run(host.terminate(1)[1:]) as leave:  # which waits for the launch as briefly as STEPWISE says
            kept = [leave(), leave()]
        assert {"br7"} == kept[0]["kept"].keys() == kept[1]["kept"].keys()
    assert host.has() == (True, steps > 2)
    results = host.place.call(*host.terminate(2))
    assert not any(result.get("kept") for result in results) and host.has() == (False, False)


@pytest.mark.parametrize("namespace", [None, "nova-br7"], ids=["of the host", "isolated"])
@pytest.mark.parametrize("state", ["withdrawn", "absent"])
def test_a_deletion_takes_its_own_floating_ip(host: Host, state: str, namespace: str | None) -> None:
    """Another guest's came since it was planned, whether it was planned to be the last guest's or not."""
    bridge, router = {**host.bridge, "namespace": namespace}, {**host.router, "namespace": namespace}

    def routed(*numbers: int) -> dict[str, t.Any]:
        floating = [
            {"fixed": f"10.7.0.1{number}", "floating": f"203.0.113.{number}", "interface": "out0"} for number in numbers
        ]
        return {**router, "floating": floating}

    host.place.ip("link", "add", "out0", "type", "veth", "peer", "name", "wire0")
    host.place.ip("link", "set", "out0", "up")
    host.place.call(["bridge", [bridge], "present"], ["router", [routed(1)], "present"])
    host.start(2)
    host.place.call(["router", [routed(1, 2)], "present"])
    gone, again = host.place.call(*(["router", [routed(1)], state] for _time in range(2)))
    assert (gone["changed"], again["changed"]) == (True, False)
    (unchanged,) = host.place.call(["router", [routed(2)], "present"])
    assert not unchanged["changed"], "the other one's is all that is there"
    host.end(2)
    host.place.call(["router", [routed(2)], "absent"], ["bridge", [bridge], "absent"])
    host.place.ip("link", "del", "out0")
    assert host.has() == (False, False)


def test_a_guest_that_is_off_is_a_user_too(host: Host) -> None:
    host.place.call(["bridge", [host.bridge], "present"], ["router", [host.router], "present"])
    defined = conftest.CALL.replace("lambda uri: {}", "lambda uri: {'br7': ['domain instance-00000002']}")
    calls = host.terminate(2)[1:]
    with host.place.running(defined, json.dumps(calls)) as step:
        for _call in calls:
            result = json.loads(step())
            assert result["kept"] == {"br7": ["domain instance-00000002"]} and not result["changed"]
    unknown = conftest.CALL.replace("lambda uri: {}", "lambda uri: (_ for _ in ()).throw(NovaliteError('silent'))")
    with host.place.running(unknown, json.dumps(calls)) as step:
        assert json.loads(step())["kept"] == {"br7": ["silent"]}
    assert host.has() == (True, True)
    host.place.call(*calls)
    assert host.has() == (False, False)


def test_domains_are_novalites_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = '<metadata><novalite:instance xmlns:novalite="urn:novalite:instance:1"/></metadata>'

    class Domain(t.NamedTuple):
        text: str

        def XMLDesc(self) -> str:
            nics = "".join(f"<interface><source bridge='{bridge}'/></interface>" for bridge in ("br1", "br2"))
            return f"<domain>{self.text}<devices>{nics}</devices></domain>"

        def name(self) -> str:
            return "instance-1"

    class Connection:
        def listAllDomains(self) -> list[Domain]:
            return [Domain(mark), Domain("")]

        def close(self) -> None:
            pass

    monkeypatch.setattr(users, "connect", lambda uri: Connection())
    fake = type("libvirt", (), {"libvirtError": OSError})
    monkeypatch.setattr(users, "libvirt", fake, raising=False)
    assert users.domains("test:///") == {"br1": ["domain instance-1"], "br2": ["domain instance-1"]}
