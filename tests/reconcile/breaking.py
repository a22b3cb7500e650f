# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Breakages of a lab, the instances that they are done to, and a round of them: broken, told, repaired."""

from __future__ import annotations

import dataclasses
import random
import re
import time
import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.reconcile.lab import HOSTS, Lab, Row

INSTANCES = "/var/lib/novalite/instances"
NETWORKS = "/var/lib/novalite/networks"
OLD = 1_700_000_000
GHOST_MAC = f"fa:16:3e:00:{random.randrange(256):02x}:{random.randrange(256):02x}"

FOREIGN_DOMAIN = """<domain type='qemu'><name>not-ours</name><uuid>11111111-2222-4333-8444-555555555555</uuid>
<memory unit='MiB'>16</memory><vcpu>1</vcpu><os><type arch='x86_64'>hvm</type></os><devices/></domain>"""
FOREIGN_FILTER = "<filter name='not-ours' chain='root'><rule action='accept' direction='inout'/></filter>"
MAKE_FOREIGN = f"""
set -e
echo "{FOREIGN_DOMAIN}" >/root/not-ours.xml; virsh -q define /root/not-ours.xml; virsh -q start --paused not-ours
echo "{FOREIGN_FILTER}" >/root/filter.xml; virsh -q nwfilter-define /root/filter.xml
iptables -N not-ours; iptables -A not-ours -s 192.0.2.7 -j DROP; iptables -A FORWARD -d 192.0.2.0/24 -j not-ours
iptables -t nat -A POSTROUTING -s 192.0.2.0/24 -j MASQUERADE; ip6tables -A FORWARD -d 2001:db8::/32 -j DROP
ip link add not-ours0 type bridge; ip link set not-ours0 up; ip addr add 192.0.2.1/24 dev not-ours0
mkdir -p /var/lib/novalite/instances/99999999-2222-4333-8444-555555555555 /root/mnt
echo keep >/var/lib/novalite/instances/99999999-2222-4333-8444-555555555555/disk; echo keep >/var/lib/novalite/notes
mount -t tmpfs not-ours /root/mnt; echo keep >/root/mnt/file
"""
LOOK_AT_FOREIGN = """
virsh dumpxml not-ours | grep -v '<nothing'; virsh domstate not-ours; virsh nwfilter-dumpxml not-ours
iptables-save | grep -v -e '^#' -e nova- ; ip6tables-save | grep -v -e '^#' -e nova-
ip -o addr show not-ours0 | sed 's/valid_lft.*//'; sha256sum /var/lib/novalite/notes /root/mnt/file
find /var/lib/novalite/instances/99999999-2222-4333-8444-555555555555 -printf '%p %m %T@ %s\\n'
grep /root/mnt /proc/self/mounts
"""
REMOVE_FOREIGN = """
virsh -q destroy not-ours; virsh -q undefine not-ours; virsh -q nwfilter-undefine not-ours
iptables -D FORWARD -d 192.0.2.0/24 -j not-ours; iptables -F not-ours; iptables -X not-ours
iptables -t nat -D POSTROUTING -s 192.0.2.0/24 -j MASQUERADE; ip6tables -D FORWARD -d 2001:db8::/32 -j DROP
ip link del not-ours0; umount /root/mnt
rm -rf /var/lib/novalite/instances/99999999-2222-4333-8444-555555555555 /var/lib/novalite/notes
true
"""


@dataclasses.dataclass
class Breakage:
    """`script` breaks something on `host` (None: `write` did, in the ledger). `row_patterns` is what the table must
    say, as (object, what is there), patterns. `healed` is a script that must succeed afterwards."""

    name: str
    host: str | None
    script: str
    row_patterns: tuple[str, str]
    healed: str = "true"


class Guest(t.NamedTuple):
    name: str
    uuid: str
    id: int
    host: str
    domain: str
    mac: str


