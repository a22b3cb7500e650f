# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports with several addresses of one pool: any order of changes held against a model, and what gives them back."""

from __future__ import annotations

import concurrent.futures
import threading
import typing as t

import pytest
import sqlalchemy as sa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.pools import to_text
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError, PoolExhaustedError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import port_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import ports, subnets, tenant_networks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.addresses import release_addresses
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.instance_rows import instance_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import (
    carriers,
    network_records,
    subnet_records,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import Network
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.ledger_heal import ledger_heal
from tests.support.examples import part_of
from tests.support.rows import DEMO, add_host, add_instance, add_project

pytestmark = pytest.mark.both_databases

CIDR = "10.50.0.0/28"
FREE = 13  # addresses of it that ports can have
SAID: dict[str, t.Any] = {
    **dict.fromkeys(("name", "description", "device_id", "device_owner"), ""),
    **dict.fromkeys(("security_groups", "allowed_address_pairs", "mac", "port_security_enabled", "extra_dhcp_opts")),
    "admin_state_up": True,
    "binding": {},
}


def make_network(connection: sa.Connection) -> Network:
    attributes = {"name": "n", "description": "", "mtu": None, "port_security_enabled": True}
    number = tenant_networks.create_network(connection, DEMO, attributes, carriers.Carrier())
    (bare,) = (row for row in network_records.networks_seen(connection, DEMO, bare=True) if row.uuid == number)
    subnets.create_subnet(connection, bare, {"version": 4, "cidr": CIDR})
    (row,) = (row for row in network_records.networks_seen(connection, DEMO) if row.uuid == number)
    return row


def wishes(row: Network, octets: t.Sequence[int]) -> list[dict[str, str]]:
    """What asks for the addresses with these last numbers; 0: any."""
    inside = subnet_records.derived_id(row.uuid, 4)
    return [{"ip_address": f"10.50.0.{number}"} if number else {"subnet_id": inside} for number in octets]


def make_port(connection: sa.Connection, row: Network, *octets: int) -> str:
    return ports.create_port(connection, DEMO, row, {**SAID, "fixed_ips": wishes(row, octets)})


def addresses(connection: sa.Connection, number: str) -> list[str]:
    (port,) = network_records.ports_of(connection, DEMO, number)
    return [address for address in (port.ip, *port.more_ips) if address is not None]


def owned(connection: sa.Connection) -> list[t.Any]:
    pool = tables.fixed_ip
    taken = sa.or_(pool.c.owner.is_not(None), pool.c.further_of.is_not(None))
    return list(connection.execute(sa.select(pool.c.ip, pool.c.owner, pool.c.further_of).where(taken)))


class PortMachine(RuleBasedStateMachine):
    """Two ports that take addresses from each other."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
        tables.metadata.create_all(self.engine)
        self.connection = self.engine.connect()
        add_project(self.connection, "demo", DEMO)
        self.row = make_network(self.connection)
        self.ports: dict[str, list[str]] = {make_port(self.connection, self.row): [] for _port in range(3)}

    @rule(index=st.integers(0, 2), octets=st.lists(st.integers(0, 16), max_size=6))
    def change(self, index: int, octets: list[int]) -> None:
        number = list(self.ports)[index]
        (seen,) = network_records.ports_of(self.connection, DEMO, number)
        named = [f"10.50.0.{each}" for each in octets if each]
        of_others = {address for other, theirs in self.ports.items() if other != number for address in theirs}
        legal = len(octets) <= 5 and len(set(named)) == len(named) and of_others.isdisjoint(named)
        legal &= {1, 15, 16}.isdisjoint(octets)
        legal &= len(of_others) + len(octets) <= FREE
        try:
            with self.connection.begin_nested():
                changes = {"fixed_ips": wishes(self.row, octets)}
                ports.update_port(self.connection, DEMO, self.row, seen, changes)
        except NovaliteError:
            assert not legal
            return
        assert legal
        after = addresses(self.connection, number)
        assert set(named) <= set(after) and len(after) == len(octets)
        kept = len(set(self.ports[number]) & set(after))
        assert kept == min(len(self.ports[number]), len(set(self.ports[number]) & set(named)) + octets.count(0))
        self.ports[number] = after

    @invariant()
    def the_pool_agrees(self) -> None:
        rows = {row.ip: row for row in owned(self.connection)}
        held = [address for theirs in self.ports.values() for address in theirs]
        assert sorted(map(to_text, rows)) == sorted(held)
        for number, theirs in self.ports.items():
            assert addresses(self.connection, number) == theirs
            mine = [row for row in rows.values() if row.owner.startswith(f"vif:{number}")]
            assert sum(row.owner == f"vif:{number}" and row.further_of is None for row in mine) == bool(theirs)
            assert sum(row.further_of == number for row in mine) == max(len(theirs) - 1, 0)

    def teardown(self) -> None:
        self.connection.close()
        self.engine.dispose()


PortMachine.TestCase.settings = settings(max_examples=part_of(25), stateful_step_count=20, deadline=None)
TestPorts = PortMachine.TestCase


def test_all_of_them_come_back(ledger: sa.Engine) -> None:
    with transaction(ledger) as connection:
        row = make_network(connection)
        number = make_port(connection, row, 0, 0, 9)
        assert release_addresses(connection, [number]) == 3 and owned(connection) == []


def test_those_of_an_interface_that_is_gone_are_given_back(ledger: sa.Engine) -> None:
    with transaction(ledger) as connection:
        row = make_network(connection)
        kept, gone = make_port(connection, row, 0, 0), make_port(connection, row, 0, 0, 0)
        connection.execute(sa.delete(tables.vif).where(tables.vif.c.id == gone))
        healed = ledger_heal(connection, {})
        assert [correction["kind"] for correction in healed["corrections"]] == ["fixed_ip"] * 3
        assert len(owned(connection)) == len(addresses(connection, kept)) == 2
        assert ledger_heal(connection, {})["corrections"] == []


def test_who_takes_several_at_the_same_time_shares_none(ledger: sa.Engine, ledger_url: str) -> None:
    with transaction(ledger) as connection:
        row = make_network(connection)

    def take(_turn: int) -> bool:
        engine = open_ledger(url=ledger_url)
        try:
            with transaction(engine) as connection:
                make_port(connection, row, 0, 0, 0)
        except PoolExhaustedError:
            return False
        finally:
            engine.dispose()
        return True

    with concurrent.futures.ThreadPoolExecutor(4) as workers:
        done = list(workers.map(take, range(6)))
    assert done.count(True) == FREE // 3
    with transaction(ledger) as connection:
        assert len(owned(connection)) == FREE // 3 * 3


def test_changes_of_one_server_at_the_same_time_come_one_after_the_other(ledger: sa.Engine, ledger_url: str) -> None:
    """Never too many addresses, and never none: what was read before another change was done is read again."""
    with transaction(ledger) as connection:
        row = make_network(connection)
        number = make_port(connection, row, 5)
        add_host(connection)
        server = add_instance(connection, host="hv1")
        connection.execute(sa.update(tables.vif).values(instance_uuid=server, position=0))

    def at_once(change: t.Callable[[sa.Connection, t.Any, t.Any], object], values: t.Sequence[t.Any]) -> list[bool]:
        begin = threading.Barrier(len(values))

        def run_change(value: t.Any) -> bool:
            engine = open_ledger(url=ledger_url)
            try:
                with engine.connect() as reading:
                    (instance,) = instance_rows(reading, tables.instance.c.uuid == server)
                begin.wait()
                with transaction(engine) as connection:
                    change(connection, instance, value)
            except NovaliteError:
                return False
            finally:
                engine.dispose()
            return True

        with concurrent.futures.ThreadPoolExecutor(len(values)) as workers:
            return list(workers.map(run_change, values))

    assert at_once(port_changes.add_fixed_ip, [row.uuid] * 6).count(True) == 4
    with transaction(ledger) as connection:
        five = addresses(connection, number)
        assert len(five) == len(owned(connection)) == 5
    assert at_once(port_changes.remove_fixed_ip, five).count(True) == 4
    with transaction(ledger) as connection:
        assert len(addresses(connection, number)) == len(owned(connection)) == 1


def test_a_sixth_is_refused(ledger: sa.Engine) -> None:
    with transaction(ledger) as connection:
        row = make_network(connection)
        with pytest.raises(NovaliteError, match="5 is the limit"):
            make_port(connection, row, *[0] * 6)
