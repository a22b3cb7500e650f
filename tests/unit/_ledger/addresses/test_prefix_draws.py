# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prefixes of subnet pools, which are drawn by several at the same time, on both databases."""

from __future__ import annotations

import concurrent.futures

import netaddr
import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_networking import subnet_pool
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import (
    subnet_pools,
    subnets,
    tenant_networks,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import by_playbook
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import projects
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import carriers, network_records
from tests.support.rows import DEMO

pytestmark = pytest.mark.both_databases

WORKERS = 4
ROOM = 6  # subnets that the pool has room for


def _pool(ledger: sa.Engine, **values: object) -> str:
    attributes = {"name": "p", "prefixes": ["10.8.0.0/24", "10.9.0.0/25"], "default_prefixlen": 26, **values}
    with transaction(ledger) as connection:
        return subnet_pools.create_subnet_pool(connection, DEMO, attributes)


def _network(ledger: sa.Engine) -> network_records.Network:
    with transaction(ledger) as connection:
        attributes = {"name": "", "description": "", "mtu": None, "port_security_enabled": True}
        number = tenant_networks.create_network(connection, DEMO, attributes, carriers.Carrier())
        seen = network_records.networks_seen(connection, DEMO, bare=True)
    return next(row for row in seen if row.uuid == number)


def test_who_draws_at_the_same_time_gets_prefixes_of_their_own(ledger: sa.Engine, ledger_url: str) -> None:
    number = _pool(ledger)
    rows = [_network(ledger) for _subnet in range(ROOM + 3)]

    def draw(row: network_records.Network) -> bool:
        engine = open_ledger(url=ledger_url)
        try:
            with transaction(engine) as connection:
                subnets.create_subnet(connection, row, {"version": 4, "subnetpool_id": number})
        except ConflictError as error:
            assert "Insufficient prefix space" in str(error)
            return False
        finally:
            engine.dispose()
        return True

    with concurrent.futures.ThreadPoolExecutor(WORKERS) as workers:
        done = list(workers.map(draw, rows))
    assert done.count(True) == ROOM
    with transaction(ledger) as connection:
        query = sa.select(tables.network.c.cidr).where(tables.network.c.cidr.is_not(None))
        drawn = list(connection.execute(query).scalars())
    assert sum(netaddr.IPNetwork(cidr).size for cidr in drawn) == netaddr.IPSet(drawn).size == ROOM * 64


def test_an_address_family_has_one_default(ledger: sa.Engine) -> None:
    _pool(ledger, is_default=True)
    with pytest.raises(NovaliteError, match="is the default of IPv4"):
        _pool(ledger, is_default=True)
    other = _pool(ledger)
    with pytest.raises(sa.exc.IntegrityError), ledger.begin() as connection:  # whatever the code says
        connection.execute(sa.update(subnet_pool).where(subnet_pool.c.id == other).values(is_default=True))


def test_a_project_with_a_pool_stays(ledger: sa.Engine) -> None:
    number = _pool(ledger)
    with pytest.raises(ConflictError, match="subnet pool 'p'"), transaction(ledger) as connection:
        projects.remove(by_playbook(connection), [{"name": "demo"}])
    with transaction(ledger) as connection:
        subnet_pools.delete_subnet_pool(connection, number)
        projects.remove(by_playbook(connection), [{"name": "demo"}])
