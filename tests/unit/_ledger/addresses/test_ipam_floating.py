# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Floating IPs: pools, whose they are, where they lead, and which hosts have to hear of it."""

from __future__ import annotations

import concurrent.futures
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._addressing.pools import to_int, to_text
from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    NotFoundError,
    NovaliteError,
    QuotaError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_state import server_state
from tests.support.clocks import standing_at
from tests.support.rows import DEMO, OTHER, add_instance, add_project, add_vif
from tests.unit._ledger.conftest import on_postgresql

if t.TYPE_CHECKING:
    from tests.unit._ledger.conftest import Run

NOW = 1_000_000
POOL = {"name": "public", "cidr": "203.0.113.0/29", "interface": "eth0"}


@pytest.fixture(autouse=True)
def clock() -> t.Iterator[list[int]]:
    now = [NOW]
    with standing_at(lambda: now[0]):
        yield now


@pytest.fixture
def cloud(run: Run, ledger: sa.Engine) -> Run:
    """A pool of six addresses; networks in and out, the one without, the other with a gateway of its own."""
    with transaction(ledger) as connection:
        add_project(connection, "other", OTHER)
    run("floating_pool", floating_pools=[POOL])
    networks = [{"name": "in", "cidr": "10.0.0.0/28"}, {"name": "out", "cidr": "10.0.1.0/28", "gateway": "10.0.1.1"}]
    run("network", networks=networks)
    return run


def add_server(
    ledger: sa.Engine, name: str, host: str | None = "hv1", networks: t.Sequence[str] = ("in",), project: str = DEMO
) -> str:
    """A server that runs, with an address on each of its networks; returns its UUID."""
    pool = tables.fixed_ip
    with transaction(ledger) as connection:
        state = "active" if host else "building"
        server = add_instance(connection, name, project_id=project, host=host, vm_state=state)
        for position, network in enumerate(networks):
            network_id = connection.execute(
                sa.select(tables.network.c.id).where(tables.network.c.name == network)
            ).scalar_one()
            nic = add_vif(connection, server, network_id, position=position)
            if host is None:
                continue
            free = sa.select(sa.func.min(pool.c.ip)).where(
                pool.c.network_id == network_id, pool.c.owner.is_(None), pool.c.reserved.is_(None)
            )
            connection.execute(
                sa.update(pool)
                .where(pool.c.network_id == network_id, pool.c.ip == connection.execute(free).scalar_one())
                .values(owner=f"vif:{nic}")
            )
        return server


def rows(ledger: sa.Engine) -> dict[str, tuple[str | None, bool]]:
    """Return who has each address that is allocated, and whether it leads somewhere."""
    table = tables.floating_ip
    with transaction(ledger) as connection:
        floating_ip_rows = connection.execute(sa.select(table).where(table.c.project_id.is_not(None))).all()
    return {to_text(row.address): (row.project_id, row.vif_id is not None) for row in floating_ip_rows}


def addresses(result: dict[str, t.Any]) -> list[str]:
    return [address["address"] for address in result["floating_ips"]]


# --- Pools ----------------------------------------------------------------------------------------------------------


