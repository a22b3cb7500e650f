# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runs at once, a run that is killed, and another program that works on the same tables."""

from __future__ import annotations

import os
import random
import signal
import time
import typing as t

import pytest

from tests.packets.bed import Bed
from tests.packets.policies import policy
from tests.packets.test_policies import canonical

pytestmark = pytest.mark.root

KILLS = int(os.environ.get("NOVALITE_PACKET_KILLS", "3"))


def big_state(bed: Bed, seed: int) -> dict[str, t.Any]:
    """More instances than there are guests here, so that a run takes a while and its text fills more than a pipe."""
    chance = random.Random(seed)
    state = policy(bed.places, {}, {1: [], 2: []})
    groups = [
        {
            "id": number,
            "members": [f"10.{seed}.{number}.1"],
            "rules": [
                {"protocol": "tcp", "port_min": port, "remote_group_id": chance.randint(1, 20)} for port in range(30)
            ],
        }
        for number in range(1, 21)
    ]
    for number in range(100, 300):
        state["instances"].append(
            # two of them are others in each state
            {
                "id": number + (1000 * seed if number < 102 else 0),
                "security_groups": chance.sample(range(1, 21), 3),
                "addresses": [f"10.100.0.{number - 99}", f"fd9a::{number:x}"],
            }
        )
    return {"instances": state["instances"], "security_groups": groups, "exclusive": True}


def families(bed: Bed) -> tuple[list[str], list[str]]:
    """IPv4's and IPv6's rules as sorted lines, each."""
    return sorted(bed.saved("IPv4").splitlines()), sorted(bed.saved("IPv6").splitlines())


def test_two_runs_at_once(bed: Bed) -> None:
    states = [big_state(bed, 1), big_state(bed, 2)]
    ends = []
    for state in states:
        bed.enforce(**state)
        ends.append(canonical(bed))
    with bed.runner() as first, bed.runner() as second:
        for attempt in range(3):
            for runner, state in ((first, states[attempt % 2]), (second, states[(attempt + 1) % 2])):
                runner.start(backend=bed.backend, **state)
            answers = [first.finish(), second.finish()]
            assert not [answer["msg"] for answer in answers if answer.get("failed")]
            assert canonical(bed) in ends, "a mixture of two runs"


@pytest.mark.parametrize("whole_group", [False, True], ids=["the module", "and its commands"])
def test_kill(bed: Bed, whole_group: bool) -> None:
    """Each family's rules are the old or the new ones, and the next run finishes the work."""
    states = [big_state(bed, 1), big_state(bed, 2)]
    ends = []
    for state in states:
        started = time.monotonic()
        bed.enforce(**state)
        took = time.monotonic() - started
        ends.append(families(bed))
    chance = random.Random(0)
    for number in range(KILLS):
        target = number % 2
        with bed.runner() as runner:
            runner.start(backend=bed.backend, **states[target])
            time.sleep(chance.uniform(0, took))
            (os.killpg if whole_group else os.kill)(runner.process.pid, signal.SIGKILL)
        wait_for_commands(bed)
        for family, old, new in zip(families(bed), ends[1 - target], ends[target], strict=True):
            mixture = sorted(set(rules(family)) ^ set(rules(new)))
            what = "\n".join(["neither the old nor the new rules", *mixture[:20]])
            assert rules(family) in (rules(old), rules(new)), what
        bed.enforce(**states[target])
        assert families(bed) == ends[target]


def rules(lines: list[str]) -> list[str]:
    """Without chains that are empty and that nothing leads to: such a one is deleted after its last jump."""
    used = {line.rpartition(" ")[2] for line in lines if line.startswith("-A")} | {
        line.split()[1] for line in lines if line.startswith("-A")
    }
    return [line for line in lines if not line.startswith(":nova-") or line[1:].partition(" ")[0] in used]


def wait_for_commands(bed: Bed) -> None:
    """The commands of a killed module go on without it."""
    while any(name.endswith("-restore") for name in processes(bed)):
        time.sleep(0.005)


def processes(bed: Bed) -> list[str]:
    with bed.on_host():
        own = os.stat("/proc/thread-self/ns/net").st_ino
    names = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}/ns/net").st_ino == own:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as handle:
                    names.append(handle.read().split("\0")[0])
        except OSError:
            continue
    return names


def test_another_program_works_on_the_same_tables(bed: Bed) -> None:
    states = [big_state(bed, 1), big_state(bed, 2)]
    bed.enforce(**states[0])
    theirs = ["-s", "192.0.2.99", "-j", "ACCEPT"]
    with bed.runner() as runner:
        for number in range(1, 4):
            runner.start(backend=bed.backend, **states[number % 2])
            count = 0
            while not runner.done() and count < 20:
                bed.iptables("IPv4", "-w", "10", "-A", "FORWARD", *theirs)
                bed.iptables("IPv4", "-w", "10", "-I", "FORWARD", "1", *theirs)
                count += 2
            answer = runner.finish()
            assert not answer.get("failed"), answer
            forward = [line for line in bed.saved("IPv4").splitlines() if line.startswith("-A FORWARD")]
            assert forward.count("-A FORWARD -s 192.0.2.99/32 -j ACCEPT") == count, "rules of somebody else were lost"
            for _ in range(count):
                bed.iptables("IPv4", "-w", "10", "-D", "FORWARD", *theirs)
            bed.enforce(**states[number % 2])
            assert bed.saved("IPv4").splitlines().count("-A FORWARD -j nova-local") == 1
