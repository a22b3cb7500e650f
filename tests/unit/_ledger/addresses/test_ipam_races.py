# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Eight controllers take and give back addresses at random, and are killed at random: no address twice, none lost.

NOVALITE_RACE_SECONDS=60 makes it the full one; -s shows what happened.
"""

from __future__ import annotations

import collections
import multiprocessing
import os
import random
import signal
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.vifs import insert_vifs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_heal import ledger_heal
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_state import server_state
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.fixed_ip import fixed_ip
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.records import floating_ip
from tests.support.beside import CONTEXT
from tests.support.patience import GENEROUS
from tests.support.rows import an_instance

pytestmark = pytest.mark.both_databases

if t.TYPE_CHECKING:
    from tests.unit._ledger.conftest import Run

FORK = multiprocessing.get_context("fork")

SECONDS = float(os.environ.get("NOVALITE_RACE_SECONDS", "5"))
WORKERS = 8
MOST = 12  # instances of one worker; eight of them want more than the small network has
BATCH = 5
HOSTS = ["hv1", "hv2", "hv3"]
MODES = {"cidr_v6": "fd00:1::/64", "ipv6_mode": "stable-privacy"}
NETWORKS = [{"name": "large", "cidr": "10.1.0.0/22", **MODES}, {"name": "small", "cidr": "10.2.0.0/26"}]
POOL = {"name": "public", "cidr": "203.0.113.0/27", "interface": "eth0"}


class Worker:
    """A controller. What it does is in the ledger, so that one that begins again goes on with it."""

    def __init__(self, url: str, number: int, seed: int) -> None:
        self.engine = open_ledger(url=url)
        self.number, self.rng = number, random.Random(seed)
        self.project = f"{number % 2:032x}"
        with transaction(self.engine) as connection:
            self.networks = list(connection.execute(sa.select(tables.network.c.id)).scalars())

    def step(self) -> None:
        mine = self.mine()
        if len(mine) < MOST and self.rng.random() < 0.55:
            self.launch(self.rng.randint(1, BATCH))
        elif mine:
            active = [instance for instance in mine if instance["vm_state"] == "active"]
            if active and self.rng.random() < 0.2:
                self.lead_to(self.rng.choice(active))
            else:
                self.terminate(self.rng.sample(mine, self.rng.randint(1, min(BATCH, len(mine)))))

    def mine(self) -> list[t.Any]:
        with transaction(self.engine) as connection:
            instances = instances_by(connection, project_id=self.project)
        return [instance for instance in instances if instance["name"].startswith(f"w{self.number}-")]

    def launch(self, count: int) -> None:
        """The steps of a playbook, each in a transaction of its own: record, addresses, result."""
        uuids = [str(uuid.UUID(int=self.rng.getrandbits(128), version=4)) for _number in range(count)]
        building = {"vm_state": "building", "task_state": "networking", "updated_at": int(time.time())}
        rows = [
            an_instance(
                f"w{self.number}-{server}",
                uuid=server,
                project_id=self.project,
                host=self.rng.choice(HOSTS),
                **building,
            )
            for server in uuids
        ]
        nics = [
            {"id": str(uuid.uuid4()), "instance_uuid": instance_uuid, "network_id": network, "position": position}
            for instance_uuid in uuids
            for position, network in enumerate(self.rng.sample(self.networks, self.rng.randint(1, 2)))
        ]
        with transaction(self.engine) as connection:
            connection.execute(sa.insert(tables.instance), rows)
            insert_vifs(connection, nics)
            asked = instances_by(connection, uuids=uuids)
        outcome: dict[str, t.Any] = {"uuids": uuids, "state": "error", "reason": "no address"}
        addresses_by_instance: dict[str, dict[str, str]] = {}
        try:
            with transaction(self.engine) as connection:
                placed = fixed_ip(connection, {"instances": asked})["instances"]
            addresses_by_instance = {
                instance["uuid"]: {nic["id"]: nic["ip"] for nic in instance["nics"]} for instance in placed
            }
            outcomes = [
                {"uuids": [instance["uuid"]], "state": "active", "host": instance["host"]} for instance in placed
            ]
        except NovaliteError as error:
            assert isinstance(error, ConflictError) or "has no free address left" in str(error), error
            outcomes = [outcome]
        with transaction(self.engine) as connection:
            for instance_uuid, addresses in addresses_by_instance.items():  # what a guest now believes
                table = tables.instance
                connection.execute(sa.update(table).where(table.c.uuid == instance_uuid).values(metadata=addresses))
            server_state(connection, {"outcomes": outcomes})

    def terminate(self, to_delete: list[dict[str, t.Any]]) -> None:
        uuids = [instance["uuid"] for instance in to_delete]
        table = tables.instance
        with transaction(self.engine) as connection:
            connection.execute(sa.update(table).where(table.c.uuid.in_(uuids)).values(task_state="deleting"))
        with transaction(self.engine) as connection:
            server_state(connection, {"outcomes": [{"uuids": uuids, "state": "deleted"}]})

    def lead_to(self, instance: dict[str, t.Any]) -> None:
        item = {"address": None, "pool": None, "server": instance["name"], "fixed_ip": None}
        state = self.rng.choice(["present", "absent"])
        try:
            with transaction(self.engine) as connection:
                project = f"p{self.number % 2}"
                floating_ip(connection, {"project": project, "floating_ips": [item], "state": state})
        except NovaliteError as error:
            assert isinstance(error, ConflictError) or "left" in str(error) or "quota" in str(error), error


def work(url: str, number: int, seed: int) -> None:
    worker = Worker(url, number, seed)
    while True:
        try:
            worker.step()
        except ConflictError as error:  # another run was in the way: a person would run again
            assert "run again" in str(error), error


def supervise(url: str, seconds: float, seed: int, answer: t.Any) -> None:
    """Keep WORKERS at work, kill one of them at random moments, in the end all; answers how many were killed.

    It goes on until there is something to see: on a busy machine a worker comes to nothing in half a second.
    """
    rng = random.Random(seed)
    running: dict[int, t.Any] = {}
    engine = open_ledger(url=url)
    killed, ended, pause = 0, time.monotonic() + seconds, 0.5
    while time.monotonic() < ended or launched_on(engine) < seconds:
        for number in range(WORKERS):
            if number not in running:
                running[number] = FORK.Process(target=work, args=(url, number, rng.getrandbits(32)), daemon=True)
                running[number].start()
        time.sleep(rng.uniform(0.0, pause))
        if time.monotonic() > ended:
            pause *= 1.1
        killed += kill(running.pop(rng.choice(sorted(running))))
    answer.send(killed + sum([kill(process) for process in running.values()]))


def launched_on(engine: sa.Engine) -> int:
    with reading(engine) as connection:
        count: int = connection.execute(sa.select(sa.func.count(tables.instance.c.launched_at))).scalar_one()
    engine.dispose()  # no connection for a fork to inherit
    return count


def kill(process: t.Any) -> int:
    process.kill()
    process.join(GENEROUS)
    assert process.exitcode == -signal.SIGKILL, "a worker had ended by itself"
    return 1


def check(ledger: sa.Engine) -> collections.Counter[str]:
    """Check that who believes to have an address has it, and that nobody else believes so."""
    fixed, nic, of_network = tables.fixed_ip, tables.vif, tables.network
    with transaction(ledger) as connection:
        active = [instance for instance in instances_by(connection) if instance["vm_state"] == "active"]
        owners = connection.execute(
            sa.select(fixed.c.network_id, fixed.c.owner).where(fixed.c.owner.is_not(None))
        ).all()
        ipv6 = (
            connection.execute(
                sa.select(nic.c.ipv6)
                .join(of_network, of_network.c.id == nic.c.network_id)
                .where(nic.c.ipv6.is_not(None))
            )
            .scalars()
            .all()
        )
    guest_addresses = [
        (nic["network"]["id"], instance["metadata"][nic["id"]]) for instance in active for nic in instance["nics"]
    ]
    assert len(set(guest_addresses)) == len(guest_addresses), "an address twice"
    assert guest_addresses == [(nic["network"]["id"], nic["ip"]) for instance in active for nic in instance["nics"]]
    assert len(set(ipv6)) == len(ipv6)
    assert len({(row.network_id, row.owner) for row in owners}) == len(owners), "an owner twice"
    return collections.Counter(row.owner.partition(":")[0] for row in owners)


def settled(ledger: sa.Engine) -> None:
    """Wait until PostgreSQL has noticed that the killed are gone, and undone what they had begun."""
    if ledger.dialect.name != "postgresql":
        return
    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
        "AND backend_type = 'client backend' AND state <> 'idle'"
    )
    deadline = time.monotonic() + GENEROUS
    while time.monotonic() < deadline:
        with transaction(ledger) as connection:
            if not connection.execute(sa.text(others)).scalar_one():
                return
        time.sleep(0.1)
    raise AssertionError("transactions of killed workers are still there")


def test_killed_controllers_neither_share_nor_lose_an_address(run: Run, ledger: sa.Engine, ledger_url: str) -> None:
    with transaction(ledger) as connection:
        rows = [{"id": f"{number:032x}", "name": f"p{number}", "created_at": 0} for number in range(2)]
        connection.execute(sa.insert(tables.project), rows)
    run("network", networks=NETWORKS)
    run("floating_pool", floating_pools=[POOL])
    ledger.dispose()
    ours, theirs = CONTEXT.Pipe(duplex=False)
    supervisor = CONTEXT.Process(target=supervise, args=(ledger_url, SECONDS, 7, theirs))
    supervisor.start()
    supervisor.join(SECONDS + GENEROUS)
    assert supervisor.exitcode == 0
    killed = ours.recv()
    settled(ledger)
    check(ledger)  # even now: what was cut off is gone, what was committed is whole

    with transaction(ledger) as connection:
        correction_counts = collections.Counter(
            correction["kind"] for correction in ledger_heal(connection, {"build_timeout": 0})["corrections"]
        )
    # builds that nobody goes on with; nothing that a transaction would have left half done
    assert set(correction_counts) <= {"instance"}
    with transaction(ledger) as connection:
        # a deletion keeps what it has until somebody brings it to its end
        to_delete = [instance["uuid"] for instance in instances_by(connection) if instance["task_state"] == "deleting"]
        server_state(connection, {"outcomes": [{"uuids": to_delete, "state": "deleted"}]})
    owners = check(ledger)
    with transaction(ledger) as connection:
        assert ledger_heal(connection, {"build_timeout": 0})["corrections"] == []
        left = instances_by(connection)
        done = connection.execute(sa.select(sa.func.max(tables.instance.c.id))).scalar_one()
        launched = connection.execute(sa.select(sa.func.count(tables.instance.c.launched_at))).scalar_one()
        floating = (
            connection.execute(
                sa.select(tables.instance.c.deleted)
                .join(tables.vif, tables.vif.c.instance_uuid == tables.instance.c.uuid)
                .join(tables.floating_ip, tables.floating_ip.c.vif_id == tables.vif.c.id)
            )
            .scalars()
            .all()
        )
    holding = [instance for instance in left if instance["vm_state"] == "active"]
    # not one address is lost: every one that is owned is an instance's, or the host's of one
    assert owners["vif"] == sum(len(instance["nics"]) for instance in holding)
    assert owners["dhcp"] == len(
        {(nic["network"]["id"], instance["host"]) for instance in holding for nic in instance["nics"]}
    )
    assert all(nic["ip"] is None for instance in left if instance not in holding for nic in instance["nics"])
    assert not any(floating)
    print(
        f"\n{ledger.dialect.name}: {SECONDS:g} s, {done} instances ({launched} got their addresses), {killed} workers "
        f"killed, {sum(correction_counts.values())} builds repaired, {len(to_delete)} deletions ended, "
        f"{owners['vif']} + {owners['dhcp']} addresses in use, {len(floating)} floating; 0 twice, 0 lost"
    )
    assert killed >= SECONDS and launched >= SECONDS  # there was something to see
