# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ForbiddenError,
    NovaliteError,
    PortLedToError,
    UnreachableError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.floating_pools import write_floating_pools
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import floating_ips
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import (
    Port,
    floating_ips_of,
    ports_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.records import floating_ip
from tests.support.rows import DEMO, OTHER, add_network, add_vif, change_address
from tests.unit._ledger.operations.conftest import Doors

CHOOSE = "network:floating_ips:choose"
FIRST, LAST = "203.0.113.1", "203.0.113.6"


def make_pool(doors: Doors) -> None:
    item = {"name": "public", "cidr": "203.0.113.0/29", "addresses": None, "interface": "eth0"}
    write_floating_pools(doors.connection, [item])


def port_of_server(doors: Doors, name: str, address: str) -> Port:
    """A port with this address, of a server on the host hv1."""
    row = add_network(doors.connection, name, address.rpartition(".")[0] + ".0/24")
    number = doors.server_on(doors.network(row["uuid"]), name)
    change_address(doors.connection, address, owner=f"vif:{number}")
    (port,) = ports_of(doors.connection, DEMO, number)
    return port


def test_a_project_chooses_no_address_but_one_that_it_had_last(doors: Doors) -> None:
    make_pool(doors)
    with pytest.raises(ForbiddenError):
        floating_ips.create(doors.call(), {}, {"address": LAST})
    with pytest.raises(ForbiddenError):
        floating_ips.check_choices(doors.call(), DEMO, ["no address", LAST])
    floating_ips.check_choices(doors.call(CHOOSE), DEMO, [LAST])
    made = floating_ips.create(doors.call(), {}, {})
    floating_ips.release(doors.call(), made)
    assert floating_ips.create(doors.call(), {}, {"address": made.address}).address == made.address
    with pytest.raises(NovaliteError, match="no address"):
        floating_ips.create(doors.call(), {}, {"address": "no address"})


def test_an_address_that_the_project_has_is_not_given_again(doors: Doors) -> None:
    make_pool(doors)
    made = floating_ips.create(doors.call(), {}, {"description": "of the mail server"})
    assert made.description == "of the mail server"
    with pytest.raises(floating_ips.AddressHeldError):
        floating_ips.create(doors.call(), {}, {"address": made.address})


def test_an_administrator_gives_another_project_an_address(doors: Doors) -> None:
    make_pool(doors)
    with pytest.raises(ForbiddenError):
        floating_ips.create(doors.call(), {"project_id": OTHER}, {})
    floating_ips.create(doors.call("network:create:other_project"), {"project_id": OTHER}, {})
    assert [len(floating_ips_of(doors.connection, project)) for project in (DEMO, OTHER)] == [0, 1]


def test_hosts_learn_where_an_address_leads_to(doors: Doors) -> None:
    make_pool(doors)
    port = port_of_server(doors, "web", "10.20.0.5")
    made = floating_ips.create(doors.call(), {}, {"port": port})
    assert (made.vif_id, made.fixed_ip) == (port.id, "10.20.0.5")
    job = {"project": "demo", "network_hosts": ["hv1"], "holders": ["hv1"]}
    assert doors.jobs == [("floating_ips", job)]
    floating_ips.associate(doors.call(), made, port)  # it does already
    assert len(doors.jobs) == 1
    after = floating_ips.update(doors.call(), made, {"port": None, "description": "free"})
    assert (after.vif_id, after.description) == (None, "free")
    assert doors.jobs[1:] == [("floating_ips", {**job, "holders": []})]
    floating_ips.release(doors.call(), after)
    assert len(doors.jobs) == 2, "no host had it any more"


def test_a_port_has_one_address_of_a_pool_and_a_door_may_ask_for_a_free_one(doors: Doors) -> None:
    make_pool(doors)
    port, other = port_of_server(doors, "web", "10.20.0.5"), port_of_server(doors, "db", "10.21.0.5")
    made = floating_ips.create(doors.call(), {}, {"port": port})
    with pytest.raises(PortLedToError):
        floating_ips.create(doors.call(), {}, {"port": port})
    with pytest.raises(floating_ips.LeadsError):
        floating_ips.associate(doors.call(), made, other, moves=False)
    with pytest.raises(floating_ips.LeadsError):
        floating_ips.release(doors.call(), made, leading=False)
    floating_ips.associate(doors.call(), made, other)
    floating_ips.release(doors.call(), made)
    assert all(row.id != made.id for row in floating_ips_of(doors.connection, DEMO))


def by_playbook(doors: Doors, **item: str) -> None:
    """Do what the module `floating_ip` does."""
    items = [{**dict.fromkeys(("address", "pool", "server", "fixed_ip")), **item}]
    floating_ip(doors.connection, {"state": "present", "project": "demo", "floating_ips": items})


def test_a_playbook_leads_no_second_address_to_a_port(doors: Doors) -> None:
    make_pool(doors)
    floating_ips.create(doors.call(), {}, {"port": port_of_server(doors, "web", "10.20.0.5")})
    further = floating_ips.create(doors.call(), {}, {})
    with pytest.raises(PortLedToError):
        by_playbook(doors, address=further.address, server="web")


def test_a_projects_own_network_needs_a_router_to_the_pool(doors: Doors) -> None:
    make_pool(doors)
    row = add_network(doors.connection, "mine", "10.22.0.0/24", owner=DEMO, tenant=True)
    number = doors.server_on(doors.network(row["uuid"]))
    change_address(doors.connection, "10.22.0.5", owner=f"vif:{number}")
    (port,) = ports_of(doors.connection, DEMO, number)
    with pytest.raises(UnreachableError):
        floating_ips.create(doors.call(), {}, {"port": port})
    with pytest.raises(UnreachableError):
        by_playbook(doors, server="web")


def test_a_playbook_leads_an_address_to_the_interface_that_it_reaches(doors: Doors) -> None:
    """A server's first interface may be in a network of its project that no router leads out of."""
    make_pool(doors)
    closed = add_network(doors.connection, "closed", "10.22.0.0/24", owner=DEMO, tenant=True)
    first = doors.server_on(doors.network(closed["uuid"]))
    (port,) = ports_of(doors.connection, DEMO, first)
    public = add_network(doors.connection, "office", "10.23.0.0/24")
    second = add_vif(doors.connection, str(port.instance_uuid), doors.network(public["uuid"]).id, position=1)
    for address, number in (("10.22.0.5", first), ("10.23.0.5", second)):
        change_address(doors.connection, address, owner=f"vif:{number}")
    by_playbook(doors, server="web")
    (row,) = floating_ips_of(doors.connection, DEMO)
    assert (row.vif_id, row.fixed_ip) == (second, "10.23.0.5")
