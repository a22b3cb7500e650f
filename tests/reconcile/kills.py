# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kill -9 of ansible-playbook, and of the modules on hypervisors, at random moments of launches and deletions.

    python -m tests.reconcile.kills --count 30 --home <NOVALITE_HOME> --inventory inventories/lab

Over a lab that is prepared. After each kill, --check is to tell what was cut off, one run is to repair it, and then
nothing differs. At the end everything is deleted, and nothing may be left: no claim, no address, nothing on a host.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger import tables
from tests.reconcile.lab import HOSTS, ROOT, Lab

COUNT = 2  # guests of one launch, which come to different hosts
# seconds, a launch without waiting for ssh; a deletion. A first one of each is measured
LONGEST = {"launch": 20.0, "terminate": 12.0}
# of this lab alone: hypervisors have process namespaces of their own. The brackets keep the shell that looks out of it
MODULES = "pgrep -f '[/]usr/bin/python3( |$)'"
LEFT = """
virsh -q list --all; virsh -q nwfilter-list | grep nova-instance; iptables-save | grep nova-inst; ls -A {instances}
ls -A /var/lib/novalite/networks 2>/dev/null; grep ' /run/novalite' /proc/self/mounts; pgrep -l 'qemu|dnsmasq'
ls /var/lib/novalite/_base | grep -e part -e converted; true
"""


class Killing:
    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab, self.random = lab, random.Random(seed)
        self.wrong: list[str] = []
        self.told = self.killed_in_time = 0

    def one(self, number: int, what: str) -> None:
        lab, names = self.lab, {"name": f"k{number}", "count": COUNT}
        self.modules_end()
        launch = {"flavor": "m1.nano", "image": "ami-tiny", "key": "test", "spawn_wait_for_ssh": False}
        if what == "terminate":
            began = time.monotonic()
            lab.play("launch.yml", **names, **launch)
            LONGEST["launch"] = time.monotonic() - began
            command = lab.command("terminate.yml", **names)
        else:
            command = lab.command("launch.yml", **names, **launch)
        moment = self.random.uniform(0.3, LONGEST[what])
        victim = self.random.choice(["ansible-playbook", "ansible-playbook", "modules", "both"])
        with open(os.devnull, "w") as nowhere:
            playbook = subprocess.Popen(
                command, cwd=ROOT, env=lab.environment, stdout=nowhere, stderr=nowhere,
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        try:
            playbook.wait(moment)
        except subprocess.TimeoutExpired:
            self.killed_in_time += 1
        if victim != "ansible-playbook":
            for host in HOSTS:
                lab.on(host, f"{MODULES} | xargs -r kill -9", check=False)
        if victim == "modules":
            playbook.wait(300)  # it notices, and does what it can
        else:
            self.kill_all_of(playbook)
        self.modules_end()
        self.look(number, f"{what}, {victim} killed after {moment:.1f} s")

    def kill_all_of(self, playbook: subprocess.Popen[t.Any]) -> None:
        """ansible-playbook and its workers, each of which has a session of its own."""
        pids, known = {playbook.pid}, 0
        while len(pids) > known:
            known = len(pids)
            for entry in filter(str.isdigit, os.listdir("/proc")):
                with contextlib.suppress(OSError), open(f"/proc/{entry}/stat") as file:
                    if int(file.read().rpartition(")")[2].split()[1]) in pids:
                        pids.add(int(entry))
        for pid in sorted(pids):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        playbook.wait()

    def modules_end(self) -> None:
        """What ansible-playbook had begun on a host goes on for a moment after its end."""
        for host in HOSTS:
            self.lab.on(host, f"for i in $(seq 300); do {MODULES} >/dev/null || exit 0; sleep 0.1; done")

    def look(self, number: int, how: str) -> None:
        lab, instance = self.lab, tables.instance
        time.sleep(1.1)  # what was changed in this second is not judged
        of_this = sa.and_(instance.c.deleted == 0, instance.c.name.like(f"k{number}-%"))
        cut_off = [row.name for row in lab.rows(sa.select(instance).where(of_this, instance.c.task_state.is_not(None)))]
        told, _said = lab.reconcile("--check")
        missing = [name for name in cut_off if not any(name in row["object"] for row in told)]
        self.told += bool(told)
        if missing:
            self.wrong.append(f"{number}: {how}: --check does not tell of {missing}")
        lab.reconcile()
        again, said = lab.reconcile()
        if again or re.search(r"changed=[1-9]", said):
            self.wrong.append(f"{number}: {how}: repaired, and still different: {again} {said[-400:]}")
        rows = lab.rows(sa.select(instance).where(of_this))
        states = {row.name: (row.vm_state, row.task_state, row.host) for row in rows}
        self.wrong += [
            f"{number}: {how}: {name} is {state}" for name, state in states.items()
            if state[1] is not None or state[0] not in ("active", "error")
        ]  # fmt: skip
        for host in HOSTS:
            wanted = {
                f"instance-{row.id:08x}" for row in lab.rows(
                    sa.select(instance).where(instance.c.deleted == 0, instance.c.host == host))
            }  # fmt: skip
            runs = set(lab.on(host, "virsh -q list --name").split())
            if runs != wanted:
                self.wrong.append(f"{number}: {how}: {host} runs {sorted(runs)} instead of {sorted(wanted)}")
        print(f"{number}: {how}: {len(told)} differences, then {states or 'nothing'}", flush=True)
        if states:
            lab.play("terminate.yml", servers=[{"name": name} for name in states])

    def nothing_left(self) -> None:
        lab = self.lab
        for host in HOSTS:
            left = lab.on(host, LEFT.format(instances="/var/lib/novalite/instances"))
            if left.strip():
                self.wrong.append(f"{host}: left: {left}")
        used = tables.fixed_ip.c.owner
        for what, query in {
            "claims": sa.select(tables.allocation), "interfaces": sa.select(tables.vif),
            "addresses": sa.select(tables.fixed_ip).where(used.is_not(None)),
            "sums": sa.select(tables.compute_host.c.name).where(tables.compute_host.c.memory_mb_used != 0),
        }.items():  # fmt: skip
            if found := lab.rows(query):
                self.wrong.append(f"{what} are left: {found}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reconcile.kills")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--home", required=True)
    parser.add_argument("--inventory", required=True)
    options = parser.parse_args()
    killing = Killing(Lab(options.home, options.inventory), options.seed)
    print(f"seed {options.seed}", flush=True)
    for number in range(1, options.count + 1):
        killing.one(number, "launch" if number % 2 else "terminate")
    killing.nothing_left()
    for line in killing.wrong:
        print(f"WRONG {line}")
    print(f"{options.count} kills, {killing.killed_in_time} of them in time, {killing.told} told by --check, "
          f"{len(killing.wrong)} not as they should be")  # fmt: skip
    return 1 if killing.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
