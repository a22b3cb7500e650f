# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixed IPs: one owner each, the same again, oldest first, quarantine, clear refusals, several processes at once."""

from __future__ import annotations

import concurrent.futures
import functools
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._addressing import pools
from ansible_collections.novalite.cloud.plugins.module_utils._addressing.ipv6 import stable_privacy
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import migrations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.secrets import derived_key
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import UNDER_WAY, migration
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import pool_claims
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.addresses import (
    release_addresses,
    release_host_address,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.instance_rows import instance_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.fixed_ip import fixed_ip
from tests.support import rows
from tests.support.clocks import standing_at
from tests.support.rows import add_instance, add_project, add_vif
from tests.unit._ledger.conftest import on_postgresql

pytestmark = pytest.mark.both_databases

NOW = 1_000_000
Network = dict[str, t.Any]
add_network = functools.partial(rows.add_network, cidr="10.20.0.0/29")


@pytest.fixture(autouse=True)
def clock() -> t.Iterator[list[int]]:
    now = [NOW]
    with standing_at(lambda: now[0]):
        yield now


def some(count: int, *networks: Network, host: str | None = "hv1", **nic: t.Any) -> list[dict[str, t.Any]]:
    return [
        {
            "uuid": str(uuid.uuid4()),
            "name": f"web-{number}",
            "host": host,
            "nics": [
                {
                    "id": str(uuid.uuid4()),
                    "mac": f"fa:16:3e:00:00:{number:02x}",
                    "ip": None,
                    "ipv6": None,
                    "dhcp_server": None,
                    "network": network,
                    **nic,
                }
                for network in networks
            ],
        }
        for number in range(1, count + 1)
    ]


def write(connection: sa.Connection, instances: list[dict[str, t.Any]], project: str = "a") -> None:
    """The rows that `server` would have made."""
    if not connection.execute(sa.select(tables.project).where(tables.project.c.id == project)).first():
        add_project(connection, project, project)
    for instance in instances:
        own = {"uuid": instance["uuid"], "host": instance["host"], "project_id": project}
        add_instance(connection, instance["name"], vm_state="building", **own)
        for position, nic in enumerate(instance["nics"]):
            place = {"id": nic["id"], "mac": nic["mac"], "position": position}
            add_vif(connection, instance["uuid"], nic["network"]["id"], **place)


def ips(result: dict[str, t.Any]) -> list[str]:
    return [nic["ip"] for instance in result["instances"] for nic in instance["nics"]]


def nic_ids(instances: list[dict[str, t.Any]]) -> list[str]:
    return [nic["id"] for instance in instances for nic in instance["nics"]]


def owners(connection: sa.Connection) -> dict[str, str]:
    query = sa.select(tables.fixed_ip.c.ip, tables.fixed_ip.c.owner).where(tables.fixed_ip.c.owner.is_not(None))
    return {pools.to_text(row.ip): row.owner for row in connection.execute(query)}


def test_hosts_and_interfaces_get_their_addresses_in_one_call(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        network = add_network(connection)
        instances = [*some(2, network), *some(1, network, host="hv2", mac="fa:16:3e:00:01:00")]
        result = fixed_ip(connection, {"instances": instances})
        assert ips(result) == ["10.20.0.3", "10.20.0.4", "10.20.0.5"]
        servers = [instance["nics"][0]["dhcp_server"] for instance in result["instances"]]
        assert servers == ["10.20.0.1", "10.20.0.1", "10.20.0.2"]
        assert result["changed"] and "warnings" not in result
        assert result["diff"]["after"]["web-2"] == {"private": "10.20.0.4"}
        assert owners(connection)["10.20.0.2"] == "dhcp:hv2"
        assert instances[0]["nics"][0]["ip"] is None  # what was given stays as it was


def test_the_same_interface_gets_the_same_address_and_nothing_changes(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        instances = some(3, add_network(connection))
        first = fixed_ip(connection, {"instances": instances})
        for placed in (instances, first["instances"]):
            again = fixed_ip(connection, {"instances": placed})
            assert not again["changed"] and again["instances"] == first["instances"] and "diff" not in again


def test_a_network_with_a_gateway_and_without_dhcp_needs_no_address_of_the_host(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        routed = add_network(connection, "routed", dhcp=False, gateway="10.20.0.1")
        result = fixed_ip(connection, {"instances": some(1, routed, host=None)})
        assert (ips(result), result["instances"][0]["nics"][0]["dhcp_server"]) == (["10.20.0.2"], None)
        # without a gateway the host is the gateway, DHCP or not
        flat = add_network(connection, "flat", dhcp=False)
        with pytest.raises(NovaliteError, match="'web-1' has no compute host yet"):
            fixed_ip(connection, {"instances": some(1, flat, host=None)})
        result = fixed_ip(connection, {"instances": some(1, flat)})
        assert result["instances"][0]["nics"][0]["dhcp_server"] == "10.20.0.1"


def test_a_pool_that_runs_dry_gives_nothing_to_anybody(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        other = add_network(connection, "other", cidr="10.30.0.0/28")  # has enough, and is asked first
        network = add_network(connection)
        fixed_ip(connection, {"instances": some(2, network)})
        before = owners(connection)
    with pytest.raises(NovaliteError) as caught, transaction(engine) as connection:
        fixed_ip(connection, {"instances": some(5, other, network)})
    assert str(caught.value) == (
        "network 'private' (10.20.0.0/29) has no free address left: 5 needed, 3 free; "
        "delete instances, or use another network"
    )
    with transaction(engine) as connection:
        assert owners(connection) == before


def test_the_longest_free_address_goes_first_and_quarantine_is_broken_only_when_dry(
    engine: sa.Engine, clock: list[int]
) -> None:
    with transaction(engine) as connection:
        network = add_network(connection, dhcp=False, gateway="10.20.0.6")
        instances = some(3, network)
        fixed_ip(connection, {"instances": instances})  # .1 .2 .3
        release_addresses(connection, nic_ids(instances[:1]), NOW - 700)
        release_addresses(connection, nic_ids(instances[1:2]), NOW - 800)
        release_addresses(connection, nic_ids(instances[2:]), NOW - 30)
        result = fixed_ip(connection, {"instances": some(4, network)})
        assert ips(result) == ["10.20.0.4", "10.20.0.5", "10.20.0.2", "10.20.0.1"]
        assert "warnings" not in result
        late = fixed_ip(connection, {"instances": some(1, network)})
        assert ips(late) == ["10.20.0.3"]
        assert late["warnings"] == [
            "network 'private': 10.20.0.3 was released 30 s ago, within its quarantine of 600 s, "
            "for no other address is free"
        ]


def test_a_named_address_is_given_or_refused_for_one_of_three_reasons(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        network = add_network(connection, gateway="10.20.0.1")
        mine, neighbours = some(1, network, requested_ip="10.20.0.4"), some(1, network, requested_ip="10.20.0.5")
        asking = some(1, network, mac="fa:16:3e:00:02:00")
        asking[0]["name"] = "asking"
        neighbours[0]["nics"][0]["mac"] = "fa:16:3e:00:01:00"
        write(connection, mine)
        write(connection, neighbours, "b")
        write(connection, asking)
        assert ips(fixed_ip(connection, {"instances": mine + neighbours})) == ["10.20.0.4", "10.20.0.5"]

        def refusal(address: str) -> str:
            asking[0]["nics"][0]["requested_ip"] = address
            with pytest.raises(NovaliteError) as caught, connection.begin_nested():
                fixed_ip(connection, {"instances": asking})
            return str(caught.value)

        where = "network 'private' (10.20.0.0/29)"
        assert refusal("10.20.1.4") == f"address 10.20.1.4 is outside of {where}: choose one inside, or none"
        assert refusal("10.20.0.1") == f"address 10.20.0.1 is reserved in {where} (gateway): choose another, or none"
        assert refusal("10.20.0.4").startswith(f"address 10.20.0.4 in {where} is in use by instance 'web-1'")
        # the name of another project's instance is not for this one
        assert refusal("10.20.0.5").startswith(f"address 10.20.0.5 in {where} is in use by another instance:")
        assert refusal("10.20.0.2").startswith(f"address 10.20.0.2 in {where} is in use by compute host hv1 itself:")
        assert "is not an IPv4 address" in refusal("10.20.0")

        mine[0]["nics"][0]["requested_ip"] = "10.20.0.6"
        with pytest.raises(ConflictError, match=r"has 10\.20\.0\.4 .* and cannot get 10\.20\.0\.6 as well"):
            fixed_ip(connection, {"instances": mine})


def test_a_named_address_is_kept_for_its_interface_within_one_call(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        network = add_network(connection)
        instances = some(3, network)
        instances[2]["nics"][0]["requested_ip"] = "10.20.0.2"
        assert ips(fixed_ip(connection, {"instances": instances})) == ["10.20.0.3", "10.20.0.4", "10.20.0.2"]


def test_ipv6_follows_from_the_mac_and_is_recorded(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        instances = some(1, add_network(connection, cidr_v6="fd00:1::/64"))
        write(connection, instances)
        result = fixed_ip(connection, {"instances": instances})
        assert result["instances"][0]["nics"][0]["ipv6"] == "fd00:1::f816:3eff:fe00:1"
        assert connection.execute(sa.select(tables.vif.c.ipv6)).scalars().all() == ["fd00:1::f816:3eff:fe00:1"]


def ipv6s(result: dict[str, t.Any]) -> list[str]:
    return [nic["ipv6"] for instance in result["instances"] for nic in instance["nics"]]


def test_stable_private_addresses_stay_and_tell_nobody_the_mac(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        modes = {"cidr_v6": "fd00:1::/64", "ipv6_mode": "stable-privacy"}
        network = add_network(connection, **modes)
        other = add_network(connection, "other", **{**modes, "cidr": "10.30.0.0/29", "cidr_v6": "fd00:2::/64"})
        instances = some(2, network, other, mac=None)
        for number, nic in enumerate(nic for instance in instances for nic in instance["nics"]):
            nic["mac"] = f"fa:16:3e:00:00:{number:02x}"
        planned = ipv6s(fixed_ip(connection, {"instances": instances}))  # no rows yet, as in check mode
        release_addresses(connection, nic_ids(instances), NOW)
        write(connection, instances)
        result = fixed_ip(connection, {"instances": instances})
        assert ipv6s(result) == planned and len({address.partition("::")[2] for address in planned}) == 4
        assert not any("fe00" in address for address in planned)
        assert [address[:6] for address in planned] == ["fd00:1", "fd00:2"] * 2
        assert sorted(connection.execute(sa.select(tables.vif.c.ipv6)).scalars()) == sorted(planned)
        assert not fixed_ip(connection, {"instances": result["instances"]})["changed"]


def test_an_ipv6_address_that_is_taken_gives_way_to_the_next(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        network = add_network(connection, cidr_v6="fd00:1::/64", ipv6_mode="stable-privacy")
        first, second = some(1, network), some(1, network, mac="fa:16:3e:00:01:00")
        second[0]["name"] = "second"
        write(connection, first + second)
        key = derived_key(connection, "ipv6")
        candidates = [
            stable_privacy("fd00:1::/64", second[0]["nics"][0]["id"], network["uuid"], key, count) for count in range(4)
        ]
        nic, gateway = nic_ids(first)[0], sa.update(tables.network)
        connection.execute(sa.update(tables.vif).where(tables.vif.c.id == nic).values(ipv6=candidates[0]))
        connection.execute(gateway.values(gateway_v6=candidates[1]))
        assert ipv6s(fixed_ip(connection, {"instances": second})) == [candidates[2]]


def test_an_eui64_address_that_is_taken_is_refused(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        network = add_network(connection, cidr_v6="fd00:1::/64", gateway_v6="fd00:1::f816:3eff:fe00:1")
        with pytest.raises(ConflictError, match=r"IPv6 address fd00:1::f816:3eff:fe00:1 in network 'private', which"):
            fixed_ip(connection, {"instances": some(1, network)})


def test_who_had_an_address_gets_it_again_unless_it_went_to_another(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        network = add_network(connection)
        instances = some(2, network)
        write(connection, instances)
        first = ips(fixed_ip(connection, {"instances": instances}))  # .2 .3, and .1 for the host
        release_addresses(connection, nic_ids(instances), NOW)
        assert release_host_address(connection, network["id"], "hv1", NOW)
        again = fixed_ip(connection, {"instances": list(reversed(instances))})
        assert ips(again) == list(reversed(first)) and "warnings" not in again and len(owners(connection)) == 3
        assert again["instances"][0]["nics"][0]["dhcp_server"] == "10.20.0.1"
        release_addresses(connection, nic_ids(instances), NOW + 1)
        named = some(1, network, requested_ip=first[0])
        fixed_ip(connection, {"instances": named})
        assert ips(fixed_ip(connection, {"instances": instances})) == ["10.20.0.4", first[1]]
        # of two that it left behind, the one it had last
        release_addresses(connection, nic_ids(instances) + nic_ids(named), NOW + 2)
        release_addresses(connection, nic_ids(instances), NOW + 3)
        assert ips(fixed_ip(connection, {"instances": instances})) == ["10.20.0.4", first[1]]


@pytest.mark.parametrize(("last_owner", "again"), [("vif:own", True), ("vif:other", False)])
def test_what_another_had_between_the_look_and_the_claim_is_not_had_again(
    engine: sa.Engine, last_owner: str, again: bool
) -> None:
    """On PostgreSQL another controller may take the address meanwhile, and give it back."""
    address = pools.to_int("10.20.0.3")
    with transaction(engine) as connection:
        network = add_network(connection, "private")
        rows.change_address(connection, "10.20.0.3", last_owner=last_owner, released_at=NOW)
        claimed = pool_claims.claim_again(connection, network["id"], {"vif:own": address})
    assert claimed == ({"vif:own": address} if again else {})


def test_check_mode_plans_without_rows_and_leaves_nothing(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        network = add_network(connection, cidr_v6="fd00:1::/64")
    with transaction(engine, check_mode=True) as connection:
        planned = fixed_ip(connection, {"instances": some(2, network)})
        assert ips(planned) == ["10.20.0.2", "10.20.0.3"]
    with transaction(engine) as connection:
        assert owners(connection) == {}


def test_an_unknown_network_is_named(engine: sa.Engine) -> None:
    with transaction(engine) as connection, pytest.raises(NotFoundError, match="no network with the id 77"):
        fixed_ip(connection, {"instances": some(1, {"id": 77, "name": "gone"})})


def test_the_hosts_own_address_stays_as_long_as_an_instance_needs_it(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        network = add_network(connection)
        instances = some(2, network)
        write(connection, instances)
        fixed_ip(connection, {"instances": instances})
        assert release_addresses(connection, nic_ids(instances[:1]), NOW) == 1
        assert not release_host_address(connection, network["id"], "hv1", NOW)
        assert release_addresses(connection, nic_ids(instances), NOW) == 1
        assert release_host_address(connection, network["id"], "hv1", NOW)
        assert not release_host_address(connection, network["id"], "hv1", NOW)
        assert owners(connection) == {}


@pytest.mark.parametrize("status", [*UNDER_WAY, "finished", "error"])
@pytest.mark.parametrize("end", ["source_host", "dest_host"])
def test_the_hosts_own_address_stays_for_an_instance_on_its_way(engine: sa.Engine, status: str, end: str) -> None:
    """To the host, or back to it: the instance itself is recorded on the other one."""
    with transaction(engine) as connection:
        network = add_network(connection)
        (server,) = instances = some(1, network)
        write(connection, instances)
        fixed_ip(connection, {"instances": instances})
        connection.execute(sa.update(tables.instance).values(host="hv2"))
        (row,) = instance_rows(connection, tables.instance.c.uuid == server["uuid"])
        migrations.insert(connection, "migrate", row)
        ends = {"source_host": "hv2", "dest_host": "hv2", end: "hv1"}
        connection.execute(sa.update(migration).values(status=status, **ends))
        assert release_host_address(connection, network["id"], "hv1", NOW) is (status not in UNDER_WAY)


@on_postgresql
def test_the_hosts_own_address_stays_for_an_instance_that_arrives_just_then(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        network = add_network(connection)
        first, second = some(1, network), some(1, network, mac="fa:16:3e:00:01:00")
        second[0]["name"] = "second"
        write(connection, first + second)
        fixed_ip(connection, {"instances": first})

    def leave() -> bool:
        with transaction(engine) as leaving:
            release_addresses(leaving, nic_ids(first), NOW)
            return release_host_address(leaving, network["id"], "hv1", NOW)

    def waits() -> int:
        with transaction(engine) as watching:  # a new one each time: the view stays as it was within a transaction
            query = sa.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            return watching.execute(query).scalar_one()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with transaction(engine) as arriving:
            server = fixed_ip(arriving, {"instances": second})["instances"][0]["nics"][0]["dhcp_server"]
            left = pool.submit(leave)
            while not left.done() and not waits():
                time.sleep(0.01)
        assert left.result(30) is False
    with transaction(engine) as connection:
        assert owners(connection)[server] == "dhcp:hv1"
