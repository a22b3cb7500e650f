# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Claims of addresses: what they cost, and processes at once."""

from __future__ import annotations

import json
import multiprocessing
import re
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.addresses import release_addresses
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.fixed_ip import fixed_ip
from tests.support.patience import GENEROUS
from tests.support.postgresql import Server
from tests.unit._ledger.addresses.test_addresses import Network, add_network, ips, nic_ids, owners, some
from tests.unit._ledger.conftest import on_sqlite

pytestmark = pytest.mark.both_databases


@on_sqlite
def test_a_claim_takes_the_index_of_free_addresses_and_sorts_nothing_else(engine: sa.Engine) -> None:
    """With 60,000 free rows, reading them all costs 10 ms an address."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import pool_claims

    with transaction(engine) as connection:
        plan = connection.exec_driver_sql(
            f"EXPLAIN QUERY PLAN {pool_claims._FREE_SQLITE.format(bounds='')}", {"network_id": 1, "count": 1}
        )
        assert [row.detail for row in plan] == ["SEARCH fixed_ip USING INDEX ix_fixed_ip_free (network_id=?)"]
        question = {"network_id": 1, "owners": "[]"}
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {pool_claims._HELD_SQLITE}", question)
        searches = [row.detail for row in plan if "SEARCH" in row.detail]
    # by the owner, too: by the network alone it would read all that are free, or all that were ever released
    assert searches == [
        "SEARCH held USING INDEX sqlite_autoindex_fixed_ip_2 (network_id=? AND owner=?)",
        "SEARCH had USING INDEX ix_fixed_ip_last_owner (network_id=? AND last_owner=?)",
    ]


def test_a_claim_does_so_on_postgresql_as_soon_as_there_is_a_network(postgresql_server: Server) -> None:
    """Without statistics the planner takes another index, and sorts: 40 ms for an address of a /16."""
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import pool_claims
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.network import network as make
    from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import spec_of
    from ansible_collections.novalite.cloud.plugins.modules.network import DOCUMENTATION

    asked = {**dict.fromkeys(spec_of(DOCUMENTATION)["networks"]["options"]), "name": "private", "cidr": "10.20.0.0/19"}
    made = open_ledger(url=postgresql_server.create(f"plans_{uuid.uuid4().hex}"))  # one that was never analysed
    with transaction(made) as connection:
        (row,) = make(connection, {"project": None, "state": "present", "networks": [asked]})["networks"]
        plans = [
            connection.execute(
                sa.text(f"EXPLAIN {pool_claims._claim_text(pool_claims._LOCKS[0], False)}"),
                {"network_id": row["id"], "owners": json.dumps(["vif:1"] * count), "count": count},
            ).scalars()
            for count in (1, 100)
        ]
        for plan in map("\n".join, plans):
            assert "Index Scan using ix_fixed_ip_free" in plan and "uq_fixed_ip" not in plan
        question = {"network_id": row["id"], "owners": json.dumps(["vif:1"])}
        plan = "\n".join(connection.execute(sa.text(f"EXPLAIN {pool_claims._HELD_POSTGRESQL}"), question).scalars())
        # by the owner, too: by the network alone it would read all that are free, or all that were ever released
        assert len(re.findall(r"\(network_id = .*\) AND \(\((last_)?owner\)::text = wanted", plan)) == 2, plan
    made.dispose()


def _churn(url: str, network: Network, host: str, rounds: int) -> None:
    engine = open_ledger(url=url)
    for _round in range(rounds):
        instances = some(5, network, host=host)
        with transaction(engine) as connection:
            claimed_ips = ips(fixed_ip(connection, {"instances": instances}))
        assert len(set(claimed_ips)) == 5
        with transaction(engine) as connection:
            release_addresses(connection, nic_ids(instances[:2]))
    engine.dispose()


def test_processes_at_once_share_no_address(engine: sa.Engine, ledger_url: str) -> None:
    with transaction(engine) as connection:
        network = add_network(connection, cidr="10.20.0.0/24")
    engine.dispose()
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_churn, args=(ledger_url, network, f"hv{n % 2}", 6)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(GENEROUS)
    assert [worker.exitcode for worker in workers] == [0, 0, 0, 0]
    with transaction(engine) as connection:
        taken = owners(connection)
        # an address has one owner by its key; none was lost, and no owner has two
        assert len(taken) == len(set(taken.values())) == 4 * 6 * 3 + 2
