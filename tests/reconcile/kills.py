# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kill -9 of ansible-playbook, of the modules on hypervisors and of ssh between them, at random moments.

What is killed are launches, deletions and moves.

    python -m tests.reconcile.kills --count 30 --home <NOVALITE_HOME> --inventory inventories/lab
    python -m tests.reconcile.kills --count 12 --of migrate,live_migrate,resize ...

Over a lab that is prepared. After some kills, --check is to tell all that was cut off, one run is to repair it, and
then nothing differs. At the end everything is deleted, and nothing may be left: no claim, no address, nothing on hosts.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.reconcile.lab import HOSTS, ROOT, Lab
from tests.support.playbooks import COMMAND

COUNT = 2  # guests of one launch, which come to different hosts
# Of each with COUNT guests on two free cores, not waiting for ssh. A launch before them tells how busy the machine is.
SECONDS = {"launch": 9.0, "terminate": 6.0, "migrate": 20.0, "live_migrate": 20.0, "resize": 20.0}
VARIABLES: dict[str, dict[str, t.Any]] = {
    "launch": {"flavor": "m1.nano", "image": "idle", "key": "test", "wait_for": "running"},
    "resize": {"flavor": "m1.tiny"},
}
# of this lab alone: hypervisors have process namespaces of their own. The brackets keep the shell that looks out of it
MODULES = "pgrep -f '[/]usr/bin/python3( |$)'"
# of a move that was cut off the gate stays open, by design, until a run closes the move
AT_WORK = (
    f'for pid in $({MODULES}); do ls -l /proc/$pid/fd 2>/dev/null | grep -q "[.]gate/lock" || exit 1; done; exit 0'
)
LEFT = """
virsh -q list --all; virsh -q nwfilter-list | grep nova-instance; iptables-save | grep nova-inst; ls -A {instances}
ls -A /var/lib/novalite/networks 2>/dev/null; grep ' /run/novalite' /proc/self/mounts; pgrep -l 'qemu|dnsmasq'
ls /var/lib/novalite/_base | grep -e part -e converted
ls -A /run/libvirt/qemu/novalite /var/lib/novalite/incoming 2>/dev/null | grep -v -e ':$' -e '^$'
grep -h novalite-move- /root/.ssh/authorized_keys /home/*/.ssh/authorized_keys 2>/dev/null; true
"""

EVIDENCE = """
for name in $(virsh -q list --all --name); do echo "$name: $(virsh -q domstate --reason $name)"; done
tail -n 12 /var/log/libvirt/qemu/instance-*.log; ps -eo pid,ppid,etimes,args
"""


def changed_tasks(said: str) -> list[str]:
    """The changed tasks in the output of a playbook, each with its host."""
    changed, task = [], ""
    for line in said.splitlines():
        if line.startswith("TASK "):
            task = line.strip(" *")
        elif line.startswith("changed: "):
            changed.append(f"{task}: {line}")
    return changed


