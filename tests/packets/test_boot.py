# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The script that loads the rules before guests start, after a boot: what it kept, and nothing for whom it does not
know."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils import _firewall
from ansible_collections.novalite.cloud.plugins.module_utils._firewall import boot
from tests.packets.bed import Bed, run
from tests.packets.oracle import Probe
from tests.packets.policies import policy
from tests.packets.probes import PORTS, Wire, mismatches, probes_of
from tests.packets.test_drift import state
from tests.packets.test_isolated import families, one_group, who_comes
from tests.packets.test_policies import canonical

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

    def call(verb: str) -> None:
        with bed.on_host():
            run("sh", str(SCRIPT), verb)

    return call


def to_guests(bed: Bed, wanted: dict[str, t.Any]) -> list[Probe]:
    """In this bed other machines are behind taps, too, which are guests' ports elsewhere: nothing reaches them, and
    they have nothing to answer."""
    known = {f"guest-{instance['id']}" for instance in wanted["instances"]}
    return [probe for probe in probes_of(wanted, bed.places, 100)
            if probe.receiver in known and probe.answers is None and probe.error_about is None]


def comes(bed: Bed, receiver: str) -> bool:
    place = bed.places[receiver]
    probe = Probe("", "bystander", receiver, bed.places["bystander"].ip, place.ip, 17, 53, next(PORTS))
    return bool(bed.send([Wire(bed).packet(probe)]))


def test_rules_are_there_after_a_boot(bed: Bed, script: t.Callable[[str], None]) -> None:
    wanted = state(bed)
    for instance in wanted["instances"]:
        place = bed.places[f"guest-{instance['id']}"]
        instance["ports"] = [{"device": bed.tap(place.name), "mac": place.mac,
                              "addresses": [place.ip, place.ip6, place.link_local]}]
    bed.iptables("IPv4", "-N", "foreign")
    bed.iptables("IPv4", "-A", "FORWARD", "-j", "foreign")
    bed.enforce(**wanted)
    right, ports = canonical(bed), bed.saved_bridge()
    script("save")
    bed.clear()
    with bed.on_host():
        run("sysctl", "-q", "net.bridge.bridge-nf-call-iptables=0")
    script("restore")
    script("restore")  # once is enough
    added = [line for line in canonical(bed) if "--physdev-out tap+" in line]
    assert len(added) == 2
    assert [line for line in canonical(bed) if line not in added] == [line for line in right if "foreign" not in line]
    assert bed.saved_bridge() == ports
    assert not mismatches(bed, wanted, to_guests(bed, wanted))
    assert not comes(bed, "guest-4"), "a guest that nothing was kept of is open"
    bed.enforce(**wanted, exclusive=True)
    assert canonical(bed) == [line for line in right if "foreign" not in line]
    assert comes(bed, "guest-4")


def test_isolated_networks_and_ways_out_are_there_after_a_boot(bed: Bed, script: t.Callable[[str], None]) -> None:
    for chain in ("FORWARD", "INPUT"):
        bed.iptables("IPv4", "-P", chain, "DROP")
    wanted = one_group(bed, "guest-2", on_br1=["twin-bystander"])
    bed.enforce(**wanted, bridges=["br0", "br1"], serving=["br0"])
    script("save")
    bed.clear()
    script("restore")
    sets = bed.sets()
    assert f"add nova-g-1.7-v4 {bed.places['twin-bystander'].ip}\n" in sets
    assert f"add nova-g-1-v6 {bed.places['guest-2'].ip6}\n" in sets
    saved = bed.saved("IPv4").splitlines()
    for line in ("-A FORWARD -j nova-sent", "-A nova-sent -i br0 -j ACCEPT", "-A INPUT -j nova-asked",
                 "-A nova-asked -i br0 -p udp -m udp --dport 67 -j ACCEPT", "-A nova-inst-2 -j nova-sg-1.7"):
        assert line in saved, line
    bed.enforce(**wanted, bridges=["br0", "br1"], serving=["br0"], exclusive=True)
    assert who_comes(bed) == families("guest-2", "twin-bystander")


def test_what_is_loaded_at_boot_follows_every_change(
    bed: Bed, script: t.Callable[[str], None], monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    """A host that loses its power says nothing before."""
    if bed.backend != "nft":
        pytest.skip("the module asks for the host's own iptables")
    monkeypatch.setattr(boot, "SCRIPT", str(tmp_path / "novalite-firewall"))
    (tmp_path / "novalite-firewall").symlink_to(SCRIPT)
    SCRIPT.chmod(0o755)
    wanted = policy(bed.places, {1: [{"protocol": "any"}]}, {1: [1], 2: [1], 3: [1]})
    first, *later = wanted["instances"]
    bed.enforce(**{**wanted, "instances": [first]}, check=True)
    assert not (tmp_path / "kept").exists()
    bed.enforce(**{**wanted, "instances": [first]})
    bed.enforce(**{**wanted, "instances": later})  # as a launch does
    bed.enforce(instances=later[1:], state="absent")
    bed.clear()
    script("restore")
    saved = bed.saved("IPv4")
    assert [f"nova-inst-{number} -" in saved for number in (1, 2, 3)] == [True, True, False]


def test_nothing_is_open_where_nothing_was_kept(bed: Bed, script: t.Callable[[str], None]) -> None:
    script("restore")
    assert not comes(bed, "guest-1")
    wanted = policy(bed.places, {1: [{"protocol": "any"}]}, {1: [1]})
    bed.enforce(**wanted, exclusive=True)
    assert comes(bed, "guest-1") and comes(bed, "guest-2")


def test_nothing_is_left_of_a_host_without_instances(bed: Bed, script: t.Callable[[str], None]) -> None:
    script("save")
    script("restore")
    bed.enforce(instances=[], exclusive=True)
    assert "nova" not in bed.saved("IPv4") + bed.saved("IPv6") + bed.sets()
