# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Any order of launches, repeats, releases, waits and reservations on two small networks, held against a model."""

from __future__ import annotations

import dataclasses
import typing as t
import uuid

import pytest
import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.pools import to_int, to_text
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.addresses import (
    release_addresses,
    release_host_address,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.fixed_ip import fixed_ip
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.network import network
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import spec_of
from ansible_collections.novalite.cloud.plugins.modules.network import DOCUMENTATION
from tests.support.clocks import standing_at
from tests.support.examples import part_of
from tests.support.rows import add_instance, add_project, add_vif

NOTHING_SAID = dict.fromkeys(spec_of(DOCUMENTATION)["networks"]["options"])
HOSTS = ("hv1", "hv2")
QUARANTINE = 600


@dataclasses.dataclass
class Pool:
    """The rules' view of one network."""

    id: int
    name: str
    first: int
    serves: bool  # each host has an address of its own
    gateway: int | None
    released: dict[int, int]  # address -> when; of those that nobody has
    owner: dict[int, str] = dataclasses.field(default_factory=dict)
    last_owner: dict[int, str] = dataclasses.field(default_factory=dict)
    reserved: set[int] = dataclasses.field(default_factory=set)

    def free(self) -> list[int]:
        """Longest free first."""
        there = (ip for ip in self.released if ip not in self.reserved)
        return sorted(there, key=lambda ip: (self.released[ip], ip))

    def has(self, owner: str) -> int | None:
        return next((ip for ip, other in self.owner.items() if other == owner), None)

    def had(self, owner: str) -> int | None:
        theirs = [ip for ip in self.free() if self.last_owner.get(ip) == owner]
        return max(theirs, key=lambda ip: (self.released[ip], ip), default=None)

    def take(self, ip: int, owner: str) -> None:
        del self.released[ip]
        self.owner[ip] = owner

    def give_back(self, owner: str, now: int) -> bool:
        ip = self.has(owner)
        if ip is not None:
            self.last_owner[ip] = self.owner.pop(ip)
            self.released[ip] = now
        return ip is not None


class Refused(Exception):
    """The model's refusal."""


class AddressMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000_000
        self.made = 0
        self.clock = standing_at(lambda: self.now)
        self.clock.__enter__()
        self.engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
        tables.metadata.create_all(self.engine)
        self.connection = self.engine.connect()
        add_project(self.connection, "p", "p")
        self.pools = [self.make("served", 10 << 24, None), self.make("routed", 11 << 24, (11 << 24) + 1)]
        self.instances: dict[str, dict[str, t.Any]] = {}  # by name

    def make(self, name: str, first: int, gateway: int | None) -> Pool:
        said = {"name": name, "cidr": f"{to_text(first)}/29"}
        if gateway is not None:
            said |= {"gateway": to_text(gateway), "manager": "flat"}
        [made] = self.network(said)["networks"]
        inside = {ip: 0 for ip in range(first + 1, first + 7) if ip != gateway}
        return Pool(made["id"], name, first, gateway is None, gateway, inside)

    def new_id(self) -> str:
        """A UUID that is the same whenever the same steps are taken again: hypothesis finds its way by that."""
        self.made += 1
        return str(uuid.UUID(int=self.made << 96))

    def network(self, said: dict[str, t.Any]) -> dict[str, t.Any]:
        with self.connection.begin_nested():
            return network(
                self.connection, {"networks": [{**NOTHING_SAID, **said}], "project": None, "state": "present"}
            )

    def ask(self, instances: list[dict[str, t.Any]]) -> dict[str, t.Any]:
        with self.connection.begin_nested():
            return fixed_ip(self.connection, {"instances": instances})

    # --- the model of one call ---

    def expected(self, instances: list[dict[str, t.Any]]) -> tuple[list[Pool], int, int]:
        """The pools after a call, how many addresses it takes, and how many of those out of quarantine."""
        taken = warned = 0
        after = []
        for pool in self.pools:
            pool = dataclasses.replace(pool, released=dict(pool.released), owner=dict(pool.owner))
            after.append(pool)
            owners: dict[str, int | None] = {}
            for instance in instances:
                if pool.serves and any(nic["network"]["id"] == pool.id for nic in instance["nics"]):
                    owners[f"dhcp:{instance['host']}"] = None
            for instance in instances:
                for nic in instance["nics"]:
                    if nic["network"]["id"] == pool.id:
                        asked = nic["ip"] or nic["requested_ip"]
                        owners[f"vif:{nic['id']}"] = None if asked is None else to_int(asked)
            missing = [owner for owner in owners if pool.has(owner) is None]
            taken += len(missing)
            for owner, address in owners.items():
                if address is None or pool.has(owner) == address:
                    continue
                if pool.has(owner) is not None:
                    raise Refused("cannot get")
                if not pool.first <= address < pool.first + 8:
                    raise Refused("is outside of")
                if address in pool.owner:
                    raise Refused("is in use by")
                if address not in pool.free():
                    raise Refused("is reserved in")
                pool.take(address, owner)
            for owner in owners:
                if pool.has(owner) is None and (again := pool.had(owner)) is not None:
                    pool.take(again, owner)
            rest = [owner for owner in owners if pool.has(owner) is None]
            if len(rest) > len(pool.free()):
                raise Refused("has no free address left")
            for owner, ip in zip(rest, pool.free()):
                warned += pool.released[ip] > self.now - QUARANTINE
                pool.take(ip, owner)
        return after, taken, warned

    def call(self, instances: list[dict[str, t.Any]]) -> bool:
        """Make the call and hold it against the model; whether it was carried out."""
        try:
            after, taken, warned = self.expected(instances)
        except Refused as refused:
            with pytest.raises(NovaliteError, match=str(refused)):
                self.ask(instances)
            return False
        result = self.ask(instances)
        self.pools = after
        assert result["changed"] == (taken > 0)
        assert len(result.get("warnings", [])) == warned
        for instance in result["instances"]:
            for nic in instance["nics"]:
                [pool] = [pool for pool in after if pool.id == nic["network"]["id"]]
                own = pool.has(f"dhcp:{instance['host']}")
                assert nic["ip"] == to_text(t.cast(int, pool.has(f"vif:{nic['id']}")))
                assert nic["dhcp_server"] == (None if own is None or not pool.serves else to_text(own))
        return True

    # --- rules ---

    @rule(
        count=st.integers(1, 3),
        where=st.sampled_from([(0,), (1,), (0, 1)]),
        host=st.sampled_from(HOSTS),
        asked=st.none() | st.integers(-1, 8),
    )
    def launch(self, count: int, where: tuple[int, ...], host: str, asked: int | None) -> None:
        new: list[dict[str, t.Any]] = []
        for number in range(count):
            nics = []
            for index in where:
                pool = self.pools[index]
                requested_ip = to_text(pool.first + asked) if asked is not None and number == count - 1 else None
                of_network = {"id": pool.id, "name": pool.name}
                nics.append(
                    {"id": self.new_id(), "mac": None, "network": of_network, "ip": None, "requested_ip": requested_ip}
                )
            new.append({"uuid": self.new_id(), "name": f"i{self.made}", "host": host, "nics": nics})
        if self.call(new):
            for instance in new:
                self.record(instance)
                self.instances[instance["name"]] = instance

    @precondition(lambda self: self.instances)
    @rule(data=st.data())
    def repeat_some(self, data: st.DataObject) -> None:
        some = data.draw(st.sets(st.sampled_from(sorted(self.instances)), min_size=1))
        self.call([self.instances[name] for name in sorted(some)])

    @precondition(lambda self: self.instances)
    @rule(data=st.data(), forget=st.booleans())
    def release(self, data: st.DataObject, forget: bool) -> None:
        """The addresses go back; without `forget` the interface stays, as after a failed build, and may ask again."""
        name: str = data.draw(st.sampled_from(sorted(self.instances)))
        nics = [nic["id"] for nic in self.instances[name]["nics"]]
        expected = sum(pool.give_back(f"vif:{nic}", self.now) for pool in self.pools for nic in nics)
        assert release_addresses(self.connection, [*nics, "unknown"], self.now) == expected
        if forget:
            self.connection.execute(sa.delete(tables.vif).where(tables.vif.c.id.in_(nics)))
            del self.instances[name]

    @rule(index=st.integers(0, 1), host=st.sampled_from(HOSTS))
    def leave_host(self, index: int, host: str) -> None:
        pool = self.pools[index]
        needed = any(
            pool.has(f"vif:{nic['id']}") is not None
            for instance in self.instances.values()
            if instance["host"] == host
            for nic in instance["nics"]
        )
        expected = not needed and pool.give_back(f"dhcp:{host}", self.now)
        assert release_host_address(self.connection, pool.id, host, self.now) == expected

    @rule(seconds=st.sampled_from([1, 60, 599, 600, 3600]))
    def wait(self, seconds: int) -> None:
        self.now += seconds

    @rule(index=st.integers(0, 1), numbers=st.sets(st.integers(1, 6), max_size=2))
    def reserve(self, index: int, numbers: set[int]) -> None:
        pool = self.pools[index]
        reserved_ips = {pool.first + number for number in numbers if pool.first + number != pool.gateway}
        said = {"name": pool.name, "reserved": [to_text(ip) for ip in sorted(reserved_ips)]}
        if any(ip in pool.owner for ip in reserved_ips):
            with pytest.raises(ConflictError, match="is in use: it can be reserved when it is free"):
                self.network(said)
        else:
            self.network(said)
            pool.reserved = reserved_ips

    @invariant()
    def the_rows_agree(self) -> None:
        table = tables.fixed_ip
        owned = self.connection.execute(
            sa.select(table.c.network_id, table.c.ip, table.c.owner).where(table.c.owner.is_not(None))
        ).all()
        assert {(row.network_id, row.ip): row.owner for row in owned} == {
            (pool.id, ip): owner for pool in self.pools for ip, owner in pool.owner.items()
        }

    # --- rows that the operation needs beside it ---

    def record(self, instance: dict[str, t.Any]) -> None:
        own = {"uuid": instance["uuid"], "host": instance["host"], "project_id": "p"}
        add_instance(self.connection, instance["name"], **own)
        for position, nic in enumerate(instance["nics"]):
            place = {"id": nic["id"], "mac": nic["id"][:17], "position": position}
            add_vif(self.connection, instance["uuid"], nic["network"]["id"], **place)

    def teardown(self) -> None:
        self.clock.__exit__(None, None, None)
        self.connection.close()
        self.engine.dispose()


AddressMachine.TestCase.settings = settings(max_examples=part_of(25), stateful_step_count=30, deadline=None)
TestAddresses = AddressMachine.TestCase
