# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ForbiddenError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.tenant_networks import TenantError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import (
    ports,
    routers,
    security_groups,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.ports import PortValues
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.state_rules import StateError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import (
    Port,
    ports_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.router_records import routers_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_records import (
    subnets_of_network,
)
from tests.support.rows import DEMO, OTHER, add_network
from tests.unit._ledger.operations.conftest import Doors

CHOOSE, BINDING, OPERATE, FOR_ALL = (
    *("network:ports:choose", "network:ports:binding"),
    *("network:operate", "network:create:shared"),
)


def seen(doors: Doors, number: str) -> Port:
    (row,) = ports_of(doors.connection, None, number)
    return row


@pytest.mark.parametrize(
    ("entry", "values"),
    [
        (CHOOSE, {"fixed_ips": [{"ip_address": "10.20.0.7"}]}),
        (CHOOSE, {"mac_address": "52:54:00:00:00:07"}),
        (CHOOSE, {"allowed_address_pairs": [{"ip_address": "10.20.0.9"}]}),
        (CHOOSE, {"port_security_enabled": True}),
        (BINDING, {"binding": {"host_id": "hv1"}}),
        (BINDING, {"binding": {"profile": {"a": "b"}}}),
        (OPERATE, {"device_owner": "network:dhcp"}),
    ],
)
def test_each_choice_on_a_shared_network_has_its_entry(doors: Doors, entry: str, values: PortValues) -> None:
    row = doors.network(add_network(doors.connection)["uuid"])
    others = {CHOOSE, BINDING, OPERATE} - {entry}
    with pytest.raises(ForbiddenError):
        ports.create(doors.call(*others), {}, row, values)
    made = seen(doors, ports.create(doors.call(), {}, row, {}))
    if "mac_address" not in values:
        with pytest.raises(ForbiddenError):
            ports.update(doors.call(*others), row, made, values)
    assert ports.create(doors.call(entry), {}, row, values)


def test_a_project_chooses_on_its_own_network(doors: Doors) -> None:
    row = doors.network(add_network(doors.connection, owner=DEMO)["uuid"])
    number = ports.create(doors.call(), {}, row, {"fixed_ips": [{"ip_address": "10.20.0.7"}]})
    assert seen(doors, number).ip == "10.20.0.7"
    with pytest.raises(ForbiddenError):
        ports.create(doors.call(), {"project_id": OTHER}, row, {})
    made = ports.create(doors.call("network:create:other_project", CHOOSE), {"project_id": OTHER}, row, {})
    assert seen(doors, made).project_id == OTHER
    with pytest.raises(ForbiddenError, match="mac_address"):
        ports.update(doors.call(), row, seen(doors, number), {"mac_address": "52:54:00:00:00:07"})
    ports.update(doors.call(FOR_ALL), row, seen(doors, number), {"mac_address": "52:54:00:00:00:07"})
    assert seen(doors, number).mac == "52:54:00:00:00:07"


def test_what_a_router_or_a_server_has_is_taken_from_it_first(doors: Doors) -> None:
    row = doors.network(add_network(doors.connection, owner=DEMO, tenant=True)["uuid"])
    (subnet,) = subnets_of_network(doors.connection, row)
    (router,) = routers_of(doors.connection, DEMO, routers.create(doors.call(), {}, {}))
    of_router = ports.create(doors.call(), {}, row, {})
    routers.add_port(doors.call(), router, seen(doors, of_router))
    changes: list[PortValues] = [{"device_id": ""}, {"device_owner": ""}, {"fixed_ips": []}]
    for values in changes:
        with pytest.raises(TenantError, match="router's"):
            ports.update(doors.call(), row, seen(doors, of_router), values)
    ports.update(doors.call(), row, seen(doors, of_router), {"name": subnet.id})
    of_server = doors.server_on(row)
    with pytest.raises(TenantError, match="server's"):
        ports.update(doors.call(), row, seen(doors, of_server), {"admin_state_up": False})


def test_a_servers_port_is_pulled_out_by_those_who_may_do_that(doors: Doors) -> None:
    row = doors.network(add_network(doors.connection)["uuid"])
    number = doors.server_on(row)
    with pytest.raises(ForbiddenError):
        ports.delete(doors.call(), seen(doors, number))
    ports.delete(doors.call("compute:interfaces:write"), seen(doors, number))
    assert [kind for kind, _variables in doors.jobs] == ["interface_detach"]


def test_a_servers_further_addresses_are_chosen_by_the_entry(doors: Doors) -> None:
    row = doors.network(add_network(doors.connection)["uuid"])
    port = seen(doors, ports.create(doors.call(), {}, row, {}))
    with pytest.raises(ForbiddenError):
        ports.change_fixed_ips(doors.call(), port, new=[{"ip_address": "10.20.0.77"}])
    ports.change_fixed_ips(doors.call(CHOOSE), port, new=[{"ip_address": "10.20.0.77"}])
    assert "10.20.0.77" in seen(doors, port.id).more_ips


@pytest.mark.parametrize("adopted", [False, True])
def test_an_adopted_server_keeps_its_groups(doors: Doors, adopted: bool) -> None:
    """Its interfaces are not novalite's; Compute and EC2 refuse it, too."""
    row = doors.network(add_network(doors.connection)["uuid"])
    number = doors.server_on(row)
    if adopted:
        doors.connection.execute(sa.update(tables.instance).values(adopted={"domain": "theirs"}))
    group = security_groups.create(doors.call(), {}, "web", "")
    refused = pytest.raises(StateError, match="adopted") if adopted else contextlib.nullcontext()
    with refused:
        ports.update(doors.call(), row, seen(doors, number), {"security_groups": [group]})
    assert (group in seen(doors, number).security_groups) is not adopted
