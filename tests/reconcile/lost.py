# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lose the ledger of a lab with two projects, networks, groups and volumes; make it again from the hosts, and go on.

    python -m tests.reconcile.lost --home <NOVALITE_HOME> --inventory inventories/lab

Over a lab that is prepared (tools/lab up, or the molecule scenario `lost`). All that it launches is terminated.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_volumes import volume
from tests.reconcile.lab import Lab, Row

SHOP = "shop"
THEIRS = """<domain type='qemu'><name>theirs</name><memory unit='MiB'>64</memory><vcpu>1</vcpu>
<os><type arch='x86_64'>hvm</type></os></domain>"""  # somebody's own, and off
# of a server that no reconcile came by since its launch: its host was told of it before it ran
OF_OPERATORS = ("source", "properties")
TIMES = ("updated_at", "launched_at")


class Wrong(Exception):
    """The ledger that was made again is not the one that was lost."""


def servers_of(lab: Lab) -> list[Row]:
    return t.cast("list[Row]", lab.run("server_info", all_projects=True)["servers"])


def volumes_of(lab: Lab) -> list[t.Any]:
    return [tuple(row) for row in lab.rows(sa.select(volume).order_by(volume.c.name))]


def prepare(lab: Lab) -> None:
    """Two projects with guests on a shared network and one of their own, groups that name each other, two volumes; and
    a domain that was adopted."""
    lab.run("project", projects=[{"name": SHOP, "quotas": {"cores": 7}}])
    lab.run(
        "network",
        project=SHOP,
        networks=[{"name": "inner", "cidr": "10.77.0.0/24", "isolated": True, "reserved": ["10.77.0.2-10.77.0.9"]}],
    )
    key = (lab.home / "lab/test_key.pub").read_text().strip()
    lab.run("keypair", project=SHOP, keypairs=[{"name": "till", "public_key": key}])
    rules = [{"protocol": "tcp", "port_min": 80, "port_max": 80}, {"protocol": "icmp", "remote_group": SHOP}]
    lab.run("security_group", project=SHOP, security_groups=[{"name": SHOP, "rules": rules}])
    common = {"flavor": "m1.nano", "image": lab.idle_image(), "wait_for": "running"}
    lab.play("launch.yml", server="lost", count=2, key="test", metadata={"kept": "yes"}, **common)
    lab.play(
        "launch.yml",
        server="till",
        key="till",
        project=SHOP,
        networks=["private", "inner"],
        security_groups=[SHOP],
        **common,
    )
    lab.play("volumes.yml", project=SHOP, volumes=[{"name": "data", "size": 1}, {"name": "more", "size": 1}])
    for name in ("data", "more"):
        lab.play("volume_attach.yml", project=SHOP, volume=name, server="till")
    lab.play("volume_detach.yml", project=SHOP, volume="more", server="till")
    lab.play("stop.yml", server="lost-2")
    lab.on("hv1", f'echo "{THEIRS}" >/tmp/theirs.xml; virsh -q define /tmp/theirs.xml; rm /tmp/theirs.xml')
    lab.play("adopt.yml", host="hv1", domain="theirs", network="none")
    time.sleep(1)  # reconcile leaves to their runs what changed in the second of its look
    lab.reconcile()
    lab.play("launch.yml", server="late", key="test", **common)


def lose(lab: Lab) -> None:
    lab.engine.dispose()
    for path in lab.home.glob("ledger.sqlite*"):
        path.unlink()


def same(before: list[Row], after: list[Row]) -> None:
    def stable_columns(row: Row) -> Row:
        columns = {name: value for name, value in row.items() if row["name"] != "late" or name not in TIMES}
        # no host says where an image's file is on the controller, nor that hosts may mount it
        return {**columns, "image": {name: row["image"][name] for name in row["image"] if name not in OF_OPERATORS}}

    if list(map(stable_columns, before)) != list(map(stable_columns, after)):
        for row, other in zip(before, after):
            for name in row:
                if stable_columns(row).get(name) != stable_columns(other).get(name):
                    print(f"{row['name']}: {name}: {row[name]!r} became {other.get(name)!r}", file=sys.stderr)
        raise Wrong(f"the ledger had {[row['name'] for row in before]} and has {[row['name'] for row in after]}")


def unchanged(said: str, playbook: str) -> None:
    changes = re.findall(r"^(\S+) +: ok=\d+ +changed=([1-9]\d*)", said, re.MULTILINE)
    if changes:
        raise Wrong(f"{playbook} changed something: {changes}\n{said[-4000:]}")


def prove(lab: Lab) -> None:
    """Lose the ledger, make it again, and go on with it."""
    before = servers_of(lab)
    volumes = volumes_of(lab)
    lose(lab)
    planned = lab.play("ledger_rebuild.yml", "--check")
    if (lab.home / "ledger.sqlite").exists() or "till of shop" not in planned:
        raise Wrong(f"--check made a ledger, or does not tell of one:\n{planned[-3000:]}")
    began = time.monotonic()
    said = lab.play("ledger_rebuild.yml")
    print(f"made again in {time.monotonic() - began:.1f} s")
    lab.engine = open_ledger(str(lab.home))
    same(before, servers_of(lab))
    if volumes_of(lab) != volumes:
        raise Wrong(f"volumes: {volumes} became {volumes_of(lab)}")
    unchanged(lab.play("ledger_rebuild.yml"), "ledger_rebuild.yml")
    differences, _said = lab.reconcile("--check")
    if differences or "user" not in said:
        raise Wrong(f"reconcile.yml --check: {differences}\n{said[-2000:]}")
    # where images' files are is for a person to say again
    common = {"flavor": "m1.nano", "image": lab.idle_image(), "key": "test", "wait_for": "running"}
    unchanged(lab.play("launch.yml", server="lost", count=2, metadata={"kept": "yes"}, **common), "launch.yml")
    lab.play("launch.yml", server="next", **common)
    [new] = lab.run("server_info", names=["next"])["servers"]
    if new["id"] <= max(row["id"] for row in before):
        raise Wrong(f"the id {new['id']} was given again")
    if {nic["ip"] for nic in new["nics"]} & {nic["ip"] for row in before for nic in row["nics"]}:
        raise Wrong(f"an address was given again: {new['nics']}")


def clean(lab: Lab) -> None:
    lab.play("terminate.yml", servers=[{"name": "lost", "count": 2}, {"name": "late"}, {"name": "next"}])
    lab.play("terminate.yml", project=SHOP, server="till")
    lab.play("release.yml", server="theirs")
    left = lab.on("hv1", "virsh -q list --all --name; ls -A /var/lib/novalite/adopted").split()
    if "theirs" not in left or any(name.endswith(".json") for name in left):
        raise Wrong(f"release.yml left {left}: the domain that was adopted, and no record of it, are to be there")
    lab.on("hv1", "virsh -q undefine theirs")
    lab.play("volumes.yml", project=SHOP, volumes=[{"name": "data"}, {"name": "more"}], volume_state="absent")
    differences, _said = lab.reconcile("--check")
    if differences:
        raise Wrong(f"something is left: {differences}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--home", required=True)
    parser.add_argument("--inventory", required=True)
    options = parser.parse_args()
    lab = Lab(options.home, options.inventory)
    began = time.monotonic()
    prepare(lab)
    prove(lab)
    clean(lab)
    print(f"lost, made again and gone on with in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
