# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The firewall on real iptables, both backends, with packets between network namespaces."""

from __future__ import annotations

import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._firewall import apply, arguments, policy

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("own_files")]

UUID = "6f1b6a2c-3f0e-4b1d-9a57-000000000001"
SSH = {"protocol": "tcp", "port_min": 22, "port_max": 22, "cidr": "0.0.0.0/0"}
SSH6 = {**SSH, "ethertype": "IPv6", "cidr": "fd99::/64"}
# One of each kind that iptables has its own way to print.
ALL_KINDS: list[dict[str, t.Any]] = [
    SSH,
    SSH6,
    {"protocol": "any", "cidr": "198.51.100.7/24"},
    {"protocol": "tcp", "port_min": 0, "port_max": 100},
    {"protocol": "udp", "port_min": 1, "port_max": 65535},
    {"protocol": "132", "port_min": 5, "port_max": 9},
    {"protocol": "icmp"},
    {"protocol": "icmp", "port_min": 3, "port_max": 4},
    {"ethertype": "IPv6", "protocol": "icmp"},
    {"ethertype": "IPv6", "protocol": "icmpv6", "port_min": 128, "port_max": 0},
    {"ethertype": "IPv6", "protocol": "any", "cidr": "::ffff:198.51.100.1/128"},
    *({"protocol": str(number)} for number in (2, 4, 33, 41, 47, 50, 51, 89, 103, 112, 115, 136, 139, 200, 255)),
    *({"protocol": str(number), "ethertype": "IPv6"} for number in (4, 33, 47, 50, 89, 103, 135, 136)),
    {"protocol": "tcp", "port_min": 7, "remote_group_id": 2},
]


def request_for(rules: list[dict[str, t.Any]], **values: t.Any) -> arguments.Request:
    instance = {
        "id": 1,
        "uuid": UUID,
        "addresses": ["10.99.0.5", "fd99::5"],
        "dhcp_servers": ["10.99.0.1"],
        "security_groups": [1],
    }
    members = values.pop("members", ["10.99.0.6", "fd99::6"])
    groups = [{"id": 1, "rules": rules}, {"id": 2, "members": members}]
    return arguments.Request(
        tuple(arguments.parse_instances([{**instance, **values.pop("instance", {})}])),
        tuple(arguments.parse_groups(groups)),
        zones={"br0": 9},
        **values,
    )


def saved(backend: str, tables: t.Sequence[str] = ("filter",)) -> str:
    lines = []
    for command in ("iptables", "ip6tables"):
        for table in tables:
            out = subprocess.run([f"{command}-{backend}-save", "-t", table], check=True, capture_output=True, text=True)
            lines += [line.partition(" [")[0] for line in out.stdout.splitlines() if not line.startswith("#")]
    return "\n".join(lines)


def in_set(name: str) -> set[str]:
    out = subprocess.run(["ipset", "save", name], capture_output=True, text=True, check=False).stdout
    return {line.split()[2] for line in out.splitlines() if line.startswith("add ")}


def iptables(backend: str, *words: str) -> None:
    subprocess.run([f"iptables-{backend}", *words], check=True, capture_output=True)


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_an_address_that_no_chain_can_name_is_closed_and_named(lan: t.Any, backend: str) -> None:
    crowded = request_for(ALL_KINDS, instance={"id": 10**10, "allowed_pairs": [{"cidr": "10.99.0.9"}]})
    with lan.enter(lan.hypervisor):
        for changed in (True, False):
            outcome = apply.apply(crowded, backend=backend)
            assert outcome.changed == changed and "the address 10.99.0.9/32 is" in str(outcome.warnings)
        rules = saved(backend).splitlines()
        closed = [line.partition(" ")[2] for line in rules if line.startswith("-A nova-new-0+10000000000 ")]
        assert (
            closed == ["nova-new-0+10000000000 -j nova-ipv4-fallback"]
            and "-A nova-local -d 10.99.0.9/32 -j nova-inst-0+10000000000" in rules
        )


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_rules_come_back_as_they_were_written(lan: t.Any, backend: str) -> None:
    with lan.enter(lan.hypervisor):
        iptables(backend, "-A", "FORWARD", "-m", "comment", "--comment", "mine -j nova-inst-1", "-j", "ACCEPT")
        iptables(backend, "-N", "nova-inst-1x")
        before = saved(backend)
        planned = apply.apply(request_for(ALL_KINDS), check_mode=True, backend=backend)
        assert planned.changed
        assert saved(backend) == before
        first = apply.apply(request_for(ALL_KINDS), backend=backend)
        assert (first.changed, first.restores) == (True, 2)
        assert (first.before, first.after) == (planned.before, planned.after)
        second = apply.apply(request_for(ALL_KINDS), backend=backend)
        assert (second.changed, second.restores) == (False, 0)
        iptables(backend, "-I", "FORWARD", "1", "-j", "ACCEPT")
        iptables(backend, "-F", "nova-ipv4-fallback")
        iptables(backend, "-A", "nova-inst-1", "-j", "ACCEPT")
        # The legacy tables' size and shape may be taken for them only where they are large.
        repaired = apply.apply(request_for(ALL_KINDS), backend=backend)
        assert (repaired.restores, set(repaired.after["IPv4"])) == (1, {"nova-ipv4-fallback", "nova-inst-1", "FORWARD"})
        iptables(backend, "-D", "FORWARD", "-j", "ACCEPT")
        assert apply.apply(request_for([], state="absent"), backend=backend).restores == 2
        assert saved(backend) == before
        assert not apply.apply(request_for([], state="absent"), backend=backend).changed