class Breaking:
    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.wrong: list[str] = []
        self.count = 0
        instance = tables.instance
        self.guests: dict[str, list[Guest]] = {host: [] for host in HOSTS}
        macs = {row.instance_uuid: row.mac for row in lab.rows(sa.select(tables.vif))}
        names = [f"r-{number}" for number in range(1, 6)]
        for row in lab.rows(sa.select(instance).where(instance.c.deleted == 0, instance.c.name.in_(names))):
            guest = Guest(row.name, row.uuid, row.id, row.host, f"instance-{row.id:08x}", macs[row.uuid])
            self.guests[row.host].append(guest)
        self.guests = {host: sorted(guests, key=lambda guest: guest.name) for host, guests in self.guests.items()}

    def number(self) -> int:
        """Of a new instance."""
        return int(self.lab.rows(sa.select(sa.func.max(tables.instance.c.id)))[0][0]) + 1

    def row(self, guest: Guest) -> t.Any:
        return self.lab.rows(sa.select(tables.instance).where(tables.instance.c.uuid == guest.uuid))[0]

    def round(self, breakages: t.Sequence[Breakage]) -> None:
        """Break, look, repair, look again."""
        lab = self.lab
        for breakage in breakages:
            if breakage.host is not None:
                lab.on(breakage.host, f"set -e\n{breakage.script}")
        before = self.foreign()
        time.sleep(1.1)  # what was changed in this second is not judged
        differences, said = lab.reconcile("--check")
        print(said[said.index("TASK [Show the table]") :][:8000], flush=True)
        for breakage in breakages:
            if not any(self.is_about(row, breakage) for row in differences):
                self.wrong.append(f"{breakage.name}: --check does not tell it")
        self.expect("--check changes nothing of others", before, self.foreign())
        done, _said = lab.reconcile()
        for breakage in breakages:
            if not any(self.is_about(row, breakage) for row in done):
                self.wrong.append(f"{breakage.name}: the repair does not tell it")
        again, said = lab.reconcile()
        if again or re.search(r"changed=[1-9]", said):
            self.wrong.append(f"after the repair there is still a difference: {again} {said[-400:]}")
        for breakage in breakages:
            if breakage.host is not None:
                try:
                    lab.on(breakage.host, f"set -e\n{breakage.healed}")
                except Exception as error:
                    self.wrong.append(f"{breakage.name}: not repaired: {error}")
        self.expect("what others made", before, self.foreign())
        self.count += len(breakages)

    @staticmethod
    def is_about(row: Row, breakage: Breakage) -> bool:
        what, there = breakage.row_patterns
        return row["host"] == breakage.host and bool(re.search(what, row["object"]) and re.search(there, row["there"]))

    def expect(self, what: str, expected: t.Any, current: t.Any) -> None:
        if expected != current:
            self.wrong.append(f"{what}: {current!r} instead of {expected!r}")

    def foreign(self) -> dict[str, str]:
        return {host: self.lab.on(host, LOOK_AT_FOREIGN) for host in HOSTS}

    def of_a_ghost(self, like: Guest) -> list[Breakage]:
        """Everything that an instance can leave on a host where it is not: of one that is deleted."""
        number, ghost = self.number(), str(uuid.uuid4())
        self.lab.insert_like(
            tables.instance,
            self.row(like),
            id=number,
            uuid=ghost,
            name="ghost",
            deleted=number,
            vm_state="deleted",
            host=None,
            display_name=None,
        )
        vif = self.lab.rows(sa.select(tables.vif).where(tables.vif.c.instance_uuid == like.uuid))[0]
        self.lab.insert_like(tables.vif, vif, id=str(uuid.uuid4()), instance_uuid=ghost, mac=GHOST_MAC, ipv6=None)
        domain, disk = f"instance-{number:08x}", f"{INSTANCES}/{ghost}/disk"
        renamed = f"sed -e s/{like.domain}/{domain}/g -e s/{like.uuid}/{ghost}/g -e s/{like.mac}/{GHOST_MAC}/g"
        export = (
            '{"type": "fuse", "id": "e", "node-name": "d", "writable": true, '
            f'"mountpoint": "/run/novalite/{ghost}.raw"}}'
        )
        block = f'{{"driver": "raw", "node-name": "d", "file": {{"driver": "file", "filename": "{disk}"}}}}'
        serve = (
            f"mkdir -p /run/novalite/root; : >/run/novalite/{ghost}.raw\n"
            f"(setsid qemu-storage-daemon --blockdev '{block}' --export '{export}' </dev/null >/dev/null 2>&1 &)\n"
            f"until grep -q {ghost}.raw /proc/self/mounts; do sleep 0.1; done"
        )
        return [
            Breakage(
                "disks left",
                "hv1",
                f"mkdir {INSTANCES}/{ghost}; truncate -s 8M {disk}; mkfs.ext4 -q {disk}",
                (f"disks {ghost}", "there"),
                f"test ! -e {INSTANCES}/{ghost}",
            ),
            Breakage(
                "filter left",
                "hv1",
                f"virsh nwfilter-dumpxml nova-instance-{like.domain} | {renamed} "
                "-e '/<uuid>/d' >/root/f.xml; virsh -q nwfilter-define /root/f.xml; rm /root/f.xml",
                (f"filter nova-instance-{domain}", "there"),
                f"! virsh nwfilter-dumpxml nova-instance-{domain} >/dev/null 2>&1",
            ),
            Breakage(
                "domain left",
                "hv1",
                f"virsh dumpxml --inactive {like.domain} | {renamed} >/root/d.xml; "
                "virsh -q define /root/d.xml; rm /root/d.xml",
                (f"domain {domain}", "there"),
                f"! virsh domstate {domain} >/dev/null 2>&1",
            ),
            Breakage(
                "chain left",
                "hv1",
                f"iptables -N nova-inst-{number}; iptables -A nova-inst-{number} -j DROP; "
                f"iptables -A nova-local -d 10.20.0.99 -j nova-inst-{number}",
                (f"chains nova-inst-{number}", "there"),
                f"! iptables -S nova-inst-{number} 2>/dev/null",
            ),
            Breakage(
                "DHCP entry left",
                "hv1",
                f"echo {GHOST_MAC},ghost.novalocal,10.20.0.99 >>{NETWORKS}/br100/hosts",
                (f"DHCP entry {GHOST_MAC}", "there"),
                f"! grep -q {GHOST_MAC} {NETWORKS}/br100/hosts",
            ),
            Breakage(
                "disk server left",
                "hv1",
                serve,
                ("^disk server", ghost),
                f"! pgrep -f '[q]emu-storage-daemon.*{ghost}'",
            ),
            Breakage(
                "loop device left",
                "hv1",
                f"losetup --find /run/novalite/{ghost}.raw",
                ("^loop device", ghost),
                f"! losetup --list | grep {ghost}",
            ),
            Breakage(
                "mount left",
                "hv1",
                f"mount $(losetup --list --noheadings --output NAME -j /run/novalite/{ghost}.raw) /run/novalite/root",
                ("^mount /run/novalite/root", "/dev/loop"),
                "! grep ' /run/novalite' /proc/self/mounts",
            ),
        ]

    def of_the_ledger(self, like: Guest, spare: Guest) -> list[Breakage]:
        """Written at once; `host` of these is None."""
        lab, row = self.lab, self.row(like)
        nobody = str(uuid.uuid4())
        claim = lab.rows(sa.select(tables.allocation).where(tables.allocation.c.instance_uuid == like.uuid))[0]
        host = tables.compute_host
        lab.insert_like(tables.allocation, claim, instance_uuid=nobody)
        lab.write(sa.update(host).where(host.c.name == "hv2").values(memory_mb_used=host.c.memory_mb_used + 77))
        free = sa.and_(tables.fixed_ip.c.owner.is_(None), tables.fixed_ip.c.reserved.is_(None))
        address = lab.rows(sa.select(tables.fixed_ip).where(free).limit(1))[0]
        held = sa.and_(tables.fixed_ip.c.network_id == address.network_id, tables.fixed_ip.c.ip == address.ip)
        lab.write(sa.update(tables.fixed_ip).where(held).values(owner=f"vif:{nobody}"))
        instance = tables.instance  # one of an earlier time
        lab.write(sa.update(instance).where(instance.c.name == "half-made").values(deleted=instance.c.id))
        half = {"vm_state": "building", "task_state": "spawning", "updated_at": OLD, "display_name": None}
        lab.insert_like(tables.instance, row, id=self.number(), uuid=str(uuid.uuid4()), name="half-made", **half)
        lab.write(
            sa.update(tables.instance)
            .where(tables.instance.c.uuid == spare.uuid)
            .values(task_state="powering-off", updated_at=OLD)
        )
        return [
            Breakage("claim without an instance", None, "", (f"allocation of {nobody}", "no such instance")),
            Breakage("sums that are none", None, "", ("compute_host hv2", "not the sum")),
            Breakage("address without an interface", None, "", ("fixed_ip ", "interface is gone")),
            Breakage("interface of a deleted instance", None, "", ("^vif ", "is deleted")),
            Breakage("half-made instance", None, "", ("instance half-made", "abandoned")),
            Breakage("action that nobody goes on with", None, "", (f"instance {spare.name}", "abandoned")),
        ]
