# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A ledger that is wrong about its hosts, or has not asked all: nothing that runs goes, and it is said what is wrong.

A reconciliation here is what the playbook does on the ledger: heal it, put together what hosts have, compare each.
"""

from __future__ import annotations

import random
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._drift import proofs
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import plans
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.ledger_identity import ledger_id
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import departure
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import departures
from ansible_collections.novalite.cloud.plugins.module_utils._network.ownership import Mark
from tests.unit._ledger.servers.drift.test_host_drift import Result, running

HOSTS = ("hv1", "hv2", "hv3")
Looks = dict[str, Result]
LISTS = ("domains", "disks", "volumes", "stale_devices", "filters", "chains", "dhcp_networks", "bridges")


@pytest.fixture(autouse=True)
def no_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "guest_of", lambda instance, facts, **_where: instance)
    monkeypatch.setattr(plans, "render", lambda guest: f"<domain {guest['uuid']}>")


def launched(cloud: t.Any, name: str, host: str) -> Result:
    (instance,) = cloud.server({"name": name, "flavor": "m1.nano", "image": "ami-tiny"})["to_build"]
    cloud.place(instance["uuid"], host)
    cloud.state({"uuids": [instance["uuid"]], "state": "active", "host": host})
    # long before the look
    cloud.write(sa.update(tables.instance).values(updated_at=1000))
    return t.cast(Result, instance)


def traces(instance: Result, sight: proofs.Sight) -> Result:
    """What a host has of the instance, of which it has what `sight` says."""
    look = running(instance, state="running" if sight.runs else "shutoff")
    entry = {"mac": instance["nics"][0]["mac"], "ip": "10.20.0.5", "hostname": instance["name"]}
    server = {"name": "b", "bridge": "br-private", "listen": "10.20.0.2", "cidr": "10.20.0.0/28", "hosts": [entry]}
    if not sight.defined:
        look |= {"domains": [], "filters": [], "chains": []}
    if not sight.disk:
        look |= {"disks": [], "files": {}}
    return {**look, "dhcp_networks": [server] if sight.defined else []}


def look_of(cloud: t.Any, *seen: Result) -> Result:
    """The look of a host that has these traces together."""
    with transaction(cloud.engine) as connection:
        mark = Mark(ledger_id(connection)).text
    look: Result = {name: [item for each in seen for item in each[name]] for name in LISTS}
    look["files"] = {uuid: names for each in seen for uuid, names in each["files"].items()}
    look |= {"bridges": ["br-private"], "bridge_owners": {"br-private": [mark]}, "missing_bases": {}}
    if look["dhcp_networks"]:
        hosts = [entry for server in look["dhcp_networks"] for entry in server["hosts"]]
        look["dhcp_networks"] = [{**look["dhcp_networks"][0], "hosts": hosts}]
    return {**look, "looked_at": time.time(), "removed": []}


ON, OFF = proofs.Sight(runs=True, defined=True, disk=True), proofs.Sight(defined=True, disk=True)


def reconcile(cloud: t.Any, looks: Looks, check_mode: bool = False, accept: t.Sequence[str] = ()) -> Result:
    """`rows` and `plans` of all hosts that were looked at, and the `corrections` and `refusals`."""
    before = {"build_timeout": 600}
    healed = cloud.operate("ledger_heal", check_mode=check_mode, **before)
    began = time.monotonic() + 100  # the looks come after it
    seen = {
        host: {"sights": {u: vars(sight) for u, sight in proofs.sights_of(t.cast(t.Any, look)).items()}, "volumes": []}
        for host, look in looks.items()
    }
    rehearsal = before if check_mode else None
    where = cloud.operate("whereabouts", check_mode=check_mode, seen=seen, accept=list(accept), rehearsal=rehearsal)
    if rehearsal is not None:
        rehearsal = {**before, "accepted": where["accepted"]}
    compared = {
        host: cloud.operate(
            "host_drift",
            check_mode=check_mode,
            host=host,
            found=look,
            began=began,
            elsewhere=where["hosts"][host],
            rehearsal=rehearsal,
            state_dir="/var/lib/novalite",
        )
        for host, look in looks.items()
    }
    return {
        "rows": [row for host in looks for row in compared[host]["rows"]],
        "compared": compared,
        "corrections": healed["corrections"] + where["corrections"],
        "refusals": where["refusals"],
    }


def removals(result: Result) -> list[str]:
    return [row["object"] for row in result["rows"] if "proof" in row]


def whereabouts_of(cloud: t.Any) -> dict[str, t.Any]:
    c = tables.instance.c
    return {row.name: (row.host, row.vm_state) for row in cloud.rows(sa.select(c.name, c.host, c.vm_state))}


def test_two_hosts_that_were_swapped_keep_all(cloud: t.Any) -> None:
    a1, a2 = launched(cloud, "a1", "hv1"), launched(cloud, "a2", "hv2")
    looks = {"hv1": look_of(cloud, traces(a2, ON)), "hv2": look_of(cloud, traces(a1, ON)), "hv3": look_of(cloud)}
    result = reconcile(cloud, looks)
    assert removals(result) == ["bridge br-private"]  # of hv3, which has nobody
    said = {(row["host"], row["object"]): row["repair"] for row in result["rows"] if row["host"] != "hv3"}
    assert said == {
        ("hv1", f"domain {a2['domain_name']}"): "none: a2 runs on hv1, the ledger has it on hv2",
        ("hv2", f"domain {a1['domain_name']}"): "none: a1 runs on hv2, the ledger has it on hv1",
        ("hv1", "server a1"): "none: runs on hv2, the ledger has it on hv1",
        ("hv2", "server a2"): "none: runs on hv1, the ledger has it on hv2",
    }
    assert whereabouts_of(cloud) == {"a1": ("hv1", "active"), "a2": ("hv2", "active")}
    for host in ("hv1", "hv2"):
        compared = result["compared"][host]
        assert not any(compared[part] for part in ("restart", "define", "left", "changed", "keep"))


def test_a_machine_under_two_names_keeps_its_guests(cloud: t.Any) -> None:
    keep = launched(cloud, "keep-1", "hv1")
    looks = {"hv1": look_of(cloud, traces(keep, ON)), "hv3": look_of(cloud, traces(keep, ON))}
    result = reconcile(cloud, looks)
    assert removals(result) == [] and not result["compared"]["hv3"]["left"]
    assert [row["repair"] for row in result["rows"]] == ["none: keep-1 runs on hv3, the ledger has it on hv1"]


def test_a_ledger_from_before_a_move_follows_the_guest_when_it_is_told_to(cloud: t.Any) -> None:
    c1 = launched(cloud, "c1", "hv2")
    looks = {"hv1": look_of(cloud, traces(c1, ON)), "hv2": look_of(cloud), "hv3": look_of(cloud)}
    result = reconcile(cloud, looks)
    assert set(removals(result)) == {"bridge br-private"} and whereabouts_of(cloud) == {"c1": ("hv2", "active")}
    check = reconcile(cloud, looks, check_mode=True, accept=["hv1"])
    assert whereabouts_of(cloud) == {"c1": ("hv2", "active")}
    result = reconcile(cloud, looks, accept=["hv1"])
    assert (result["rows"], result["corrections"]) == (check["rows"], check["corrections"])
    (correction,) = result["corrections"]
    assert correction["after"]["host"] == "hv1" and correction["reason"] == "runs on hv1: accepted"
    assert whereabouts_of(cloud) == {"c1": ("hv1", "active")}
    claims = sa.select(tables.compute_host.c.name, tables.compute_host.c.vcpus_used).order_by(sa.literal_column("name"))
    assert [tuple(row) for row in cloud.rows(claims)] == [("hv1", 1), ("hv2", 0), ("hv3", 0)]
    cloud.write(sa.update(tables.instance).values(updated_at=1000))
    assert not [row for row in reconcile(cloud, looks)["rows"] if row["host"] == "hv1"]
    # what it left behind is known as such from now on
    assert {(row.host, row.reason) for row in cloud.rows(sa.select(departure))} == {("hv2", "moved")}
    looks["hv2"] = look_of(cloud, traces(c1, OFF))
    assert f"disks {c1['uuid']}" in removals(reconcile(cloud, looks))


def test_what_cannot_be_accepted_is_said(cloud: t.Any) -> None:
    both, gone = launched(cloud, "both", "hv2"), launched(cloud, "gone", "hv3")
    looks = {"hv1": look_of(cloud, traces(both, ON), traces(gone, ON)), "hv2": look_of(cloud, traces(both, ON))}
    result = reconcile(cloud, looks, accept=["hv1"])
    assert sorted(result["refusals"]) == [
        "both is not accepted on hv1: it runs on hv2",
        "gone is not accepted on hv1: hv3, where the ledger has it, was not asked",
    ]
    assert whereabouts_of(cloud) == {"both": ("hv2", "active"), "gone": ("hv3", "active")}
    with pytest.raises(NovaliteError, match="accept=hv3: this run has not looked at hv3"):
        reconcile(cloud, looks, accept=["hv3"])


def test_what_is_not_here_may_be_on_a_host_that_was_not_asked(cloud: t.Any) -> None:
    launched(cloud, "web", "hv1")
    looks = {"hv1": look_of(cloud), "hv2": look_of(cloud)}
    result = reconcile(cloud, looks)
    assert [row["repair"] for row in result["rows"] if row["object"] == "server web"] == [
        "none: not known: hv3 was not asked"
    ]
    assert whereabouts_of(cloud) == {"web": ("hv1", "active")}
    result = reconcile(cloud, {**looks, "hv3": look_of(cloud)})
    assert whereabouts_of(cloud) == {"web": ("hv1", "error")}  # nobody has it


def test_a_leftover_goes_with_all_that_it_had_and_a_contested_guest_keeps_it(cloud: t.Any) -> None:
    web = launched(cloud, "web", "hv2")
    looks = {"hv1": look_of(cloud, traces(web, ON)), "hv2": look_of(cloud, traces(web, ON)), "hv3": look_of(cloud)}
    of_hv1 = reconcile(cloud, looks)["compared"]["hv1"]
    assert not of_hv1["left"] and not of_hv1["changed"]
    with transaction(cloud.engine) as connection:
        departures.leave(connection, [web["uuid"]], "hv1", departures.EVACUATED, 5)
    assert not reconcile(cloud, {"hv1": looks["hv1"]})["compared"]["hv1"]["left"]  # hv2 was not asked
    plan = reconcile(cloud, looks)["compared"]["hv1"]["plan"]
    assert plan["disks"] == [{"uuid": web["uuid"], "to_bin": True}]
    for part in ("domains", "firewall_instances", "filters", "dhcp_networks", "last_bridges", "last_metadata_networks"):
        assert plan[part], part


def test_what_was_deleted_goes_without_the_bin(cloud: t.Any) -> None:
    web = launched(cloud, "web", "hv2")
    cloud.delete(web["uuid"])
    result = reconcile(cloud, {"hv1": look_of(cloud, traces(web, ON))})
    assert result["compared"]["hv1"]["plan"]["disks"] == [{"uuid": web["uuid"], "to_bin": False}]
    assert {row["proof"] for row in result["rows"]} == {"deleted_by_user", "used_by_no_guest_here"}


@pytest.mark.parametrize("days", [10, 20])
def test_the_bin_is_emptied_by_the_clock_that_is_behind(cloud: t.Any, days: int) -> None:
    long_ago = time.strftime("%Y-%m-%d", time.localtime(time.time() - days * 86400))
    look = look_of(cloud) | {"bridges": [], "removed": [{"day": long_ago, "disks": 3, "bytes": 12 << 30}]}
    result = reconcile(cloud, {"hv1": {**look, "looked_at": time.time() + 10**8}})
    assert result["compared"]["hv1"]["empty"] == ([long_ago] if days > 14 else [])
    words = [(row["object"], row["there"], row["repair"], row["proof"]) for row in result["rows"]]
    kept = (f"removed/{long_ago}", "3 disks, 12 GiB", "emptied: kept for its days", "kept_for_its_days")
    assert words == ([kept] if days > 14 else [])


class World:
    """A ledger and hosts that do not fit together, at random."""

    def __init__(self, cloud: t.Any, seed: int) -> None:
        self.cloud, chance = cloud, random.Random(seed)
        self.truth: dict[str, dict[str, proofs.Sight]] = {}
        self.deleted: set[str] = set()
        self.never_told: set[str] = set()
        seen: dict[str, list[Result]] = {host: [] for host in HOSTS}
        for number in range(9):
            server = launched(cloud, f"s{number}", chance.choice(HOSTS))
            uuid = server["uuid"]
            self.truth[uuid] = {host: chance.choice([ON, OFF, *SIGHTS]) for host in HOSTS}
            self.distort(uuid, chance)
            for host, sight in self.truth[uuid].items():
                if sight != proofs.Sight():
                    seen[host].append(traces(server, sight))
        asked = [host for host in HOSTS if chance.random() < 0.8]
        self.looks = {host: look_of(cloud, *seen[host]) for host in asked}
        self.accept = [host for host in asked if chance.random() < 0.3]

    def distort(self, uuid: str, chance: random.Random) -> None:
        """Have the ledger say something else of the server, and know of hosts that it left."""
        word: Result = chance.choice(WORDS)
        self.deleted |= {uuid} if "deleted" in word else set()
        if word.get("launched_at", 1) is None:
            self.never_told.add(uuid)
        table = tables.instance
        statements: list[t.Any] = [sa.update(table).where(table.c.uuid == uuid).values(**word)] if word else []
        if word.get("host", "") is None:
            statements.append(sa.delete(tables.allocation).where(tables.allocation.c.instance_uuid == uuid))
        self.cloud.write(*statements)
        for host in HOSTS:
            if chance.random() < 0.5:
                with transaction(self.cloud.engine) as connection:
                    reason = chance.choice([departures.MOVED, departures.RETRIED, departures.SHELVED])
                    departures.leave(connection, [uuid], host, reason, 5)

    def repair(self, result: Result) -> dict[str, dict[str, proofs.Sight]]:
        """What hosts have after that."""
        after = {uuid: dict(sights) for uuid, sights in self.truth.items()}
        for host, compared in result["compared"].items():
            for domain in compared["plan"]["domains"]:
                sight = after[domain["uuid"]][host]
                after[domain["uuid"]][host] = proofs.Sight(disk=sight.disk)
            for disk in compared["plan"]["disks"]:
                sight = after[disk["uuid"]][host]
                after[disk["uuid"]][host] = proofs.Sight(runs=sight.runs, defined=sight.defined)
        return after


SIGHTS = [proofs.Sight(disk=True), proofs.Sight(), proofs.Sight(), proofs.Sight()]
BUILDING = {"vm_state": "building", "task_state": "spawning", "launched_at": None}
WORDS: list[Result] = [
    {},
    {},
    {},
    {"vm_state": "stopped", "power_state": 4},
    {"vm_state": "error", "host": None, "launched_at": None},
    {"vm_state": "error", "host": None},
    BUILDING,  # by a run that died long ago
    {"task_state": "rebooting"},
    {"deleted": 77},
]


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(more, marks=pytest.mark.thorough) for more in range(4, 12))]
)
def test_check_mode_names_the_same_and_nothing_that_runs_is_lost(cloud: t.Any, seed: int) -> None:
    if cloud.url.startswith("postgresql"):
        pytest.skip("the decisions are the same, and the rest of this file is run there")
    world = World(cloud, seed)
    before = cloud.dump()
    check = reconcile(cloud, world.looks, check_mode=True, accept=world.accept)
    assert cloud.dump() == before
    result = reconcile(cloud, world.looks, accept=world.accept)
    for part in ("rows", "corrections", "refusals"):
        assert [_timeless(row) for row in result[part]] == [_timeless(row) for row in check[part]]
    for row in result["rows"]:
        assert ("proof" in row) == row["repair"].startswith(("removed:", "moved to removed/:", "emptied:")), row
    after = world.repair(result)
    for uuid, sights in world.truth.items():
        if uuid in world.deleted:
            continue
        for quality in ("runs", "disk"):
            had = [host for host in HOSTS if getattr(sights[host], quality)]
            kept = [host for host in HOSTS if getattr(after[uuid][host], quality)]
            assert kept or not had or uuid in world.never_told, (uuid, sights, after[uuid])
    for host, compared in result["compared"].items():
        started = {domain["uuid"] for domain in [*compared["restart"], *compared["define"]]}
        for uuid in started:
            others = [name for name in world.looks if name != host and world.truth[uuid][name].runs]
            assert not others, f"{uuid} is started on {host} beside {others}"


def _timeless(row: t.Any) -> t.Any:
    """The row without how long something was silent for."""
    return {**row, "reason": ""} if isinstance(row, dict) else row
