# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rules that somebody else changed: a check names what is wrong and touches nothing, one run puts it right."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._firewall import cache
from tests.packets.bed import Bed, Failed, run
from tests.packets.policies import SSH, policy, v6
from tests.packets.test_policies import canonical, check

pytestmark = pytest.mark.root


def state(bed: Bed) -> dict[str, t.Any]:
    return policy(
        bed.places,
        {
            1: [SSH, v6(**{**SSH, "cidr": "::/0"})],
            2: [{"protocol": "any", "remote_group_id": 1}, v6(protocol="any", remote_group_id=1)],
            3: [{"direction": "egress", "protocol": "tcp", "port_min": 443}],
        },
        {1: [1], 2: [1, 2], 3: [3]},
    )


def iptables(*lines: str) -> t.Callable[[Bed], None]:
    def break_it(bed: Bed) -> None:
        for line in lines:
            family, *words = line.split(" ")
            bed.iptables(family, *words)

    return break_it


def on_host(*lines: str) -> t.Callable[[Bed], None]:
    def break_it(bed: Bed) -> None:
        with bed.on_host():
            for line in lines:
                run(*line.split(" "))

    return break_it


# what somebody did -> how, and what a check has to name
DRIFT: dict[str, tuple[t.Callable[[Bed], None], list[str]]] = {
    "deleted hook": (iptables("IPv4 -D FORWARD -j nova-local"), ["IPv4", "FORWARD"]),
    "deleted hook of what the host sends": (iptables("IPv6 -D OUTPUT -j nova-local"), ["IPv6", "OUTPUT"]),
    "moved hook": (iptables("IPv4 -I FORWARD 1 -s 192.0.2.0/24 -j ACCEPT"), ["IPv4", "FORWARD"]),
    "a second hook": (iptables("IPv4 -A FORWARD -j nova-local"), ["IPv4", "FORWARD"]),
    "deleted egress hook": (iptables("IPv4 -t security -D FORWARD -j nova-out"), ["IPv4", "security FORWARD"]),
    "flushed group": (iptables("IPv4 -F nova-sg-1"), ["IPv4", "nova-sg-1"]),
    "flushed instance": (iptables("IPv6 -F nova-inst-2"), ["IPv6", "nova-inst-2"]),
    "flushed fallback": (iptables("IPv4 -F nova-ipv4-fallback"), ["IPv4", "nova-ipv4-fallback"]),
    "flushed dispatch": (iptables("IPv4 -F nova-local"), ["IPv4", "nova-local"]),
    "flushed everything": (iptables("IPv4 -F", "IPv6 -F"), ["IPv4", "FORWARD"]),
    "foreign rule in an instance": (iptables("IPv4 -I nova-inst-1 1 -j ACCEPT"), ["IPv4", "nova-inst-1"]),
    "foreign rule in a group": (iptables("IPv6 -A nova-sg-1 -p udp -j ACCEPT"), ["IPv6", "nova-sg-1"]),
    "deleted rule": (iptables("IPv4 -D nova-sg-1 -p tcp -m tcp --dport 22 -j ACCEPT"), ["IPv4", "nova-sg-1"]),
    "member missing": (on_host("ipset del nova-g-1-v4 10.99.0.11"), ["sets", "nova-g-1-v4"]),
    "member too many": (on_host("ipset add nova-g-1-v6 fd99::c8"), ["sets", "nova-g-1-v6"]),
    "flushed set": (on_host("ipset flush nova-g-1-v4"), ["sets", "nova-g-1-v4"]),
    "sysctl off": (
        on_host("sysctl -q net.bridge.bridge-nf-call-iptables=0"),
        ["sysctl", "net.bridge.bridge-nf-call-iptables"],
    ),
    "sysctl off for IPv6": (
        on_host("sysctl -q net.bridge.bridge-nf-call-ip6tables=0"),
        ["sysctl", "net.bridge.bridge-nf-call-ip6tables"],
    ),
}


