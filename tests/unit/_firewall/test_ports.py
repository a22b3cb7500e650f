# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chains of ebtables that hold guests to their addresses."""

from __future__ import annotations

import pathlib
import re
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._firewall import apply, arguments, ports
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from ansible_collections.novalite.cloud.plugins.module_utils._network import nwfilter

BOTH = {
    "device": "tap1",
    "mac": "FA:16:3E:00:00:01",
    "addresses": ["10.0.0.5", "fd00::5", "fe80::1"],
    "allowed_pairs": [
        {"mac": "00:00:5e:00:01:01", "cidr": "10.1.0.0/24"},
        {"mac": "fa:16:3e:00:00:01", "cidr": "fd01::/64"},
    ],
}
V4 = {"device": "tap2", "mac": "fa:16:3e:00:00:02", "addresses": ["10.0.0.6"]}


def test_the_chain_says_what_the_network_filters_say() -> None:
    """One filter rule, one line, in the order of the filters' priorities."""
    port = ports.parse_port(1, {**BOTH, "allowed_pairs": [], "addresses": ["10.0.0.5", "fd00::5"]})
    filters = sorted(
        (rule for filter_ in nwfilter.SECURED.values() for rule in filter_.rules), key=lambda rule: rule[1]
    )
    lines = ports.rules(port)
    assert [line.rpartition(" ")[2].lower() for line in lines] == [rule[0] for rule in filters]
    words = {"arp": "-p ARP", "ip": "-p IPv4", "ipv6": "-p IPv6", "mac": "-j DROP"}
    assert all(line.startswith(words[rule[2]]) for line, rule in zip(lines, filters))
    assert not [line for line in lines if "ACCEPT" in line and "-s fa:16:3e:00:00:01" not in line]


def test_without_port_security_vlan_tags_alone_are_dropped() -> None:
    lines = ports.rules(ports.parse_port(1, {"device": "tap1", "mac": V4["mac"], "port_security": False}))
    assert lines == ["-p 802_1Q -j DROP", "-p 0x88a8 -j DROP"]
    for spelling in ("S-TAG", "802_1ad", "0x88A8"):  # as the host's /etc/ethertypes has it
        present = ports.parse(
            f":nova-port-1-0 RETURN\n-A nova-port-1-0 {lines[0]}\n-A nova-port-1-0 -p {spelling} -j DROP\n"
        )
        assert present.chains["nova-port-1-0"] == lines


def test_without_an_ipv6_address_no_ipv6() -> None:
    assert not [line for line in ports.rules(ports.parse_port(1, V4)) if "IPv6" in line]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"mac": "fa:16"}, "fa:16"),
        ({"device": "a b"}, "a b"),
        ({"addresses": ["10.0.0"]}, "10.0.0"),
        ({"allowed_pairs": [{"mac": "fa:16:3e:00:00:01", "cidr": "10.0.0.1/8"}]}, "10.0.0.1/8"),
    ],
)
def test_what_is_no_port_is_refused(change: dict[str, t.Any], named: str) -> None:
    with pytest.raises(NovaliteError, match=re.escape(repr(named))):
        ports.parse_port(1, {**V4, **change})


def test_a_device_that_moved_leaves_its_old_line() -> None:
    present = ports.Present(
        {
            "nova-ports": ["-i tap2 -j nova-port-7-0", "-i tap3 -j nova-port-8-0", "-j ACCEPT"],
            "nova-port-7-0": ["-j DROP"],
            "nova-port-8-0": ["-j DROP"],
            "nova-port-9-0": [],
        }
    )
    chains = ports.chains_after(present, {9: [ports.parse_port(9, V4)]}, {9}, False)
    assert chains["nova-ports"] == ["-i tap2 -j nova-port-9-0", "-i tap3 -j nova-port-8-0"]
    assert set(chains) == {"nova-ports", "nova-port-8-0", "nova-port-9-0"}


def run(directory: pathlib.Path, *instances: dict[str, t.Any], **values: t.Any) -> apply.Outcome:
    request = arguments.Request(tuple(arguments.parse_instances(instances)), **values)
    return apply.apply(request, backend="nft", directory=str(directory))


@pytest.mark.root
@pytest.mark.parametrize("lan", [0], indirect=True)
def test_on_a_host(lan: t.Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks.locked.__wrapped__, "__defaults__", (60.0, str(tmp_path)))  # type: ignore[attr-defined]  # a wrapped function has it
    kept = tmp_path / "kept"

    def there() -> list[str]:
        out = subprocess.run(["ebtables-save", "-t", "nat"], check=True, capture_output=True, text=True).stdout
        return [line for line in out.splitlines() if not line.startswith("#")]

    instance = {"id": 1, "addresses": ["10.0.0.5"], "ports": [BOTH]}
    two = {"id": 2, "addresses": ["10.0.0.6"], "ports": [V4]}
    with lan.enter(lan.hypervisor):
        subprocess.run(["ebtables", "-t", "nat", "-A", "PREROUTING", "-i", "x", "-j", "ACCEPT"], check=True)
        before = there()
        assert run(kept, instance).changed
        assert not run(kept, instance).changed
        assert not run(tmp_path / "nothing", instance).changed, "what ebtables prints is what was asked for"
        assert run(kept, two).changed
        assert "-A nova-ports -i tap1 -j nova-port-1-0" in there()
        assert there()[there().index("-A PREROUTING -j nova-ports") + 1].startswith("-A PREROUTING -i x")
        subprocess.run(["ebtables", "-t", "nat", "-F", "nova-port-1-0"], check=True)
        repaired = run(kept, instance)
        assert set(repaired.after) == {"ports"}
        assert set(repaired.after["ports"]) == {"nova-port-1-0"}
        run(kept, instance, state="absent")
        assert not [line for line in there() if "nova-port-1" in line]
        run(kept, two, state="absent")
        assert there() == before
