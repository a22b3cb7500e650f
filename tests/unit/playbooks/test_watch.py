# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook that watches: what it runs on which host, from a look to the start of a dead host's guests elsewhere."""

from __future__ import annotations

import base64
import json
import pathlib
import shutil
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_migrations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from tests.support.grown import FACTS
from tests.support.rows import add_host, an_instance, insert
from tests.unit.playbooks.answering import Hosts

# they are built beside the watch
pytest.importorskip("ansible_collections.novalite.cloud.plugins.module_utils._steps.host_look")
pytest.importorskip("ansible_collections.novalite.cloud.plugins.modules.fence")

ADDRESS = "192.0.2.2"  # of hv2
LOOKS = {"epoch_token", "host_look", "peer_look"}
NAMES = ("hv1", "hv2", "hv3", "hv4")
# looks count at once; what takes longer than on a quiet machine is still of now
SETTINGS = {"novalite_watch_settings": {"missed": 1, "fresh_s": 300, "lease_s": 300}, "novalite_watch_patience": 60}


class Cloud(Hosts):
    """Four hosts, of which hv2 bears the server `web`, whose QEMU runs; hv2's fence agent is not installed."""

    def __init__(self, path: pathlib.Path, seeded: pathlib.Path) -> None:
        super().__init__(path)
        shutil.copytree(seeded, self.home, dirs_exist_ok=True)
        inventory = self.elsewhere / "hosts.ini"
        agent = "fence_of_no_package"
        inventory.write_text(
            inventory.read_text().replace(
                "hv1\nhv2\n", f"hv1\nhv2 ansible_host={ADDRESS} novalite_fence_agent={agent}\nhv3\nhv4\n"
            )
        )
        self.stand_in.with_name("addresses").write_text(json.dumps({ADDRESS: "hv2"}))
        self.dead()
        self.looks_path = path / "looks"
        engine = open_ledger(str(self.home))
        with transaction(engine) as connection:
            for host in NAMES:
                add_host(connection, host, facts=FACTS, last_seen_at=2 * 10**9)
            demo = lookups.project_by_name(connection, "demo")["id"]
            row = an_instance("web", project_id=demo, host="hv2", ha=True, ha_rebuild=True, power_state=1)
            insert(connection, tables.instance, **row)
        engine.dispose()
        self.web = str(row["uuid"])
        self.runs_on("hv2")

    def dead(self, *hosts: str) -> None:
        self.stand_in.with_name("dead").write_text("\n".join(hosts))

    def runs_on(self, *hosts: str, **boots: str) -> None:
        """Have looks find that the guest runs on these hosts."""
        look = {
            host: {
                "boot_id": boots.get(host, "boot-1"),
                "libvirt": True,
                "guests": [self.web] if host in hosts else [],
                "running": [self.web] if host in hosts else [],
                "heartbeats": {},
            }
            for host in NAMES
        }
        self.looks_path.write_text(json.dumps(look))

    def watch(self, *more: str) -> str:
        done = self.play("watch.yml", "-e", json.dumps(SETTINGS), *more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def recover(self, *more: str) -> str:
        done = self.play("watch_recover.yml", "-e", json.dumps(SETTINGS), *more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def unanswered(self) -> list[list[t.Any]]:
        """List the hosts that did not answer, each with the seconds that ssh had for it."""
        return [json.loads(line) for line in self.stand_in.with_name("unanswered").read_text().splitlines()]

    def ask(self, query: t.Any) -> list[t.Any]:
        engine = open_ledger(str(self.home))
        with reading(engine) as connection:
            rows = list(connection.execute(query))
        engine.dispose()
        return rows

    def row(self, host: str = "hv2") -> t.Any:
        watch = tables_migrations.host_watch
        return self.ask(sa.select(watch).where(watch.c.host == host))[0]

    def confirm(self, host: str) -> None:
        watch = tables_migrations.host_watch
        engine = open_ledger(str(self.home))
        with transaction(engine) as connection:
            said = {"confirmed_by": "alice", "confirmed_heard": watch.c.heard}
            connection.execute(sa.update(watch).where(watch.c.host == host).values(**said))
        engine.dispose()


@pytest.fixture
def watched(seeded: pathlib.Path, tmp_path: pathlib.Path) -> Cloud:
    return Cloud(tmp_path, seeded)


def test_a_dead_host_is_healed_without_a_step_on_it(watched: Cloud) -> None:
    watched.watch()
    looked = [(host, ["epoch_token", "host_look"]) for host in NAMES]
    assert watched.trips() == looked
    assert (watched.row().state, watched.row().boot_id) == ("up", "boot-1")
    watched.dead("hv2")
    output = watched.watch()
    assert "hv2 is suspect: " in output and "hv2 is fencing: " in output
    trips = watched.trips()
    assert [host for host, steps in trips if steps == ["peer_look"]] == ["hv3", "hv4"]
    # in the second look it is known whom peers have to look for
    assert [host for host, steps in trips if steps == ["epoch_token", "host_look", "peer_look"]] == ["hv3", "hv4"]
    assert {host for host, _steps in trips} == {"hv1", "hv3", "hv4"}
    # the second look waits for no answer of a host that was to be switched off
    assert watched.unanswered() == [["hv2", SETTINGS["novalite_watch_patience"]], ["hv2", 2]]
    row = watched.row()
    assert (row.state, row.fence["off"], row.fence["status"]) == ("fencing", False, "unknown")
    watched.confirm("hv2")
    watched.watch()
    (server,) = watched.servers()
    assert server[:3] == ("web", "active", None) and server[3] in ("hv1", "hv3", "hv4")
    built = {host: steps for host, steps in watched.trips() if "domain" in steps}
    assert list(built) == [server[3]]
    watched.runs_on(server[3])
    watched.watch()
    moves = watched.ask(sa.select(tables_migrations.migration.c.status))
    assert [move.status for move in moves] == ["done"]
    watched.trips()

    # it comes back, with what it had
    watched.dead()
    watched.runs_on("hv2", server[3], hv2="boot-2")
    watched.watch()
    removed = [(host, steps) for host, steps in watched.trips() if set(steps) - LOOKS]
    assert {host for host, _steps in removed} == {"hv2"}
    assert any("domain" in steps for _host, steps in removed)
    watched.runs_on(server[3], hv2="boot-2")
    watched.watch()
    assert watched.row().state == "up"


def test_a_run_beside_the_rounds_starts_what_they_left(watched: Cloud) -> None:
    """Hosts are looked at while servers are built anew, which may take longer than a dead-man's switch waits."""
    rounds = ("-e", "watch_recovers=false")
    trigger = watched.home / "watch.recover"
    watched.watch(*rounds)
    watched.dead("hv2")
    watched.watch(*rounds)
    assert not trigger.exists()
    watched.confirm("hv2")
    watched.trips()
    watched.watch(*rounds)
    (server,) = watched.servers()
    target = server[3]
    assert target in ("hv1", "hv3", "hv4") and trigger.exists()
    # a round in the middle of it looks at all that answer, and starts nothing
    watched.trips()
    watched.watch(*rounds)
    trips = watched.trips()
    assert {host for host, _steps in trips} == {"hv1", "hv3", "hv4"} and not {s for _h, n in trips for s in n} - LOOKS

    before = watched.row()
    watched.recover()
    trips = watched.trips()
    assert [host for host, steps in trips if "domain" in steps] == [target] and not trigger.exists()
    assert watched.servers() == [("web", "active", None, target)]
    # its looks count nowhere: nobody is silent sooner for them
    assert (watched.row().missed, watched.row().looked_at) == (before.missed, before.looked_at)
    watched.runs_on(target)
    watched.watch(*rounds)
    assert [move.status for move in watched.ask(sa.select(tables_migrations.migration.c.status))] == ["done"]
    assert not trigger.exists()
    watched.trips()

    # and what came back gives up what others got in such a run
    watched.dead()
    watched.runs_on("hv2", target, hv2="boot-2")
    watched.watch(*rounds)
    assert watched.row().state == "back" and trigger.exists()
    assert not {step for _host, steps in watched.trips() for step in steps} - LOOKS
    watched.recover()
    assert {host for host, steps in watched.trips() if "domain" in steps} == {"hv2"}


def test_who_does_not_watch_starts_nothing(watched: Cloud) -> None:
    watched.watch("-e", "novalite_watch_controller=other")
    watched.trips()
    output = watched.recover("-e", "novalite_watch_controller=ctl9")
    assert "ctl9 does not watch the hosts" in output and watched.trips() == []


def test_what_guests_are_told_is_hidden(watched: Cloud) -> None:
    """A password in what is built anew, for one: rounds are run by timers, whose output is kept."""
    engine = open_ledger(str(watched.home))
    with transaction(engine) as connection:
        secret = base64.b64encode(b"only the guest knows").decode()
        values = {"user_data": secret, "config_drive": True}
        connection.execute(sa.update(tables.instance).where(tables.instance.c.uuid == watched.web).values(**values))
    engine.dispose()
    watched.watch()
    watched.dead("hv2")
    watched.watch()
    watched.confirm("hv2")
    output = watched.watch("-vvv")
    (server,) = watched.servers()
    assert server[3] != "hv2" and "only the guest knows" not in output and secret not in output


def test_a_controller_with_a_name_of_its_own_may_fence(watched: Cloud) -> None:
    """Its lease is in that name, which each step of the round has to give."""
    name = ("-e", "novalite_watch_controller=ctl9")
    watched.watch(*name)
    watched.dead("hv2")
    watched.watch(*name)
    row = watched.row()
    assert (row.state, row.fence["off"]) == ("fencing", False)  # its agent was asked, and is not installed


def test_guests_of_a_host_that_booted_are_started_there(watched: Cloud) -> None:
    watched.watch()
    watched.runs_on(hv2="boot-2")
    watched.trips()
    watched.watch()
    assert [host for host, steps in watched.trips() if "domain_power" in steps] == ["hv2"]
    assert watched.servers() == [("web", "active", None, "hv2")]


def test_with_all_hosts_silent_nothing_is_done(watched: Cloud) -> None:
    watched.watch()
    watched.trips()
    watched.dead(*NAMES)
    output = watched.watch()
    assert "fencing" not in output
    assert watched.trips() == []
    assert {watched.row(host).state for host in NAMES} == {"suspect"}