@pytest.mark.parametrize("exclusive", [True, False], ids=["exclusive", "one of them"])
@pytest.mark.parametrize("what", DRIFT)
def test_drift(bed: Bed, what: str, exclusive: bool) -> None:
    break_it, (part, name) = DRIFT[what]
    desired_policy = state(bed)
    foreign = "-s 192.0.2.99/32 -j ACCEPT"
    bed.iptables("IPv4", "-A", "FORWARD", "-s", "192.0.2.99/32", "-j", "ACCEPT")
    bed.enforce(**desired_policy, exclusive=True)
    right = canonical(bed)
    break_it(bed)
    broken = (bed.saved("IPv4"), bed.saved("IPv6"), bed.sets())
    request = {**desired_policy, "exclusive": exclusive}
    seen = bed.enforce(check=True, **request)
    assert seen["changed"]
    assert name in seen["diff"]["before"].get(part, {}) or name in seen["diff"]["after"].get(part, {}), seen["diff"]
    assert seen["diff"]["before"] != seen["diff"]["after"]
    assert (bed.saved("IPv4"), bed.saved("IPv6"), bed.sets()) == broken
    done = bed.enforce(**request)
    assert done["changed"] and done["diff"] == seen["diff"]
    if exclusive:
        check(bed, desired_policy, 100)
    repaired = canonical(bed)
    if what == "moved hook":
        repaired.remove("-A FORWARD -s 192.0.2.0/24 -j ACCEPT")
    if what == "flushed everything":
        repaired.insert(repaired.index("-A FORWARD -j nova-local") + 1, f"-A FORWARD {foreign}")
    assert repaired == right
    assert not bed.enforce(**request)["changed"]


def other(backend: str) -> str:
    return "legacy" if backend == "nft" else "nft"


def test_rules_in_the_other_backend(bed: Bed) -> None:
    """A host whose iptables was switched over: refused, until all its instances are given, which moves them."""
    desired_policy = state(bed)
    bed.enforce(**desired_policy, backend=other(bed.backend))
    with pytest.raises(Failed, match=f"iptables-{other(bed.backend)} too"):
        bed.enforce(**desired_policy)
    seen = bed.enforce(check=True, **desired_policy, exclusive=True)
    before = seen["diff"]["before"][f"iptables-{other(bed.backend)}"]
    assert "nova-inst-1" in before["IPv4"] and "nova-inst-1" in before["IPv6"]
    assert seen["diff"]["after"][f"iptables-{other(bed.backend)}"] == {}
    assert bed.enforce(**desired_policy, exclusive=True)["changed"]
    with bed.on_host():
        for command in ("iptables", "ip6tables"):
            assert "nova" not in run(f"{command}-{other(bed.backend)}-save")
    check(bed, desired_policy, 100)
    assert not bed.enforce(**desired_policy, exclusive=True)["changed"]
    assert not bed.enforce(**desired_policy)["changed"]


def test_a_policy_that_drops_is_named(bed: Bed) -> None:
    """Docker sets one. Whoever does not say which bridges are the guests' is told; more in test_dropping.py."""
    desired_policy = state(bed)
    bed.enforce(**desired_policy)
    bed.iptables("IPv4", "-N", "DOCKER-USER")
    bed.iptables("IPv4", "-P", "FORWARD", "DROP")
    # a process of its own: where Ansible's controller is loaded, too, it takes a module's warnings for itself
    with bed.runner() as runner:

        def answer(checking: bool) -> dict[str, t.Any]:
            runner.start(**desired_policy, exclusive=True, backend=bed.backend, _ansible_check_mode=checking)
            return runner.finish()

        for checking in (True, False):
            answered = answer(checking)
            assert not answered["changed"]
            assert "Docker sets it" in str(answered["warnings"])
        bed.iptables("IPv4", "-P", "FORWARD", "ACCEPT")
        assert "warnings" not in answer(True)


@pytest.mark.parametrize("what", ["hook", "flush", "one more"])
def test_ports(bed: Bed, what: str) -> None:
    """The chains against spoofing."""
    desired_policy = state(bed)
    for instance in desired_policy["instances"]:
        place = bed.places[f"guest-{instance['id']}"]
        instance["ports"] = [{"device": bed.tap(place.name), "mac": place.mac, "addresses": [place.ip]}]
    bed.enforce(**desired_policy, exclusive=True)
    break_it = {
        "hook": "ebtables -t nat -D PREROUTING -j nova-ports",
        "flush": "ebtables -t nat -F nova-port-1-0",
        "one more": "ebtables -t nat -I nova-port-1-0 1 -j ACCEPT",
    }[what]
    right = bed.saved_bridge()
    on_host(break_it)(bed)
    wrong = bed.saved_bridge()
    seen = bed.enforce(check=True, **desired_policy)
    assert seen["diff"]["before"]["ports"] != seen["diff"]["after"]["ports"]
    assert bed.saved_bridge() == wrong
    assert bed.enforce(**desired_policy)["changed"]
    assert bed.saved_bridge() == right
    assert not bed.enforce(**desired_policy, exclusive=True)["changed"]