class Killing:
    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab, self.random = lab, random.Random(seed)
        self.wrong: list[str] = []
        self.difference_count = self.killed_in_time = self.cut_off = 0
        self.pace = 1.0

    def some(self, whats: t.Mapping[int, str]) -> None:
        """Kill as many runs, one after the other; then look."""
        lab = self.lab
        there = [{"name": f"k{number}", "count": COUNT} for number, what in whats.items() if what != "launch"]
        if there:
            began = time.monotonic()
            launch = dict(VARIABLES["launch"])
            wait_for = launch.pop("wait_for")
            lab.play("launch.yml", servers=[{**launch, **server} for server in there], wait_for=wait_for)
            self.pace = (time.monotonic() - began) / SECONDS["launch"]
        hows = []
        for number, what in whats.items():
            command = lab.command(f"{what}.yml", name=f"k{number}", count=COUNT, **VARIABLES.get(what, {}))
            hows.append(self.kill(number, what, [str(COMMAND), *command[1:]]))  # a process of its own
        self.look(list(whats), "; ".join(hows))

    def kill(self, number: int, what: str, command: list[str]) -> str:
        """Begin a run and kill it, or its modules, at some moment of the time that it takes; returns how that was."""
        lab = self.lab
        moment = self.random.uniform(0.05, 0.95) * SECONDS[what] * self.pace
        victim = self.random.choice(["ansible-playbook", "ansible-playbook", "modules", "both", "ssh"])
        with open(os.devnull, "w") as nowhere:
            playbook = subprocess.Popen(
                command,
                cwd=ROOT,
                env=lab.environment,
                stdout=nowhere,
                stderr=nowhere,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        try:
            playbook.wait(moment)
        except subprocess.TimeoutExpired:
            self.killed_in_time += 1
        if victim == "ssh":
            self.kill_ssh()
        elif victim != "ansible-playbook":
            for host in HOSTS:
                lab.on(host, f"{MODULES} | xargs -r kill -9", check=False)
        if victim in ("modules", "ssh"):
            playbook.wait(600)  # it notices, and does what it can
        else:
            self.kill_all_of(playbook)
        self.modules_end()
        return f"{number}: {what}, {victim} after {moment:.1f} s"

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

    def kill_ssh(self) -> None:
        """All of ssh that speaks to this lab, the masters of shared connections among them."""
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                name = pathlib.Path(f"/proc/{entry}/comm").read_text().strip()
                command = pathlib.Path(f"/proc/{entry}/cmdline").read_text()
                if name == "ssh" and str(self.lab.home) in command:
                    os.kill(int(entry), signal.SIGKILL)

    def modules_end(self) -> None:
        """Wait for the modules on hosts: they go on for a moment after ansible-playbook's end. Raises Failed where they
        do not end, for a look would meet them at work."""
        for host in HOSTS:
            self.lab.on(host, f"for i in $(seq 500); do ( {AT_WORK} ) && exit 0; sleep 0.2; done; ps -ef; exit 1")

    def look(self, numbers: t.Sequence[int], how: str) -> None:
        lab, instance = self.lab, tables.instance
        time.sleep(1.1)  # what was changed in this second is not judged
        names = [f"k{number}-{copy}" for number in numbers for copy in range(1, COUNT + 1)]
        of_these = sa.and_(instance.c.deleted == 0, instance.c.name.in_(names))
        under_way = sa.select(instance).where(of_these, instance.c.task_state.is_not(None))
        cut_off = [row.name for row in lab.rows(under_way)]
        differences, _said = lab.reconcile("--check")
        missing = [name for name in cut_off if not any(name in row["object"] for row in differences)]
        self.cut_off += len(cut_off)
        self.difference_count += len(differences)
        if missing:
            self.wrong.append(f"{how}: --check does not tell of {missing}")
        first, _said = lab.reconcile()
        again, said = lab.reconcile()
        if again or re.search(r"changed=[1-9]", said):
            self.wrong.append(f"{how}: repaired, and still different: {again} {changed_tasks(said)}; at first: {first}")
            self.wrong += [f"{how}: {host}: {lab.on(host, EVIDENCE)}" for host in HOSTS]
        rows = lab.rows(sa.select(instance).where(of_these))
        states = {row.name: (row.vm_state, row.task_state, row.host) for row in rows}
        self.wrong += [
            f"{how}: {name} is {state}"
            for name, state in states.items()
            if state[1] is not None or state[0] not in ("active", "error", "resized")
        ]
        for host in HOSTS:
            here = sa.select(instance).where(instance.c.deleted == 0, instance.c.host == host)
            instance_names = {f"instance-{row.id:08x}" for row in lab.rows(here)}
            for what, which in (("runs", ""), ("has", "--all")):
                if (domain_names := set(lab.on(host, f"virsh -q list --name {which}").split())) != instance_names:
                    self.wrong.append(
                        f"{how}: {host} {what} {sorted(domain_names)} instead of {sorted(instance_names)}"
                    )
        print(
            f"{how}:\n    {len(cut_off)} cut off, {len(differences)} differences, then {states or 'nothing'}",
            flush=True,
        )
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
            "claims": sa.select(tables.allocation),
            "interfaces": sa.select(tables.vif),
            "addresses": sa.select(tables.fixed_ip).where(used.is_not(None)),
            "sums": sa.select(tables.compute_host.c.name).where(tables.compute_host.c.memory_mb_used != 0),
        }.items():
            if rows := lab.rows(query):
                self.wrong.append(f"{what} are left: {rows}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reconcile.kills")
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--together", type=int, default=6, help="kills before each look")
    parser.add_argument(
        "--of", default="launch,terminate,migrate,live_migrate,resize", help=f"what is killed, of {', '.join(SECONDS)}"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--home", required=True)
    parser.add_argument("--inventory", required=True)
    options = parser.parse_args()
    lab = Lab(options.home, options.inventory)
    lab.idle_image()
    killing = Killing(lab, options.seed)
    print(f"seed {options.seed}", flush=True)
    of = options.of.split(",")
    whats = {number: of[(number - 1) % len(of)] for number in range(1, options.count + 1)}
    for first in range(1, options.count + 1, options.together):
        killing.some({number: whats[number] for number in whats if first <= number < first + options.together})
    killing.nothing_left()
    for line in killing.wrong:
        print(f"WRONG {line}")
    print(
        f"{options.count} kills, {killing.killed_in_time} of them in time; {killing.cut_off} instances cut off, "
        f"{killing.difference_count} differences told by --check, {len(killing.wrong)} not as they should be"
    )
    return 1 if killing.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
