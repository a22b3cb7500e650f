# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two runs of the firewall at once, and runs that are killed, on real iptables."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
import typing as t

import pytest

from tests.support.patience import GENEROUS
from tests.unit._firewall.test_apply import saved

pytestmark = [pytest.mark.root, pytest.mark.usefixtures("own_files")]


def _run_in(place: str, directory: str, backend: str, rules: list[dict[str, t.Any]]) -> subprocess.Popen[bytes]:
    """`apply` in a process of its own, with the locks and files of `directory`."""
    script = (
        "import json, sys\n"
        "from ansible_collections.novalite.cloud.plugins.module_utils._host import locks\n"
        "from ansible_collections.novalite.cloud.plugins.module_utils._firewall import apply, arguments\n"
        "directory, backend, rules = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])\n"
        "locks.locked.__wrapped__.__defaults__ = (60.0, directory)\n"
        "instances = [{'id': n, 'addresses': [f'10.99.1.{n}', f'fd99::{n}'], 'security_groups': [1]}\n"
        "             for n in range(1, 60)]\n"
        "request = arguments.Request(tuple(arguments.parse_instances(instances)),\n"
        "                        tuple(arguments.parse_groups([{'id': 1, 'rules': rules}])), exclusive=True)\n"
        "apply.apply(request, backend=backend, directory=directory + '/kept')\n"
    )
    words = ["ip", "netns", "exec", place, sys.executable, "-c", script, directory, backend, json.dumps(rules)]
    return subprocess.Popen(words)


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_two_at_once_end_as_one_of_them_wants_it(lan: t.Any, backend: str, tmp_path: pathlib.Path) -> None:
    rule_sets = [
        [{"protocol": "tcp", "port_min": port, "ethertype": family} for family in ("IPv4", "IPv6")] for port in (22, 80)
    ]
    runs = [_run_in(lan.hypervisor, str(tmp_path), backend, rules) for rules in rule_sets]
    assert [run.wait(GENEROUS) for run in runs] == [0, 0]
    with lan.enter(lan.hypervisor):
        ports = [
            line.split("--dport ")[1].split()[0]
            for line in saved(backend).splitlines()
            if "--dport " in line and line.startswith("-A nova-sg-1")
        ]
    assert ports in (["22", "22"], ["80", "80"])


@pytest.mark.parametrize("lan", [0], indirect=True)
def test_a_kill_leaves_the_old_rules_or_the_new(lan: t.Any, backend: str, tmp_path: pathlib.Path) -> None:
    both = [
        [{"protocol": "tcp", "port_min": port, "ethertype": family} for family in ("IPv4", "IPv6")] for port in (22, 80)
    ]

    def family_rules() -> list[str]:
        with lan.enter(lan.hypervisor):
            return [part for part in saved(backend).split("*filter") if part]

    states: list[list[str]] = []
    for rules in both:
        assert _run_in(lan.hypervisor, str(tmp_path), backend, rules).wait(GENEROUS) == 0
        states.append(family_rules())
    began = time.monotonic()
    assert _run_in(lan.hypervisor, str(tmp_path), backend, both[0]).wait(GENEROUS) == 0
    duration = time.monotonic() - began
    for turn in range(4):
        process = _run_in(lan.hypervisor, str(tmp_path), backend, both[(turn + 1) % 2])
        time.sleep(duration * (0.55 + turn * 0.13))
        process.kill()  # a command that it started may still finish
        process.wait(GENEROUS)
        time.sleep(0.1)
        for rule, *known in zip(family_rules(), *states):
            assert rule in known
    for turn in (0, 1):
        assert _run_in(lan.hypervisor, str(tmp_path), backend, both[turn]).wait(GENEROUS) == 0
        assert family_rules() == states[turn]
