# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import types
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ForbiddenError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_addresses import host_owner
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import (
    networks,
    owners,
    pools,
    subnets,
    tags,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import subnet_pool_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.carriers import Carrier
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.pool_records import pools_seen
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_records import (
    subnets_of_network,
)
from tests.support.rows import DEMO, OTHER, add_network, change_address
from tests.unit._ledger.operations.conftest import Doors

SITE = t.cast("networks.Site", types.SimpleNamespace(carrier=Carrier(), interfaces=("eth1",)))
SHARED, OPERATE = "network:create:shared", "network:operate"
FOR_ALL: list[networks.NetworkValues] = [
    {"shared": True},
    {"is_default": True},
    {"external": True},
    {"provider": {"provider:network_type": "vxlan"}},
]


@pytest.mark.parametrize("values", FOR_ALL)
def test_what_concerns_all_projects_is_for_administrators(doors: Doors, values: networks.NetworkValues) -> None:
    with pytest.raises(ForbiddenError, match="disallowed by policy"):
        networks.create(doors.call(), {}, values, SITE)
    assert networks.create(doors.call(SHARED), {}, values, SITE)


def test_a_network_is_made_for_another_project_by_administrators_only(doors: Doors) -> None:
    with pytest.raises(ForbiddenError, match="project_id is another project's"):
        networks.create(doors.call(), {"project_id": OTHER}, {}, SITE)
    by_admin = doors.call("network:create:other_project")
    assert doors.network(networks.create(by_admin, {"project_id": OTHER}, {}, SITE)).owner == OTHER
    for named in ({"project_id": "f" * 32}, {"project_id": OTHER, "tenant_id": DEMO}):
        with pytest.raises(owners.UnknownProjectError):
            networks.create(by_admin, named, {}, SITE)


def test_a_playbooks_network_is_changed_by_its_playbook_but_for_the_default(doors: Doors) -> None:
    row = doors.network(add_network(doors.connection)["uuid"])
    with pytest.raises(ForbiddenError, match=r"novalite\.cloud\.network"):
        networks.update(doors.call(SHARED), row, {"is_default": True}, SITE)
    by_admin = doors.call(SHARED, OPERATE)
    networks.update(by_admin, row, {"is_default": True}, SITE)
    assert doors.network(row.uuid).is_default
    refused: list[t.Callable[[], object]] = [
        lambda: networks.update(by_admin, row, {"is_default": False, "name": "x"}, SITE),
        lambda: networks.delete(by_admin, row),
        lambda: subnets.create(by_admin, row, {}, {"version": 4, "cidr": "10.9.0.0/24"}),
        lambda: tags.change(by_admin, row.uuid, lambda _tags: ["x"], of=row),
    ]
    for act in refused:
        with pytest.raises(ForbiddenError, match=r"novalite\.cloud\.network"):
            act()


def test_hosts_learn_of_a_network_that_is_taken_down(doors: Doors) -> None:
    row = doors.network(networks.create(doors.call(), {}, {"name": "mine"}, SITE))
    networks.update(doors.call(), row, {"admin_state_up": False}, SITE)
    assert doors.jobs == []
    networks.update(doors.call(), doors.network(row.uuid), {"admin_state_up": True}, SITE)
    doors.server_on(row)
    networks.update(doors.call(), doors.network(row.uuid), {"admin_state_up": False}, SITE)
    assert doors.jobs == [("floating_ips", {"project": "demo", "network_hosts": ["hv1"]})]


def test_a_floating_pool_is_a_network_to_administrators_only(doors: Doors) -> None:
    by_admin = doors.call(SHARED, OPERATE)
    number = networks.create(by_admin, {}, {"external": True}, SITE)
    (pool,) = pools_seen(doors.connection, number)
    subnet: subnets.SubnetValues = {"cidr": "203.0.113.0/29", "gateway": None}
    subnet["pools"] = [("203.0.113.2", "203.0.113.3")]
    refused: list[t.Callable[[], object]] = [
        lambda: networks.update(doors.call(), pool, {"name": "x"}, SITE),
        lambda: networks.delete(doors.call(), pool),
        lambda: subnets.create(doors.call(), pool, {}, subnet),
        lambda: subnets.delete_of_pool(doors.call(), pool),
    ]
    for act in refused:
        with pytest.raises(ForbiddenError, match="floating pool"):
            act()
    subnets.create(by_admin, pool, {}, subnet)
    (pool,) = pools_seen(doors.connection, number)
    assert pool.ranges == [("203.0.113.2", "203.0.113.3")]
    with pytest.raises(NovaliteError, match="is_default"):
        networks.update(by_admin, pool, {"is_default": True}, SITE)
    networks.update(by_admin, pool, {"external": False, "name": "inside"}, SITE)
    row = doors.network(number)
    assert (row.display_name, [each.cidr for each in subnets_of_network(doors.connection, row)]) == (
        "inside",
        ["203.0.113.0/29"],
    )
    networks.update(by_admin, row, {"external": True}, SITE)
    assert [each.shown_name for each in pools_seen(doors.connection, number)] == ["inside"]


def test_hosts_give_up_the_addresses_of_a_subnet_that_goes(doors: Doors) -> None:
    row = doors.network(networks.create(doors.call(), {}, {"name": "mine"}, SITE))
    subnets.create(doors.call(), row, {}, {"version": 4, "cidr": "10.9.0.0/24"})
    (there,) = subnets_of_network(doors.connection, doors.network(row.uuid))
    subnets.update(doors.call(), row, there, {"name": "first"})
    change_address(doors.connection, "10.9.0.5", owner=host_owner("hv1"))
    subnets.delete(doors.call(), doors.network(row.uuid), there)
    assert doors.jobs == [("floating_ips", {"project": "demo", "network_hosts": ["hv1"]})]


def test_a_shared_pool_or_scope_is_changed_by_its_project_and_administrators(doors: Doors) -> None:
    by_other = doors.call(SHARED, project=OTHER)
    number = pools.create_pool(by_other, {}, {"name": "p", "prefixes": ["10.8.0.0/16"], "shared": True})
    (pool,) = subnet_pool_records.subnet_pools_seen(doors.connection, DEMO)
    with pytest.raises(ForbiddenError, match="disallowed by policy"):
        pools.create_pool(doors.call(), {}, {"name": "p", "prefixes": ["10.9.0.0/16"], "shared": True})
    refused: list[t.Callable[[], object]] = [
        lambda: pools.update_pool(doors.call(), pool, {"name": "x"}),
        lambda: pools.delete_pool(doors.call(), pool),
        lambda: tags.change(doors.call(), number, lambda _tags: ["x"], of=pool),
    ]
    for act in refused:
        with pytest.raises(ForbiddenError, match="another project's"):
            act()
    tags.change(by_other, number, lambda before: [*before, "x"], of=pool)
    pools.update_pool(doors.call(OPERATE), pool, {"name": "x"})
    pools.delete_pool(by_other, pool)