def test_a_pool_has_the_addresses_of_all_hosts_or_those_that_were_named(run: Run) -> None:
    made = run("floating_pool", floating_pools=[POOL, {**POOL, "name": "one", "cidr": "198.51.100.7/32"}])
    assert [pool["addresses"] for pool in made["floating_pools"]] == [["203.0.113.1-203.0.113.6"], ["198.51.100.7"]]
    assert not run("floating_pool", floating_pools=[POOL])["changed"]
    some = {"name": "public", "addresses": ["203.0.113.4/31", "203.0.113.7"]}
    changed = run("floating_pool", floating_pools=[some])
    assert changed["floating_pools"][0]["addresses"] == ["203.0.113.4-203.0.113.5", "203.0.113.7"]
    assert changed["diff"]["before"] == {
        "floating_pools": {
            "public": {"cidr": POOL["cidr"], "interface": "eth0", "addresses": ["203.0.113.1-203.0.113.6"]}
        }
    }
    # another range, all of it
    [moved] = run("floating_pool", floating_pools=[{"name": "public", "cidr": "192.0.2.0/30"}])["floating_pools"]
    assert moved["addresses"] == ["192.0.2.1-192.0.2.2"]
    gone = run("floating_pool", floating_pools=[POOL], state="absent")
    assert gone["changed"] and not run("floating_pool", floating_pools=[POOL], state="absent")["changed"]


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        ({"interface": None}, "'public' does not exist yet: give its interface"),
        ({"cidr": None}, "'public' does not exist yet: give its cidr"),
        ({"cidr": "203.0.113.1/29"}, "has bits set beyond its prefix: write 203.0.113.0/29"),
        ({"cidr": "203.0.0.0/15"}, "has 131072 addresses: a pool has at most a /16"),
        ({"cidr": "2001:db8::/120"}, "is not IPv4"),
        ({"interface": "eth 0"}, "is not an interface name"),
        ({"addresses": []}, "addresses is empty"),
        ({"addresses": ["203.0.113.8"]}, r"addresses '203\.0\.113\.8' is not within 203\.0\.113\.0/29"),
        ({"addresses": ["0.0.0.0-255.255.255.255"]}, "is not within"),
        ({"name": "public "}, "begins or ends with a space"),
    ],
)
def test_a_pool_that_makes_no_sense_is_refused(run: Run, pool: dict[str, t.Any], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        run("floating_pool", floating_pools=[{**POOL, **pool}])


def test_no_two_pools_and_no_network_hand_out_the_same_address(run: Run) -> None:
    run("floating_pool", floating_pools=[POOL])
    with pytest.raises(ConflictError, match=r"203\.0\.113\.4 is in the floating pool 'public' already"):
        run("floating_pool", floating_pools=[{**POOL, "name": "p", "addresses": ["203.0.113.4", "203.0.113.7"]}])
    net = {"name": "net", "cidr": "203.0.113.0/28"}
    with pytest.raises(ConflictError, match=r"0\.113\.1 is in the floating pool 'public' and in the network 'net'"):
        run("network", networks=[net])
    assert run("network", networks=[{**net, "name": "inside", "isolated": True}])["changed"]
    assert run("network", networks=[{**net, "reserved": ["203.0.113.0/29"]}])["changed"]
    with pytest.raises(ConflictError, match="reserve it there"):
        run("network", networks=[{**net, "reserved": []}])
    with pytest.raises(ConflictError, match=r"203\.0\.113\.9 is in the floating pool 'p'"):
        run("floating_pool", floating_pools=[{**POOL, "name": "p", "cidr": "203.0.113.9/32"}])


def test_an_address_that_a_project_has_stays_in_its_pool(cloud: Run, ledger: sa.Engine) -> None:
    cloud("floating_ip", floating_ips=[{"address": "203.0.113.3"}])
    for change in ({"addresses": ["203.0.113.4-203.0.113.6"]}, {"cidr": "192.0.2.0/30"}):
        with pytest.raises(ConflictError, match=r"203\.0\.113\.3 is allocated to the project 'demo': release it first"):
            cloud("floating_pool", floating_pools=[{"name": "public", **change}])
    with pytest.raises(ConflictError, match="release it first"):
        cloud("floating_pool", floating_pools=[{"name": "public"}], state="absent")
    assert cloud("floating_pool", floating_pools=[{"name": "public", "interface": "eth1"}])["changed"]
    add_server(ledger, "web")
    cloud("floating_ip", floating_ips=[{"server": "web"}])
    with pytest.raises(ConflictError, match=r"203\.0\.113\.3 is associated with a server over eth1"):
        cloud("floating_pool", floating_pools=[{"name": "public", "interface": "eth2"}])
    with pytest.raises(ConflictError, match=r"still has the floating IP 203\.0\.113\.3"):
        with transaction(ledger) as connection:
            connection.execute(sa.delete(tables.vif))
            connection.execute(sa.delete(tables.instance))
        cloud("project", projects=[{"name": "demo"}], state="absent")


# --- Allocation -----------------------------------------------------------------------------------------------------


def test_each_item_is_an_address_of_its_own_and_the_same_again(cloud: Run, ledger: sa.Engine) -> None:
    made = cloud("floating_ip", floating_ips=[{}, {"address": "203.0.113.1"}, {}])
    assert addresses(made) == ["203.0.113.2", "203.0.113.1", "203.0.113.3"]
    assert made["hosts"] == [] and made["diff"]["before"] == {"floating_ips": {}}
    again = cloud("floating_ip", floating_ips=[{}, {"address": "203.0.113.1"}, {}])
    assert not again["changed"] and again["floating_ips"] == made["floating_ips"]
    # another project does not get what this one has
    assert addresses(cloud("floating_ip", floating_ips=[{}], project="other")) == ["203.0.113.4"]
    assert rows(ledger)["203.0.113.4"] == (OTHER, False)


def test_check_mode_allocates_nothing(cloud: Run, ledger: sa.Engine) -> None:
    add_server(ledger, "web")
    planned = cloud("floating_ip", floating_ips=[{"server": "web"}], check_mode=True)
    assert addresses(planned) == ["203.0.113.1"] and planned["hosts"] == ["hv1"]
    assert planned["diff"]["after"]["floating_ips"]["203.0.113.1"] == {
        "pool": "public",
        "server": "web",
        "fixed_ip": "10.0.0.1",
        "host": "hv1",
    }
    assert rows(ledger) == {}


@pytest.mark.both_databases
def test_what_was_released_first_is_allocated_first(cloud: Run, clock: list[int]) -> None:
    everything: list[dict[str, str]] = [{} for _ in range(6)]
    cloud("floating_ip", floating_ips=everything)
    with pytest.raises(NovaliteError, match="'public' has no free address left"):
        cloud("floating_ip", floating_ips=[{}], project="other")
    for minutes, address in enumerate(["203.0.113.5", "203.0.113.2", "203.0.113.4"]):
        clock[0] = NOW + 60 * minutes
        assert cloud("floating_ip", floating_ips=[{"address": address}], state="absent")["changed"]
        assert not cloud("floating_ip", floating_ips=[{"address": address}], state="absent")["changed"]
    clock[0] = NOW + 660
    made = cloud("floating_ip", floating_ips=[{}, {}, {}], project="other")
    assert addresses(made) == ["203.0.113.5", "203.0.113.2", "203.0.113.4"]
    assert made["warnings"] == ["floating IP 203.0.113.4 was released 540 s ago"]


@pytest.mark.both_databases
def test_the_quota_bounds_what_a_project_has(cloud: Run, ledger: sa.Engine) -> None:
    cloud("floating_pool", floating_pools=[{**POOL, "name": "more", "cidr": "198.51.100.0/28"}])
    ten = [{"pool": "more"} for _ in range(10)]
    cloud("floating_ip", floating_ips=ten)
    assert not cloud("floating_ip", floating_ips=ten)["changed"]
    with pytest.raises(QuotaError, match="quota exceeded for floating_ips: 11 wanted, 10 allowed"):
        cloud("floating_ip", floating_ips=[*ten, {"pool": "public"}])
    assert len(rows(ledger)) == 10
    cloud("project", projects=[{"name": "demo", "quotas": {"floating_ips": 11}}])
    assert cloud("floating_ip", floating_ips=[{"pool": "public"}])["changed"]


def test_what_another_project_has_is_refused(cloud: Run, ledger: sa.Engine) -> None:
    add_server(ledger, "theirs", project=OTHER)
    cloud("floating_ip", floating_ips=[{"server": "theirs"}], project="other")
    before = rows(ledger)
    for item in ({"address": "203.0.113.1"}, {"address": "203.0.113.1", "server": ""}):
        with pytest.raises(ConflictError, match=r"203\.0\.113\.1 belongs to another project"):
            cloud("floating_ip", floating_ips=[item])
    with pytest.raises(ConflictError, match="belongs to another project: it stays"):
        cloud("floating_ip", floating_ips=[{"address": "203.0.113.1"}], state="absent")
    with pytest.raises(NotFoundError, match="unknown server 'theirs'"):
        cloud("floating_ip", floating_ips=[{"server": "theirs"}])
    assert not cloud("floating_ip", floating_ips=[{"server": "theirs"}], state="absent")["changed"]
    assert rows(ledger) == before


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"address": "203.0.113.7"}], r"203\.0\.113\.7 is outside of any floating pool"),
        ([{"address": "203.0.113.1", "pool": "second"}], "is outside of the floating pool 'second'"),
        ([{"address": "here"}], "is not an IPv4 address"),
        ([{"address": "203.0.113.1"}, {"address": "203.0.113.1"}], "is listed twice"),
        ([{"pool": "privat"}], "unknown floating pool 'privat': there are public, second"),
        ([{}], r"there are 2 floating pools \(public, second\): name one in pool"),
        ([{"server": ""}], "give the address to disassociate"),
        ([{"server": "nobody"}], "unknown server 'nobody': there are web, outside, deleted"),
        ([{"fixed_ip": "10.0.0.1"}], r"fixed_ip 10\.0\.0\.1 needs the server"),
        ([{"server": "web", "fixed_ip": "10.0.0.9"}], r"'web' has no fixed IP 10\.0\.0\.9: it has 10\.0\.0\.1"),
        ([{"server": "outside"}], r"the gateway of the network 'out' is 10\.0\.1\.1, so that no hypervisor routes"),
        ([{"server": "deleted"}], "while it is in task_state deleting"),
        ([{"pool": "public"}, {"server": "outside"}], "no hypervisor routes"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_half_done(
    cloud: Run, ledger: sa.Engine, items: list[dict[str, t.Any]], message: str
) -> None:
    cloud("floating_pool", floating_pools=[{**POOL, "name": "second", "cidr": "198.51.100.0/30"}])
    add_server(ledger, "web")
    add_server(ledger, "outside", networks=["out"])
    add_server(ledger, "deleted")
    with transaction(ledger) as connection:
        table = tables.instance
        connection.execute(sa.update(table).where(table.c.name == "deleted").values(task_state="deleting"))
    with pytest.raises(NovaliteError, match=message):
        cloud("floating_ip", floating_ips=items)
    assert rows(ledger) == {}


def test_releasing_needs_an_address_or_a_server(cloud: Run) -> None:
    for item in ({}, {"server": ""}, {"pool": "public"}):
        with pytest.raises(NovaliteError, match="give the address to release, or the server that it leads to"):
            cloud("floating_ip", floating_ips=[item], state="absent")


@on_postgresql
def test_projects_that_allocate_at_the_same_moment_share_no_address(cloud: Run, ledger: sa.Engine) -> None:
    def allocate(project: str) -> list[str]:
        return addresses(cloud("floating_ip", floating_ips=[{}, {}, {}], project=project))

    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        # the same project twice: the second time it has them
        allocations = list(threads.map(allocate, ["demo", "other", "demo", "other"]))
    assert sorted(allocations[0] + allocations[1]) == [f"203.0.113.{last}" for last in range(1, 7)]
    assert allocations[2:] == allocations[:2]


# --- Association ----------------------------------------------------------------------------------------------------


def test_an_address_is_led_from_server_to_server_and_the_hosts_of_both_are_named(cloud: Run, ledger: sa.Engine) -> None:
    add_server(ledger, "web")
    add_server(ledger, "db", host="hv2", networks=["out", "in"])
    made = cloud("floating_ip", floating_ips=[{"server": "web"}])
    assert made["hosts"] == ["hv1"]
    expected = {"address": "203.0.113.1", "pool": "public", "interface": "eth0", "server": "web", "host": "hv1"}
    assert made["floating_ips"][0].items() >= {**expected, "fixed_ip": "10.0.0.1", "network": "in"}.items()
    again = cloud("floating_ip", floating_ips=[{"server": "web"}])
    assert not again["changed"] and again["hosts"] == [] and again["floating_ips"] == made["floating_ips"]
    # the first interface of db is on a network whose gateway is elsewhere
    moved = cloud("floating_ip", floating_ips=[{"address": "203.0.113.1", "server": "db"}])
    assert moved["hosts"] == ["hv1", "hv2"] and moved["floating_ips"][0]["fixed_ip"] == "10.0.0.2"
    assert moved["diff"]["before"]["floating_ips"]["203.0.113.1"]["server"] == "web"
    # left out, the association stays; an empty text ends it
    assert not cloud("floating_ip", floating_ips=[{"address": "203.0.113.1"}])["changed"]
    ended = cloud("floating_ip", floating_ips=[{"address": "203.0.113.1", "server": ""}])
    assert ended["hosts"] == ["hv2"] and ended["floating_ips"][0]["server"] is None
    assert rows(ledger) == {"203.0.113.1": (DEMO, False)}
    # what the project has and nothing uses is taken before anything new
    assert addresses(cloud("floating_ip", floating_ips=[{"server": "web"}])) == ["203.0.113.1"]
    released = cloud("floating_ip", floating_ips=[{"server": "web"}], state="absent")
    assert released["hosts"] == ["hv1"] and released["floating_ips"] == [] and rows(ledger) == {}


def test_a_server_may_have_several(cloud: Run, ledger: sa.Engine) -> None:
    cloud("network", networks=[{"name": "in2", "cidr": "10.0.2.0/28"}])
    add_server(ledger, "web", networks=["in", "in2"])
    second = cloud("floating_ip", floating_ips=[{"server": "web", "fixed_ip": "10.0.2.1"}])
    assert second["floating_ips"][0]["network"] == "in2"
    # it has one: which of its interfaces, was not said
    assert not cloud("floating_ip", floating_ips=[{"server": "web"}])["changed"]
    both = cloud("floating_ip", floating_ips=[{"server": "web"}, {"server": "web", "fixed_ip": "10.0.0.1"}])
    assert [address["fixed_ip"] for address in both["floating_ips"]] == ["10.0.2.1", "10.0.0.1"]
    with transaction(ledger) as connection:
        [web] = instances_by(connection, names=["web"])
    assert [nic["floating_ips"] for nic in web["nics"]] == [
        [{"address": "203.0.113.2", "interface": "eth0"}],
        [{"address": "203.0.113.1", "interface": "eth0"}],
    ]
    # only those that match are released
    removed = cloud("floating_ip", floating_ips=[{"server": "web", "fixed_ip": "10.0.0.1"}], state="absent")
    assert list(removed["diff"]["before"]["floating_ips"]) == ["203.0.113.2"]


def test_a_server_that_is_being_built_can_be_led_to(cloud: Run, ledger: sa.Engine) -> None:
    add_server(ledger, "web", host=None)
    made = cloud("floating_ip", floating_ips=[{"server": "web"}])
    [led] = made["floating_ips"]
    assert made["hosts"] == [] and (led["server"], led["fixed_ip"]) == ("web", None)


def test_a_server_that_is_deleted_leaves_its_address_to_the_project(cloud: Run, ledger: sa.Engine) -> None:
    server = add_server(ledger, "web")
    cloud("floating_ip", floating_ips=[{"server": "web"}])
    with transaction(ledger) as connection:
        connection.execute(sa.update(tables.instance).values(task_state="deleting"))
        server_state(connection, {"outcomes": [{"uuids": [server], "state": "deleted"}]})
    assert rows(ledger) == {"203.0.113.1": (DEMO, False)}
    add_server(ledger, "web")
    assert addresses(cloud("floating_ip", floating_ips=[{"server": "web"}])) == ["203.0.113.1"]


def test_a_released_address_is_in_the_pool_with_nothing_left_of_it(cloud: Run, ledger: sa.Engine) -> None:
    add_server(ledger, "web")
    cloud("floating_ip", floating_ips=[{"server": "web"}])
    cloud("floating_ip", floating_ips=[{"address": "203.0.113.1"}], state="absent")
    table = tables.floating_ip
    with transaction(ledger) as connection:
        row = connection.execute(sa.select(table).where(table.c.address == to_int("203.0.113.1"))).one()
    assert (row.project_id, row.vif_id, row.released_at) == (None, None, NOW)
