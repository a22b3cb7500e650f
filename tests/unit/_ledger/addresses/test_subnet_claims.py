# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims that are bounded to a subnet of a network of several, by many at the same time; its deletion meanwhile."""

from __future__ import annotations

import concurrent.futures
import functools
import threading
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.pools import to_text
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError, PoolExhaustedError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import ports, subnets
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import subnet_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import Network
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import status
from tests.support.rows import DEMO
from tests.unit._ledger.addresses.test_further_addresses import SAID, make_network, owned
from tests.unit._ledger.conftest import Run

pytestmark = pytest.mark.both_databases

FEW = ["10.60.0.9", "10.60.0.11"]  # addresses of the further subnet that ports can have
Answers = list["str | None"]


def of_two(connection: sa.Connection) -> tuple[Network, str]:
    """A network with a further subnet of few addresses, and the UUID of that."""
    row = make_network(connection)
    few = {"version": 4, "cidr": "10.60.0.0/24", "pools": [tuple(FEW)]}
    return row, subnets.create_subnet(connection, row, few)


def port(connection: sa.Connection, row: Network, subnet: str | None) -> str:
    wish = None if subnet is None else [{"subnet_id": subnet}]
    return ports.create_port(connection, DEMO, row, {**SAID, "fixed_ips": wish})


def at_once(ledger_url: str, work: t.Sequence[t.Callable[[sa.Connection], object]]) -> Answers:
    """Do all of it in transactions of the same time; returns the name of the error of each, or None."""
    begin = threading.Barrier(len(work))

    def error_of(act: t.Callable[[sa.Connection], object]) -> str | None:
        engine = open_ledger(url=ledger_url)
        try:
            begin.wait()
            with transaction(engine) as connection:
                act(connection)
        except NovaliteError as error:
            return type(error).__name__
        finally:
            engine.dispose()
        return None

    with concurrent.futures.ThreadPoolExecutor(len(work)) as workers:
        return list(workers.map(error_of, work))


def test_many_ports_get_no_more_than_a_subnet_has(ledger: sa.Engine, ledger_url: str) -> None:
    with transaction(ledger) as connection:
        row, few = of_two(connection)
    done = at_once(ledger_url, [functools.partial(port, row=row, subnet=few)] * 6)
    assert sorted(done, key=str) == [None, None, None, *[PoolExhaustedError.__name__] * 3]
    with transaction(ledger) as connection:
        assert [to_text(each.ip) for each in owned(connection)] == ["10.60.0.9", "10.60.0.10", "10.60.0.11"]


def test_ports_that_name_none_go_on_to_the_next(ledger: sa.Engine, ledger_url: str) -> None:
    with transaction(ledger) as connection:
        row, _few = of_two(connection)
        for _turn in range(11):
            port(connection, row, None)
    done = at_once(ledger_url, [functools.partial(port, row=row, subnet=None)] * 6)  # two are free there
    assert done.count(None) == 5 and done.count(PoolExhaustedError.__name__) == 1
    with transaction(ledger) as connection:
        assert sum(to_text(each.ip).startswith("10.60.") for each in owned(connection)) == 3


def test_a_subnet_that_goes_takes_no_address_of_a_port_along(ledger: sa.Engine, ledger_url: str) -> None:
    for _turn in range(5):
        with transaction(ledger) as connection:
            row, few = of_two(connection)
            there = {each.id: each for each in subnet_records.subnets_of_network(connection, row)}[few]
        made, gone = at_once(
            ledger_url,
            [
                functools.partial(port, row=row, subnet=few),
                functools.partial(subnets.delete_subnet, row=row, before=there),
            ],
        )
        with transaction(ledger) as connection:
            left = [each.id for each in subnet_records.subnets_of_network(connection, row)]
            mine = sa.and_(tables.fixed_ip.c.network_id == row.id, tables.fixed_ip.c.owner.is_not(None))
            held = connection.execute(sa.select(tables.fixed_ip.c.ip).where(mine)).all()
        assert (few in left) == (gone is not None) == bool(held) == (made is None)


def test_subnets_made_at_the_same_time_do_not_overlap(ledger: sa.Engine, ledger_url: str) -> None:
    with transaction(ledger) as connection:
        row = make_network(connection)
    subnet_attributes = [{"version": 4, "cidr": cidr} for cidr in ("10.60.0.0/24", "10.60.0.0/25", "10.70.0.0/24")]
    done = at_once(
        ledger_url, [functools.partial(subnets.create_subnet, row=row, attributes=each) for each in subnet_attributes]
    )
    assert done[2] is None and done[:2].count(None) == 1
    with transaction(ledger) as connection:
        there = subnet_records.subnets_of_network(connection, row)
        assert sorted(each.position for each in there) == [0, 1, 2]


def test_the_operator_changes_such_a_network_and_maps_its_addresses(ledger: sa.Engine, run: Run) -> None:
    with transaction(ledger) as connection:
        row, few = of_two(connection)
        number = port(connection, row, few)
    done = run("network", project="demo", networks=[{"name": row.name, "mtu": 1400}])
    assert done["changed"] and done["networks"][0]["reserved"] == []
    assert run("network", project="demo", networks=[{"name": row.name, "mtu": 1400}])["changed"] is False
    with transaction(ledger) as connection:
        there = {each.id: each for each in subnet_records.subnets_of_network(connection, row)}
        assert there[few].pools == [list(FEW)]
        address_map = status.address_map(connection, row.uuid, DEMO)
        held = [to_text(each.ip) for each in owned(connection)]
    assert address_map["addresses"]["total"] == 16 + 256 and address_map["addresses"]["instances"] == 1
    assert held == ["10.60.0.9"] and number
    assert [cell["first"] for cell in address_map["cells"] if cell["instances"]] == ["10.60.0.8"]
    assert (address_map["block"], len(address_map["cells"])) == (2, 8 + 128)
