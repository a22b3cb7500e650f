# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chains by which a packet finds the instance by its device."""

from __future__ import annotations

import pathlib
import re
import uuid

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._firewall import arguments, devices
from tests.unit._firewall.host_model import Host, request


def rules_met(chains: devices.Chains, chain: str, device: str) -> tuple[int, str | None]:
    """Count the rules that a packet meets which leaves by a device, and where they lead."""
    met = 0
    for rule in chains[chain]:
        met += 1
        match = re.search(r"--physdev-out (\S+)", rule)
        if match and (device == match[1] or (match[1].endswith("+") and device.startswith(match[1][:-1]))):
            target = rule.rpartition(" ")[2]
            if target not in chains:
                return met, target
            below, final_target = rules_met(chains, target, device)
            return met + below, final_target
    return met, None


@pytest.mark.parametrize("count", [1, 16, 17, 500])
def test_each_device_leads_to_its_instance_in_few_steps(count: int) -> None:
    names = {
        f"tap{uuid.UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC834 % 2**128)}"[:14]: str(number)
        for number in range(1, count + 1)
    }
    chains = devices.chains(devices.TO, names, "IPv4")
    walks = {name: rules_met(chains, "nova-tap", name) for name in names}
    assert {name: target for name, (_met, target) in walks.items()} == {
        name: f"nova-inst-{who}" for name, who in names.items()
    }
    assert max(met for met, _target in walks.values()) < 50
    assert rules_met(chains, "nova-tap", "vnet0")[1] is None
    assert rules_met(chains, "nova-tap", min(names) + "x")[1] is None
    assert all(len(name) <= 28 for name in chains)
    assert devices.read(devices.TO, lambda chain: chains.get(chain, ())) == names


def test_what_comes_and_goes_one_by_one_leaves_the_chains_that_all_at_once_have(tmp_path: pathlib.Path) -> None:
    """The restore text is refused where it leads to a chain that was not there, or takes one away that is in use: a
    chain that falls apart, or comes together, concerns devices that did not change, too."""
    guests = [
        {
            "id": number,
            "addresses": [f"10.0.0.{number}"],
            "devices": [f"tap{number * 397 % 4096:03x}"],
            "security_groups": [1],
        }
        for number in range(1, 41)
    ]
    groups = [{"id": 1, "rules": []}]
    host = Host(directory=tmp_path)
    host.apply(request(guests[0], groups=groups))
    for number, guest in enumerate(guests[1:], 2):
        there = host.owned().keys()
        host.apply(request(guest, groups=groups))
        assert f"-A nova-local -d 10.0.0.{number}/32 -j nova-inst-{number}" in host.text
        assert len(there & set(re.findall(r"^:(\S+)", host.text, re.MULTILINE))) <= 2  # emptied, if it fell apart
        fresh_host = Host()
        fresh_host.apply(request(*guests[:number], groups=groups))
        assert host.meant() == fresh_host.meant()
    for number, guest in reversed([*enumerate(guests[1:], 1)]):
        host.apply(request(guest, groups=groups, state="absent"))
        fresh_host = Host()
        fresh_host.apply(request(*guests[:number], groups=groups))
        assert host.meant() == fresh_host.meant()
    assert host.trusted == 2 * (len(guests) - 1)


@pytest.mark.parametrize("name", ["", "tap0 -j ACCEPT", "tap+", "a" * 16, "!tap", 'tap"'])
def test_what_is_no_device_is_refused(name: str) -> None:
    with pytest.raises(NovaliteError, match=r"instance 7: .* not a name of a network device"):
        arguments.parse_instances([{"id": 7, "devices": [name]}])


def test_a_device_is_one_instances() -> None:
    with pytest.raises(NovaliteError, match="tap0 is given for the instances 1 and 2"):
        arguments.parse_instances([{"id": 1, "devices": ["tap0"]}, {"id": 2, "devices": ["tap0"]}])


def test_without_xt_bpf_everything_else_is_judged() -> None:
    """Not every distribution has it among the modules that it installs."""
    host = Host(family="IPv6")
    instance = {"id": 1, "addresses": ["fd00::1"], "devices": ["tap0"], "security_groups": [1]}
    able, unable = (request(instance, groups=[{"id": 1, "rules": []}], targets=targets) for targets in (True, False))
    host.apply(unable)
    assert host.rules("security", "nova-target-1") == ("-j RETURN",)
    assert not [rule for rules in host.owned().values() for rule in rules if "bpf" in rule]
    host.apply(able)
    assert host.rules("security", "nova-target-1")[-1] == "-j DROP"
    assert [devices.compare(rules) for rules in (host.rules("security", "nova-target-1"), ("-j DROP",))] == [True] * 2


@pytest.mark.parametrize("rules", [(), devices.ANY_TARGET, ('-m u32 --u32 "0x30=0xfd000000" -j RETURN', "-j DROP")])
def test_whether_a_kernel_compares_is_asked_where_the_rules_do_not_say(rules: tuple[str, ...]) -> None:
    """Also of a host of an earlier release, which did it by xt_u32."""
    assert not devices.compare(rules)


def test_a_device_without_port_security_leads_past_all_rules(tmp_path: pathlib.Path) -> None:
    """Of a guest with two interfaces, the groups judge the other one; what it asks of the host is limited on both."""
    host = Host(directory=tmp_path)
    groups = [{"id": 1, "rules": []}]
    secured = {"id": 7, "addresses": ["10.0.0.7"], "devices": ["tap0"], "security_groups": [1]}
    host.apply(request({**secured, "open_devices": ["tap1"]}, groups=groups))
    assert host.rules("filter", "nova-local")[:2] == (
        "-m physdev --physdev-is-bridged -j nova-open",
        "-m physdev --physdev-is-bridged -j nova-tap",
    )
    assert host.rules("filter", "nova-open") == ("-m physdev --physdev-out tap1 --physdev-is-bridged -g nova-free-7",)
    assert host.rules("filter", "nova-free-7") == ("-j ACCEPT",)
    assert [rule.split(" ")[3] for rule in host.rules("filter", "nova-host")[2:]] == ["tap0", "tap1"]
    host.apply(request({**secured, "devices": ["tap0", "tap1"]}, groups=groups))
    assert not {"nova-open", "nova-free-7"} & host.owned().keys()
    host.apply(request({"id": 7, "open_devices": ["tap0", "tap1"]}, groups=[]))
    assert not {"nova-tap", "nova-inst-7", "nova-sg-1"} & host.owned().keys()
    assert host.rules("filter", "nova-to-host")[-1] == "-j DROP"
    host.apply(request({"id": 7}, groups=[], state="absent"))
    assert host.owned() == {}
