# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest of a lab that runs elsewhere than the ledger says: it is left, told, and followed where an operator says so.

    python -m tests.reconcile.elsewhere --home <NOVALITE_HOME> --inventory inventories/lab

Over a lab that is prepared, without guests. The five lines of docs/reconcile.md, and the bin.
"""

from __future__ import annotations

import argparse
import sys
import time
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.reconcile.breaking import INSTANCES, OLD
from tests.reconcile.lab import HOSTS, Lab, Row

REMOVED = "/var/lib/novalite/removed"


class Wrong(Exception):
    """A reconciliation did, or said, what it should not."""


class Elsewhere:
    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        where = {"flavor": "m1.nano", "image": lab.idle_image(), "wait_for": "running"}
        lab.play("launch.yml", "--limit", "hv1", server="e1", **where)
        (server,) = lab.run("server_info", names=["e1"])["servers"]
        self.uuid, self.domain = server["uuid"], server["domain_name"]

    def say(self, host: str) -> None:
        """Have the ledger say that the guest is on `host`, and has been for long."""
        of_this = sa.update(tables.instance).where(tables.instance.c.uuid == self.uuid)
        self.lab.write(of_this.values(host=host, updated_at=OLD))

    def reconcile(self, *arguments: str) -> list[Row]:
        """The differences, which check mode names as well."""
        check, _said = self.lab.reconcile("--check", *arguments)
        done, _said = self.lab.reconcile(*arguments)
        if check != done:
            raise Wrong(f"--check names {check}, and a run that repairs {done}")
        return done

    def expect_row(self, rows: t.Sequence[Row], host: str, what: str, repair: str) -> None:
        if not any((row["host"], row["object"]) == (host, what) and row["repair"].startswith(repair) for row in rows):
            raise Wrong(f"{host}, {what}: {repair!r} is not in {rows}")

    def expect_running(self) -> None:
        domains = {host: self.lab.on(host, "virsh -q list --name").split() for host in HOSTS}
        if domains != {"hv1": [self.domain], "hv2": []}:
            raise Wrong(f"{self.domain} is to run on hv1 alone: {domains}")
        self.lab.on("hv1", f"set -e; test -s {INSTANCES}/{self.uuid}/disk; iptables -S | grep -q nova-inst-")

    def contested(self) -> None:
        self.say("hv2")
        rows = self.reconcile()
        self.expect_row(rows, "hv1", f"domain {self.domain}", "none: e1 runs on hv1, the ledger has it on hv2")
        self.expect_row(rows, "hv2", "server e1", "none: runs on hv1, the ledger has it on hv2")
        rows = self.reconcile("--limit", "hv2")
        self.expect_row(rows, "hv2", "server e1", "none: not known: hv1 was not asked")
        self.expect_running()

    def accepted(self) -> None:
        self.lab.play("reconcile.yml", accept="hv1", build_timeout=0)
        (row,) = self.lab.run("server_info", names=["e1"])["servers"]
        if (row["host"], row["vm_state"]) != ("hv1", "active"):
            raise Wrong(f"the ledger did not follow e1: {row}")
        time.sleep(1.1)  # what was changed in this second is not judged
        if rows := self.reconcile():
            raise Wrong(f"accepted, and still different: {rows}")
        self.expect_running()

    def binned(self) -> None:
        """Of what it left on hv2 the ledger knows."""
        directory = f"{INSTANCES}/{self.uuid}"
        self.lab.on("hv2", f"mkdir {directory}; echo keep >{directory}/disk")
        self.expect_row(self.reconcile(), "hv2", f"disks {self.uuid}", "moved to removed/: e1 left hv2 (moved)")
        self.lab.on(
            "hv2", f"set -e; test ! -e {directory}; cd {REMOVED}; grep keep */{self.uuid}/disk; mv * 2020-01-01"
        )
        self.expect_row(self.reconcile(), "hv2", "removed/2020-01-01", "emptied")
        self.lab.on("hv2", f"test ! -e {REMOVED}/2020-01-01")
        self.expect_running()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.reconcile.elsewhere")
    parser.add_argument("--home", required=True)
    parser.add_argument("--inventory", required=True)
    options = parser.parse_args()
    lab = Lab(options.home, options.inventory)
    guest = Elsewhere(lab)
    guest.contested()
    guest.accepted()
    guest.binned()
    lab.play("terminate.yml", server="e1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
