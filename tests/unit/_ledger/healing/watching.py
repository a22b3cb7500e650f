# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A watched cloud: three hosts that answer as a test says, and rounds of the real watch over its ledger."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import host_watch
from tests.support.cloud import Cloud, Result
from tests.support.grown import FACTS
from tests.support.rows import DEMO

HOSTS = ("hv1", "hv2", "hv3", "hv4")
QUICK = {"missed": 1, "fresh_s": 120.0}


class Watched:
    """A cloud whose hosts `dead` do not answer. `fences` is what fence agents say: (off, status)."""

    def __init__(self, cloud: Cloud, agent: str = "fence_ipmilan") -> None:
        self.cloud, self.agent = cloud, agent
        self.dead: set[str] = set()
        self.running: dict[str, set[str]] = {host: set() for host in HOSTS}
        self.boots = dict.fromkeys(HOSTS, "boot-1")
        self.reached: set[str] = set()  # dead to the controller, and not to their peers
        self.fenced = (True, "off")
        self.looked = 0
        self.switch_s = 0  # seconds that a host's dead-man's switch leaves it, as it tells
        self.network = cloud.network()
        for host in HOSTS:
            cloud.host(host, last_seen_at=2 * 10**9, facts=FACTS)

    def guest(self, name: str, host: str = "hv1", **columns: t.Any) -> str:
        """A guest that runs on `host`, and is to be built anew elsewhere when that dies."""
        wishes = {"ha": True, "ha_rebuild": True, "power_state": 1, **columns}
        address = f"10.20.0.{100 + len(self.cloud.info(all_projects=True))}"
        guest = self.cloud.instance(DEMO, name, host, nics=[(self.network, address)], **wishes)
        self.running[host].add(guest)
        return guest

    def step(self, state: str, number: str, controller: str = "ctl", **args: t.Any) -> Result:
        args = {"agents": dict.fromkeys(HOSTS, self.agent), "hosts": list(HOSTS), **args}
        args["settings"] = {**QUICK, **args.get("settings", {})}
        return self.cloud.run("watch", state=state, round=number, controller=controller, **args)

    def looks(self) -> Result:
        return {
            host: {
                "boot_id": self.boots[host],
                "uptime": 1000.0 + self.looked,
                "switch_s": self.switch_s,
                "guests": sorted(self.running[host]),
                "running": sorted(self.running[host]),
            }
            for host in HOSTS
            if host not in self.dead
        }

    def look(self, controller: str = "ctl", **more: t.Any) -> Result:
        """A round up to what is to be done outside of the ledger, which it returns; {} where another one watches."""
        number = str(uuid.uuid4())
        begun = self.step("begin", number, controller, **more)
        if not begun["watching"]:
            return {}
        self.looked += 1
        seen = {"at": begun["at"], "looks": self.looks(), **more}
        asked = self.step("peers", number, controller, **seen)["asked"]
        words = {
            peer: [{"host": host["name"], "reached": host["name"] in self.reached} for host in hosts]
            for peer, hosts in asked.items()
        }
        decided = self.step("decide", number, controller, words=words, **seen)
        self.step("end", number, controller)
        return decided

    def fence(self, off: Result, controller: str = "ctl") -> bool:
        """Switch a host off as the playbook does, if that is permitted still."""
        if not self.step("permit", "fence", controller, order=off)["permitted"]:
            return False
        said, status = self.fenced
        answer = {"host": off["host"], "epoch": off["epoch"], "off": said, "status": status, "words": "an answer"}
        self.step("fenced", "fence", controller, order=answer)
        return True

    def heal(self, controller: str = "ctl") -> Result:
        """Rounds from the first look at what is dead to the start of its guests; returns the last one's orders."""
        for _round in range(6):
            decided = self.look(controller)
            for off in decided.get("off", ()):
                self.fence(off, controller)
            if decided.get("starting"):
                break
        return decided

    def row(self, host: str = "hv1") -> t.Any:
        (row,) = self.cloud.rows(sa.select(host_watch).where(host_watch.c.host == host))
        return row

    def server(self, guest: str) -> t.Any:
        (row,) = self.cloud.rows(sa.select(tables.instance).where(tables.instance.c.uuid == guest))
        return row

    def wish(self, host: str, **columns: t.Any) -> None:
        self.cloud.write(sa.update(host_watch).where(host_watch.c.host == host).values(**columns))