EVERYTHING: dict[str, t.Any] = {
    "scoped": [{"bridge": "br0", "addresses": ["10.99.0.5", "fe80::5"]}],
    "allowed_pairs": [{"cidr": "10.99.0.77"}],
}
EGRESS = [
    {"direction": "egress", "protocol": "tcp", "port_min": 80, "remote_group_id": 2},
    {"direction": "egress", "protocol": "icmp", "port_min": 8, "cidr": "10.0.0.0/8"},
    {"direction": "egress", "ethertype": "IPv6", "protocol": "icmpv6", "port_min": 128},
]
TABLES = ("raw", "filter", "security")


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_isolation_and_egress_come_back_as_they_were_written(lan: t.Any, backend: str) -> None:
    with lan.enter(lan.hypervisor):
        before = saved(backend, TABLES)
        request = request_for([*ALL_KINDS, *EGRESS], instance=EVERYTHING)
        assert apply.apply(request, backend=backend).restores == 2
        there = saved(backend, TABLES)
        for line in (
            "-A nova-zone -i br0 -j CT --zone 9",
            "-A nova-local -o br0 -g nova-net-br0",
            "-A nova-out -i br0 -g nova-from-br0",
            "-A nova-local -d 10.99.0.77/32 -j nova-inst-1",
        ):
            assert line in there
        assert not apply.apply(request, backend=backend).changed
        assert not apply.apply(request, check_mode=True, backend=backend).changed
        iptables(backend, "-t", "security", "-F", "nova-out-1")
        iptables(backend, "-t", "raw", "-D", "PREROUTING", "-j", "nova-zone")
        repaired = apply.apply(request, backend=backend)
        assert (repaired.restores, set(repaired.after["IPv4"])) == (1, {"nova-out-1", "raw PREROUTING"})
        assert saved(backend, TABLES) == there
        apply.apply(request_for([], state="absent"), backend=backend)
        assert saved(backend, TABLES) == before
        assert not apply.sets.names()


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_a_change_of_members_touches_no_rule(lan: t.Any, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [
        {"protocol": "tcp", "remote_group_id": 2},
        {"protocol": "any", "remote_group_id": 1},
        {"ethertype": "IPv6", "protocol": "udp", "remote_group_id": 2},
    ]
    with lan.enter(lan.hypervisor):
        apply.apply(request_for(rules), backend=backend)
        assert in_set("nova-g-2-v4") == {"10.99.0.6"}
        assert in_set("nova-g-1-v4") == set()  # the group itself: its members were not said
        groups = [{"id": 2, "members": ["10.99.0.6", "10.99.0.8"]}]
        with monkeypatch.context() as patch:
            patch.setattr(apply.Tables, "write", None)
            patch.setattr(apply.Tables, "text", None)
            only = arguments.Request(groups=tuple(arguments.parse_groups(groups)))
            assert apply.apply(only, backend=backend).changed
            assert in_set("nova-g-2-v4") == {"10.99.0.6", "10.99.0.8"}
            assert not apply.apply(only, backend=backend).changed
            for change, members in (
                ({"joining": [{"addresses": ["10.99.0.9", "fd99::9"]}]}, {"10.99.0.6", "10.99.0.8", "10.99.0.9"}),
                ({"leaving": [{"addresses": ["10.99.0.6", "10.99.0.8", "10.99.0.5"]}]}, {"10.99.0.9"}),
            ):
                only = arguments.Request(groups=tuple(arguments.parse_groups([{"id": 2, **change}])))
                assert apply.apply(only, backend=backend).changed
                assert (in_set("nova-g-2-v4"), in_set("nova-g-2-v6")) == (members, {"fd99::9"})
                assert not apply.apply(only, backend=backend).changed
        monkeypatch.setattr(apply.Tables, "write", None)
        few = ["10.99.0.6", "10.99.0.7", "fd99::7"]
        changed = apply.apply(request_for(rules, members=few), backend=backend)
        assert changed.after == {"sets": {"nova-g-2-v4": ["10.99.0.6", "10.99.0.7"], "nova-g-2-v6": ["fd99::7"]}}
        assert in_set("nova-g-2-v4") == {"10.99.0.6", "10.99.0.7"}
        many = [f"10.99.1.{number}" for number in range(100)]
        apply.apply(request_for(rules, members=many), backend=backend)
        assert in_set("nova-g-2-v4") == set(many)
        assert in_set("nova-g-2-v6") == set()
        assert not apply.apply(request_for(rules, members=many), backend=backend).changed
        assert not apply.apply(request_for(rules, members=None), backend=backend).changed
        assert in_set("nova-g-2-v4") == set(many)
        subprocess.run(["ipset", "del", "nova-g-2-v4", "10.99.1.5"], check=True)
        drifted = apply.apply(request_for(rules, members=many), check_mode=True, backend=backend)
        assert set(drifted.after) == {"sets"}


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_without_sets_there_is_a_rule_for_each_member(lan: t.Any, backend: str) -> None:
    rules = [{"protocol": "tcp", "remote_group_id": 2}]
    with lan.enter(lan.hypervisor):
        apply.apply(request_for(rules, sets=False), backend=backend)
        assert "-A nova-sg-1 -s 10.99.0.6/32 -p tcp -m comment --comment nova-g-2 -j ACCEPT" in saved(backend)
        assert not apply.apply(request_for(rules, sets=False), backend=backend).changed
        left = arguments.Request(groups=(policy.Group(2, None, {"": ("10.99.0.7",)}),))
        for changed in (True, False):
            assert apply.apply(left, backend=backend).changed == changed
            assert "10.99.0.6" not in saved(backend)
            assert "-A nova-sg-1 -s 10.99.0.7/32 -p tcp -m comment --comment nova-g-2 -j ACCEPT" in saved(backend)
        for change, stays in (
            ({"joining": [{"addresses": ["10.99.0.8"]}]}, True),
            ({"leaving": [{"addresses": ["10.99.0.7", "10.99.0.5"]}]}, False),
        ):
            other = arguments.Request(groups=tuple(arguments.parse_groups([{"id": 2, **change}])), sets=False)
            for changed in (True, False):
                assert apply.apply(other, backend=backend).changed == changed
                assert ("10.99.0.7" in saved(backend)) is stays
                assert "-A nova-sg-1 -s 10.99.0.8/32 -p tcp -m comment --comment nova-g-2 -j ACCEPT" in saved(backend)
        apply.apply(request_for(rules), backend=backend)
        assert "--match-set nova-g-2-v4 src" in saved(backend)


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_nothing_is_read_until_somebody_else_writes(lan: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    text = apply.Tables.text

    def note(self: apply.Tables, family: str) -> str:
        read.append(family)
        return text(self, family)

    monkeypatch.setattr(apply.Tables, "text", note)
    with lan.enter(lan.hypervisor):
        apply.apply(request_for([SSH]), backend="nft")
        del read[:]
        second = {"id": 2, "addresses": ["10.99.0.7"], "security_groups": [1]}
        two = arguments.Request(tuple(arguments.parse_instances([second])))
        assert apply.apply(two, backend="nft").restores == 1
        assert not apply.apply(two, backend="nft").changed
        assert read == []
        assert apply.apply(two, check_mode=True, backend="nft").changed is False
        assert read == ["IPv4", "IPv6"]
        del read[:]
        iptables("nft", "-A", "OUTPUT", "-p", "tcp", "-j", "ACCEPT")
        iptables("nft", "-F", "nova-inst-2")
        assert set(apply.apply(two, backend="nft").after["IPv4"]) == {"nova-inst-2"}
        assert read == ["IPv4", "IPv6"]


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_a_guest_more_or_less_is_one_transaction_for_each_family(
    lan: t.Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is refused and tried again, also where it makes devices a tree, and lines are appended to what is there:
    what a run leaves is no damage for the next one that reads it."""
    written: list[str] = []
    write = apply.Tables.write

    def note(self: apply.Tables, family: str, text: str) -> None:
        written.append(text)
        write(self, family, text)

    monkeypatch.setattr(apply.Tables, "write", note)
    guests = [
        {
            "id": number,
            "addresses": [f"10.99.0.{number}", f"fd99::{number:x}"],
            "security_groups": [1],
            "devices": [f"tap{(8 * number + card) * 397 % 4096:03x}" for card in range(8)],
        }
        for number in range(1, 7)
    ]
    groups = tuple(arguments.parse_groups([{"id": 1, "rules": [SSH]}]))
    with lan.enter(lan.hypervisor):
        for state in ("present", "absent"):
            for guest in guests:
                del written[:]
                alone = arguments.Request(tuple(arguments.parse_instances([guest])), groups, state=state)
                assert apply.apply(alone, backend=backend).changed
                assert len(written) == 2
                again = apply.apply(alone, backend=backend, check_mode=True)
                assert not again.changed and not again.repaired and not again.warnings
        assert ":nova-" not in saved(backend, ("filter", "security"))


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_a_kernel_that_cannot_compare_targets_is_named(
    lan: t.Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the remedy, as long as it cannot. The answer is not real: every kernel that this runs on can."""
    request = request_for([SSH], instance={"devices": ["tap0"]})
    with lan.enter(lan.hypervisor), monkeypatch.context() as patch:
        patch.setattr(apply.Tables, "compares_bytes", lambda _self: False)
        for changed in (True, False):
            outcome = apply.apply(request, backend=backend)
            assert outcome.changed == changed
            assert "no xt_bpf" in outcome.warnings[0] and "kernel-modules-extra" in outcome.warnings[0]
        assert "-A nova-target-1 -j RETURN" in saved(backend, ("security",))
    with lan.enter(lan.hypervisor):
        for changed in (True, False):
            outcome = apply.apply(request, backend=backend)
            assert outcome.changed == changed and not outcome.warnings
        rules = saved(backend, ("security",))
    assert "-A nova-target-1 -m bpf " in rules and "-A nova-target-1 -j DROP" in rules


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_a_run_that_is_cut_off_leaves_nothing_to_trust(
    lan: t.Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = apply.Tables.write

    def die_afterwards(self: apply.Tables, family: str, text: str) -> None:
        write(self, family, text)
        raise KeyboardInterrupt

    with lan.enter(lan.hypervisor):
        apply.apply(request_for([SSH]), backend=backend)
        with monkeypatch.context() as patch:
            patch.setattr(apply.Tables, "write", die_afterwards)
            patch.setattr(apply._Run, "_undo", lambda self: None)
            with pytest.raises(KeyboardInterrupt):
                apply.apply(request_for([]), backend=backend)
        assert "--dport 22" not in saved(backend).partition("COMMIT")[0]
        assert apply.apply(request_for([SSH]), backend=backend).restores == 1
        assert not apply.apply(request_for([SSH]), backend=backend, check_mode=True).changed


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_a_host_with_both_backends_is_refused(lan: t.Any, backend: str) -> None:
    other = "legacy" if backend == "nft" else "nft"
    with lan.enter(lan.hypervisor):
        iptables(other, "-N", "nova-local")
        with pytest.raises(NovaliteError, match=f"iptables-{other} too"):
            apply.apply(request_for([SSH]), backend=backend)
        assert "nova" not in saved(backend)


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_what_one_family_got_is_taken_back_when_the_other_fails(
    lan: t.Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = apply.Tables.write

    def fail_for_ipv6(self: apply.Tables, family: str, text: str) -> None:
        if family == "IPv6":
            raise apply.CommandError(["ip6tables-restore"], 1, "line 7 failed")
        write(self, family, text)

    with lan.enter(lan.hypervisor):
        before = saved(backend)
        monkeypatch.setattr(apply.Tables, "write", fail_for_ipv6)
        monkeypatch.setattr(apply.time, "sleep", lambda _seconds: None)
        with pytest.raises(NovaliteError, match=r"refused 5 times.*line 7 failed"):
            apply.apply(request_for([SSH]), backend=backend)
        assert saved(backend) == before


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_another_program_that_was_faster_is_looked_at_again(
    lan: t.Any, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, tries = apply.Tables.write, []

    def fail_twice(self: apply.Tables, family: str, text: str) -> None:
        tries.append(family)
        if len(tries) < 3:
            iptables(backend, "-I", "FORWARD", "1", "-p", "tcp", "-j", "ACCEPT")
            raise apply.CommandError(["iptables-restore"], 4, "line 9: COMMIT failed")
        write(self, family, text)

    with lan.enter(lan.hypervisor):
        monkeypatch.setattr(apply.Tables, "write", fail_twice)
        monkeypatch.setattr(apply.time, "sleep", lambda _seconds: None)
        assert apply.apply(request_for([SSH]), backend=backend).restores == 2
        assert tries == ["IPv4", "IPv4", "IPv4", "IPv6"]
        forward = [line for line in saved(backend).splitlines() if line.startswith("-A FORWARD")]
        assert forward == ["-A FORWARD -j nova-local", *["-A FORWARD -p tcp -j ACCEPT"] * 2, "-A FORWARD -j nova-local"]
