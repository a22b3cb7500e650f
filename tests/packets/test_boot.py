# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The script that loads the rules before guests start, after a boot: what it kept, and nothing for whom it does not
know."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils import _firewall
from ansible_collections.novalite.cloud.plugins.module_utils._firewall import tables
from ansible_collections.novalite.cloud.plugins.module_utils._network import additions, bridged
from tests.packets.bed import Bed, run
from tests.packets.oracle import Probe
from tests.packets.policies import policy
from tests.packets.probes import mismatches, probes_of
from tests.packets.test_drift import state
from tests.packets.test_isolated import families, one_group, who_comes
from tests.packets.test_policies import canonical
from tests.packets.wire import PORTS, Wire

pytestmark = pytest.mark.root

SCRIPT = pathlib.Path(next(iter(_firewall.__path__))).parents[2] / "roles/compute_node/files/novalite-firewall"


@pytest.fixture
def script(bed: Bed, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[[str], None]:
    """Runs it on a host whose iptables is the bed's."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("iptables", "ip6tables"):
        for what in ("", "-save", "-restore"):
            (commands / f"{name}{what}").symlink_to(f"/usr/sbin/{name}-{bed.backend}{what}")
    monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
    monkeypatch.setenv("NOVALITE_FIREWALL_DIRECTORY", str(tmp_path / "kept"))
    monkeypatch.setenv("NOVALITE_ADDITIONS", str(tmp_path / "run"))
    monkeypatch.setattr(additions, "DIRECTORY", str(tmp_path / "run"))
    monkeypatch.setenv("NOVALITE_UDEV_RULES", str(tmp_path / "udev.rules"))

    def call(verb: str) -> None:
        with bed.on_host():
            run("sh", str(SCRIPT), verb)

    return call


def to_guests(bed: Bed, desired_policy: dict[str, t.Any]) -> list[Probe]:
    """In this bed other machines are behind taps, too, which are guests' ports elsewhere: nothing reaches them, and
    they have nothing to answer."""
    known = {f"guest-{instance['id']}" for instance in desired_policy["instances"]}
    return [
        probe
        for probe in probes_of(desired_policy, bed.places, 100)
        if probe.receiver in known and probe.answers is None and probe.error_about is None
    ]


def comes(bed: Bed, receiver: str) -> bool:
    place = bed.places[receiver]
    probe = Probe("", "bystander", receiver, bed.places["bystander"].ip, place.ip, 17, 53, next(PORTS))
    return bool(bed.send([Wire(bed).packet(probe)]))


def test_rules_are_there_after_a_boot(bed: Bed, script: t.Callable[[str], None]) -> None:
    desired_policy = state(bed)
    for instance in desired_policy["instances"]:
        place = bed.places[f"guest-{instance['id']}"]
        instance["ports"] = [
            {"device": bed.tap(place.name), "mac": place.mac, "addresses": [place.ip, place.ip6, place.link_local]}
        ]
        instance["devices"] = [bed.tap(place.name)]
    bed.iptables("IPv4", "-N", "foreign")
    bed.iptables("IPv4", "-A", "FORWARD", "-j", "foreign")
    bed.enforce(**desired_policy)
    right, ports = canonical(bed), bed.saved_bridge()
    script("save")
    bed.clear()
    script("restore")
    script("restore")  # once is enough
    added = [line for line in canonical(bed) if "--physdev-out tap+" in line]
    assert len(added) == 2
    assert [line for line in canonical(bed) if line not in added] == [line for line in right if "foreign" not in line]
    assert bed.saved_bridge() == ports
    assert not mismatches(bed, desired_policy, to_guests(bed, desired_policy))
    assert not comes(bed, "guest-4"), "a guest that nothing was kept of is open"
    bed.enforce(**desired_policy, exclusive=True)
    assert canonical(bed) == [line for line in right if "foreign" not in line]
    assert comes(bed, "guest-4")


def test_isolated_networks_and_ways_out_are_there_after_a_boot(bed: Bed, script: t.Callable[[str], None]) -> None:
    for chain in ("FORWARD", "INPUT"):
        bed.iptables("IPv4", "-P", chain, "DROP")
    desired_policy = one_group(bed, "guest-2", on_br1=["twin-bystander"])
    bed.enforce(**desired_policy, bridges=["br0", "br1"], serving=["br0"])
    script("save")
    bed.clear()
    script("restore")
    sets = bed.sets()
    assert f"add nova-g-1.7-v4 {bed.places['twin-bystander'].ip}\n" in sets
    assert f"add nova-g-1-v6 {bed.places['guest-2'].ip6}\n" in sets
    saved = bed.saved("IPv4").splitlines()
    for line in (
        "-A FORWARD -j nova-sent",
        "-A nova-sent -i br0 -j ACCEPT",
        "-A INPUT -j nova-asked",
        "-A nova-asked -i br0 -p udp -m udp --dport 67 -j ACCEPT",
        "-A nova-inst-2 -j nova-sg-1.7",
    ):
        assert line in saved, line
    bed.enforce(**desired_policy, bridges=["br0", "br1"], serving=["br0"], exclusive=True)
    assert who_comes(bed) == families("guest-2", "twin-bystander")


def test_what_is_loaded_at_boot_follows_every_change(
    bed: Bed, script: t.Callable[[str], None], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """A host that loses its power says nothing before."""
    if bed.backend != "nft":
        pytest.skip("the module asks for the host's own iptables")
    monkeypatch.setattr(tables, "SCRIPT", str(tmp_path / "novalite-firewall"))
    (tmp_path / "novalite-firewall").symlink_to(SCRIPT)
    SCRIPT.chmod(0o755)
    desired_policy = policy(bed.places, {1: [{"protocol": "any"}]}, {1: [1], 2: [1], 3: [1]})
    first, *later = desired_policy["instances"]
    bed.enforce(**{**desired_policy, "instances": [first]}, check=True)
    assert not (tmp_path / "kept").exists()
    bed.enforce(**{**desired_policy, "instances": [first]})
    bed.enforce(**{**desired_policy, "instances": later})  # as a launch does
    bed.enforce(instances=later[1:], state="absent")
    bed.clear()
    script("restore")
    saved = bed.saved("IPv4")
    assert [f"nova-inst-{number} -" in saved for number in (1, 2, 3)] == [True, True, False]


def test_nothing_is_open_where_nothing_was_kept(bed: Bed, script: t.Callable[[str], None]) -> None:
    script("restore")
    assert not comes(bed, "guest-1")
    desired_policy = policy(bed.places, {1: [{"protocol": "any"}]}, {1: [1]})
    bed.enforce(**desired_policy, exclusive=True)
    assert comes(bed, "guest-1") and comes(bed, "guest-2")


def test_nothing_is_left_of_a_host_without_instances(bed: Bed, script: t.Callable[[str], None]) -> None:
    script("save")
    script("restore")
    bed.enforce(instances=[], exclusive=True)
    assert "nova" not in bed.saved("IPv4") + bed.saved("IPv6") + bed.sets()


def test_bridges_of_others_are_seen_after_a_boot_as_before(
    bed: Bed, script: t.Callable[[str], None], tmp_path: pathlib.Path
) -> None:
    host = [f"net.bridge.bridge-nf-call-{name}" for name in ("iptables", "ip6tables")]
    own = dict.fromkeys(("nf_call_iptables", "nf_call_ip6tables"), "1")
    desired_policy = {**state(bed), "bridges": ["br0"]}

    def switch(value: int, *bridges: str) -> None:
        with bed.on_host():
            run("sysctl", "-q", *(f"{name}={value}" for name in host))
            for bridge in bridges:
                run(
                    "ip", "link", "set", bridge, "type", "bridge", *(word for setting in own for word in (setting, "0"))
                )

    switch(0)
    try:
        bed.enforce(**desired_policy, exclusive=True)
        script("save")
        bed.clear()
        shutil.rmtree(tmp_path / "run")
        switch(0, "br0")
        script("restore")
        with bed.on_host():
            assert run("sysctl", "-n", *host).split() == ["0", "0"]
            assert bridged._of_bridge("br0") == own
            assert bridged._of_bridge("br1") == dict.fromkeys(own, "0")
        assert not mismatches(bed, desired_policy, to_guests(bed, desired_policy))
        assert (tmp_path / "udev.rules").read_text().splitlines() == [
            f'ACTION=="add", SUBSYSTEM=="net", KERNEL=="br0", ATTR{{bridge/{option}}}="1"' for option in own
        ]
        # is given back with the last guest, as if there had been no boot
        bed.enforce(instances=desired_policy["instances"], bridges=["br0"], state="absent")
        with bed.on_host():
            assert bridged._of_bridge("br0") == dict.fromkeys(own, "0")
        script("save")
        script("restore")
        assert not (tmp_path / "udev.rules").exists()
    finally:
        switch(1, "br0", "br1")


@pytest.mark.parametrize(
    ("there", "kept", "after"),
    [(None, None, "0"), (None, "0", "0"), (None, "1", "1"), ("0", "1", "0"), ("1", "0", "1")],
)
def test_switches_of_the_host_are_after_a_boot_what_they_were(
    tmp_path: pathlib.Path, there: str | None, kept: str | None, after: str
) -> None:
    """With a `modprobe` that does what loading br_netfilter does, which may be no module of this machine."""
    names = ("iptables", "ip6tables", "arptables")
    switches, directory = tmp_path / "switches", tmp_path / "kept"
    commands = tmp_path / "bin"
    for folder in (directory, commands):
        folder.mkdir()

    def write(value: str) -> None:
        switches.mkdir(exist_ok=True)
        for name in names:
            (switches / f"bridge-nf-call-{name}").write_text(f"{value}\n")

    def call(verb: str) -> None:
        subprocess.run(
            ["sh", str(SCRIPT), verb],
            check=True,
            env={
                **os.environ,
                "PATH": f"{commands}:{os.environ['PATH']}",
                "NOVALITE_FIREWALL_DIRECTORY": str(directory),
                "NOVALITE_SWITCHES": str(switches),
                "NOVALITE_ADDITIONS": str(tmp_path / "run"),
                "NOVALITE_UDEV_RULES": str(tmp_path / "udev.rules"),
            },
        )

    stand_ins = dict.fromkeys(
        [f"{name}{what}" for name in ("iptables", "ip6tables", "ebtables") for what in ("", "-save", "-restore")], ""
    )
    stand_ins["ipset"] = ""
    stand_ins["modprobe"] = (
        f'mkdir "$NOVALITE_SWITCHES"; for name in {" ".join(names)}; do '
        'echo 1 >"$NOVALITE_SWITCHES/bridge-nf-call-$name"; done'
    )
    for name, text in stand_ins.items():
        (commands / name).write_text(f"#!/bin/sh\n{text}\n")
        (commands / name).chmod(0o755)
    if kept is not None:
        write(kept)
        call("save")
        shutil.rmtree(switches)
    if there is not None:
        write(there)
    call("restore")
    assert {(switches / f"bridge-nf-call-{name}").read_text().strip() for name in names} == {after}
