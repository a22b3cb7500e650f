# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Break ledger and hypervisors in many ways at once; each is to be told by --check, and repaired in one run.

    python -m tests.reconcile.breakages --home <NOVALITE_HOME> --inventory inventories/lab

Over a lab that is prepared (tools/lab up, or the molecule scenario `reconcile`). Launches five guests r-1 to r-5, which
stay. What others made on the same hosts must be byte for byte what it was before.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import migration
from tests.reconcile.breaking import INSTANCES, MAKE_FOREIGN, NETWORKS, OLD, REMOVE_FOREIGN, Breakage, Breaking
from tests.reconcile.lab import HOSTS, Lab


class Rounds(Breaking):
    # - The first round

    def first(self) -> list[Breakage]:
        a, b = self.guests["hv1"][:2]
        c, d = self.guests["hv2"][:2]
        spare = next(guest for guests in self.guests.values() for guest in guests[2:])
        runs = 'test "$(virsh domstate {})" = running'
        return [
            Breakage(
                "domain destroyed",
                "hv1",
                f"virsh -q destroy {a.domain}",
                (f"domain {a.domain} ", r"^shutoff \(destroyed\)$"),
                runs.format(a.domain),
            ),
            Breakage(
                "kernel of a guest missing",
                "hv1",
                f"rm {INSTANCES}/{a.uuid}/kernel",
                (f"kernel of {a.name}", "missing"),
                f"test -s {INSTANCES}/{a.uuid}/kernel",
            ),
            Breakage(
                "QEMU killed",
                "hv1",
                f"kill -9 $(cat /run/libvirt/qemu/{b.domain}.pid); "
                f"until virsh domstate {b.domain} | grep -q shut; do sleep 0.2; done",
                (f"domain {b.domain} ", r"^shutoff \((crashed|failed)\)$|^crashed$"),
                runs.format(b.domain),
            ),
            Breakage(
                "chain flushed",
                "hv1",
                f"iptables -F nova-inst-{a.id}",
                (rf"chain nova-inst-{a.id} \({a.name}\)", "differs"),
                f"iptables -S nova-inst-{a.id} | grep -q fallback",
            ),
            Breakage(
                "a rule of others in our chain",
                "hv1",
                f"iptables -I nova-inst-{b.id} -j ACCEPT",
                (f"chain nova-inst-{b.id} ", "differs"),
                f"! iptables -C nova-inst-{b.id} -j ACCEPT 2>/dev/null",
            ),
            Breakage(
                "dnsmasq dead",
                "hv1",
                f"kill -9 $(cat {NETWORKS}/br100/pid)",
                ("DHCP server of br100", "^dead$"),
                f"kill -0 $(cat {NETWORKS}/br100/pid)",
            ),
            Breakage(
                "forwarding switched off",
                "hv1",
                "sysctl -qw net.ipv4.ip_forward=0",
                (r"kernel settings \(net\)", "differs"),
                'test "$(cat /proc/sys/net/ipv4/ip_forward)" = 1',
            ),
            Breakage(
                "translation flushed",
                "hv1",
                "iptables -t nat -F nova-snat",
                (r"router \(nat\)", "differs"),
                "iptables -t nat -S nova-snat | grep -q br100",
            ),
            Breakage(
                "copies of disks left",
                "hv1",
                f"cd {INSTANCES}/{b.uuid}; cp disk.info disk.info.resize; cp disk disk.resize.part",
                (f"copies of the disks of {b.name}", "there"),
                f"! ls {INSTANCES}/{b.uuid} | grep resize",
            ),
            *self.of_a_ghost(a),
            Breakage(
                "domain undefined",
                "hv2",
                f"virsh -q destroy {c.domain}; virsh -q undefine {c.domain}",
                (f"domain {c.domain} ", "^missing$"),
                runs.format(c.domain),
            ),
            Breakage(
                "filter gone",
                "hv2",
                f"virsh -q nwfilter-undefine nova-instance-{c.domain}",
                (f"filter nova-instance-{c.domain}", "missing"),
                f"virsh nwfilter-dumpxml nova-instance-{c.domain} >/dev/null",
            ),
            Breakage(
                "bridge gone",
                "hv2",
                "ip link del br100",
                ("bridge br100", "missing"),
                "ip -o addr show br100 | grep -q 'inet 10.20'",
            ),
            Breakage(
                "guest's device on no bridge",
                "hv2",
                "true",
                (f"tap.* of {d.domain}", "on no bridge"),
                "bridge link show master br100 | grep -q tap",
            ),
            Breakage(
                "DHCP entry removed",
                "hv2",
                f"sed -i /^{d.mac}/d {NETWORKS}/br100/hosts",
                (f"DHCP entry {d.mac}", "missing"),
                f"grep -q ^{d.mac} {NETWORKS}/br100/hosts",
            ),
            Breakage(
                "not hooked in",
                "hv2",
                "iptables -D FORWARD -j nova-local",
                ("chain FORWARD", "differs"),
                "iptables -C FORWARD -j nova-local",
            ),
            Breakage(
                "image lost from the cache",
                "hv2",
                f'rm -f /var/lib/novalite/_base/$(sed -n \'s/.*"base": "\\([0-9a-f]*\\)".*/\\1/p\' '
                f"{INSTANCES}/{d.uuid}/disk.info | head -n 1).raw",
                ("^image [0-9a-f]{12}", "not in the cache"),
                f"qemu-img info -U --backing-chain {INSTANCES}/{d.uuid}/disk >/dev/null",
            ),
            *self.of_the_ledger(a, spare),
        ]

    # - The second round

    def second(self) -> list[Breakage]:
        lab = self.lab
        a, b = self.guests["hv1"][:2]
        c, d = self.guests["hv2"][:2]
        spare = next(guest for guests in self.guests.values() for guest in guests[2:])
        stopped = {"vm_state": "stopped", "power_state": 4}
        lab.write(sa.update(tables.instance).where(tables.instance.c.uuid == spare.uuid).values(**stopped))
        flavor = self.row(spare).flavor
        lab.write(
            sa.insert(migration).values(
                uuid=str(uuid.uuid4()),
                instance_uuid=spare.uuid,
                type="resize",
                status="reverted",
                source_host=spare.host,
                dest_host=spare.host,
                old_flavor=flavor,
                new_flavor=flavor,
                old_vm_state="stopped",
                project_id=self.row(spare).project_id,
                created_at=OLD,
                updated_at=OLD,
            )
        )
        ssh = ["ssh", "-F", str(lab.home / "ssh_config"), "-o", "ConnectTimeout=5", d.name, "poweroff"]
        subprocess.run(ssh, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        going, number = str(uuid.uuid4()), self.number()
        lab.insert_like(
            tables.instance,
            self.row(a),
            id=number,
            uuid=going,
            name="going",
            task_state="deleting",
            updated_at=OLD,
            display_name=None,
        )
        tap = "$(virsh -q domiflist {} | awk '{{ print $1 }}')"
        off = f"until virsh domstate {d.domain} | grep -q shut; do sleep 0.2; done"
        return [
            Breakage(
                "guest that shut itself down",
                d.host,
                off,
                (f"domain {d.domain} ", r"^shutoff \(shutdown\)$"),
                f"virsh domstate {d.domain} | grep -q shut",
            ),
            Breakage(
                "guest paused by hand",
                b.host,
                f"virsh -q suspend {b.domain}",
                (f"domain {b.domain} ", "^paused$"),
                f"virsh domstate {b.domain} | grep -q paused",
            ),
            Breakage(
                "stopped guest undefined",
                spare.host,
                f"virsh -q destroy {spare.domain}; virsh -q undefine {spare.domain}",
                (f"domain {spare.domain} ", "^missing$"),
                f"virsh domstate {spare.domain} | grep -q 'shut off'",
            ),
            Breakage(
                "resize reverted, but for its disk",
                spare.host,
                f"cd {INSTANCES}/{spare.uuid}; sha256sum <disk >/root/before; mv disk disk.resize; "
                "truncate -s 8M disk; cp disk.info disk.info.resize",
                (f"^disks of {spare.name}", "of the other size"),
                f"cd {INSTANCES}/{spare.uuid}; ! ls | grep resize; sha256sum <disk | cmp - /root/before",
            ),
            Breakage(
                "disk missing",
                c.host,
                f"virsh -q destroy {c.domain}; rm {INSTANCES}/{c.uuid}/disk",
                (f"disk of {c.name}", "missing"),
            ),
            Breakage(
                "guest's device unplugged",
                a.host,
                f"ip link set {tap.format(a.domain)} nomaster",
                (f"tap.* of {a.domain}", "on no bridge"),
                f"ip -o link show {tap.format(a.domain)} | grep -q 'master br100'",
            ),
            Breakage(
                "rules against spoofing flushed",
                a.host,
                f"ebtables -t nat -F libvirt-I-{tap.format(a.domain)}",
                (f"filter rules of tap.* of {a.domain}", "flushed"),
                f"ebtables -t nat -L libvirt-I-{tap.format(a.domain)} | grep -q 'j DROP'",
            ),
            Breakage(
                "DHCP server's files gone",
                "hv2",
                f"kill -9 $(cat {NETWORKS}/br100/pid); rm -r {NETWORKS}/br100",
                ("DHCP server of br100", "missing"),
                f"kill -0 $(cat {NETWORKS}/br100/pid)",
            ),
            Breakage(
                "deletion that nobody goes on with",
                "hv1",
                f"mkdir {INSTANCES}/{going}",
                ("instance going", "nobody was at it"),
                f"test ! -e {INSTANCES}/{going}",
            ),
        ]

    def afterwards(self) -> None:
        """Check what the ledger says after both rounds."""
        states = {
            row.name: (row.vm_state, row.task_state, row.deleted != 0)
            for row in self.lab.rows(sa.select(tables.instance).order_by(tables.instance.c.id))
        }
        a, b = self.guests["hv1"][:2]
        c, d = self.guests["hv2"][:2]
        expected_states = {
            a.name: ("active", None, False),
            b.name: ("paused", None, False),
            c.name: ("error", None, False),
            d.name: ("stopped", None, False),
            "half-made": ("error", None, False),
            "going": ("deleted", None, True),
        }
        self.expect("the ledger", expected_states, {name: states.get(name) for name in expected_states})
        claims = self.lab.rows(sa.select(tables.allocation.c.instance_uuid))
        kept = {guest.uuid for guests in self.guests.values() for guest in guests}
        self.expect("the claims", kept, {row.instance_uuid for row in claims})


def answers(lab: Lab, names: t.Iterable[str], seconds: float = 240.0) -> list[str]:
    """Those of the guests that do not answer over ssh in time."""
    deadline, waiting = time.monotonic() + seconds, list(names)
    while waiting and time.monotonic() < deadline:
        waiting = [name for name in waiting if not _answers(lab, name)]
        time.sleep(1)
    return waiting


def _answers(lab: Lab, name: str) -> bool:
    argv = ["ssh", "-F", str(lab.home / "ssh_config"), "-o", "ConnectTimeout=5", name, "hostname"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    return done.stdout.strip() == name


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reconcile.breakages")
    parser.add_argument("--home", required=True)
    parser.add_argument("--inventory", required=True)
    options = parser.parse_args()
    lab = Lab(options.home, options.inventory)
    lab.play("launch.yml", name="r", count=5, flavor="m1.nano", image="ami-tiny", key="test")
    for host in HOSTS:
        lab.on(host, MAKE_FOREIGN)
    breaking = Rounds(lab)
    try:
        breaking.round(breaking.first())
        restarted = [guest.name for host in HOSTS for guest in breaking.guests[host][:2]]
        breaking.wrong += [f"{name} does not answer" for name in answers(lab, restarted)]
        breaking.round(breaking.second())
        breaking.afterwards()
    finally:
        for host in HOSTS:
            lab.on(host, REMOVE_FOREIGN)
    for line in breaking.wrong:
        print(f"WRONG {line}")
    print(f"{breaking.count} ways to break it, {len(breaking.wrong)} not as they should be")
    return 1 if breaking.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