# what somebody did -> how, and what the run that repairs it names
DAMAGE: dict[str, tuple[t.Callable[[Bed], None], str, str]] = {
    "flushed": (iptables("IPv4 -F", "IPv6 -F"), "IPv4", "FORWARD"),
    "deleted": (iptables("IPv4 -F", "IPv4 -X"), "IPv4", "nova-inst-1"),
    "flushed dispatch": (iptables("IPv4 -F nova-local"), "IPv4", "nova-local"),
    "flushed devices": (iptables("IPv6 -F nova-tap"), "IPv6", "nova-tap"),
    "flushed instance": (iptables("IPv4 -F nova-inst-1"), "IPv4", "nova-inst-1"),
    "flushed egress": (iptables("IPv6 -t security -F"), "IPv6", "nova-nd"),
    "opened instance": (iptables("IPv6 -I nova-inst-2 1 -j ACCEPT"), "IPv6", "nova-inst-2"),
    "no hook": (iptables("IPv4 -D FORWARD -j nova-local"), "IPv4", "FORWARD"),
    "flushed ports": (on_host("ebtables -t nat -F nova-port-1-0"), "ports", "nova-port-1-0"),
}


def guarded(bed: Bed) -> dict[str, t.Any]:
    desired_policy = state(bed)
    for instance in desired_policy["instances"]:
        place = bed.places[f"guest-{instance['id']}"]
        instance["devices"] = [bed.tap(place.name)]
        instance["ports"] = [
            {"device": bed.tap(place.name), "mac": place.mac, "addresses": [place.ip, place.ip6, place.link_local]}
        ]
    return desired_policy


@pytest.mark.parametrize("request_kind", ["a launch", "members"])
@pytest.mark.parametrize("what", DAMAGE)
def test_a_request_for_others_repairs_what_somebody_did(bed: Bed, what: str, request_kind: str) -> None:
    break_it, table, name = DAMAGE[what]
    desired_policy = guarded(bed)
    bed.enforce(**desired_policy, exclusive=True)
    right, ports = canonical(bed), bed.saved_bridge()
    break_it(bed)
    broken = [bed.saved("IPv4"), bed.saved("IPv6"), bed.saved_bridge()]
    request = {**desired_policy, "instances": desired_policy["instances"][2:]}
    if request_kind == "members":
        request = {"security_groups": [{"id": 1, "members": desired_policy["security_groups"][0]["members"]}]}
    seen = bed.enforce(check=True, **request)
    assert seen["changed"] and name in seen["repaired"][table]
    assert [bed.saved("IPv4"), bed.saved("IPv6"), bed.saved_bridge()] == broken
    done = bed.enforce(**request)
    assert done["repaired"] == seen["repaired"] and done["diff"] == seen["diff"]
    assert (canonical(bed), bed.saved_bridge()) == (right, ports)
    again = bed.enforce(**request)
    assert not again["changed"] and "repaired" not in again


def test_what_somebody_emptied_is_closed_where_nothing_is_known_of_it(bed: Bed) -> None:
    """As after a run that was cut off, which leaves no notes."""
    desired_policy = guarded(bed)
    bed.enforce(**desired_policy, exclusive=True)
    right = canonical(bed)
    iptables("IPv4 -F nova-inst-1", "IPv6 -F nova-new-2")(bed)
    cache.forget(f"{bed.locks}/notes")
    with bed.runner() as runner:
        runner.start(**{**desired_policy, "instances": desired_policy["instances"][2:]}, backend=bed.backend)
        done = runner.finish()
    assert "nova-inst-1" in str(done["warnings"]) and "firewall.yml" in str(done["warnings"])
    assert "-A nova-inst-1 -j nova-ipv4-fallback" in bed.saved("IPv4")
    assert "-A nova-new-2 -j nova-ipv6-fallback" in bed.saved("IPv6")
    bed.enforce(**desired_policy, exclusive=True)
    assert canonical(bed) == right
