# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ranges that compute hosts live in, as these have said: refused when they are recorded, and by the scheduler after."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.compute_host import compute_host
from tests.support.rows import add_host

if t.TYPE_CHECKING:
    from tests.unit._ledger.conftest import Run

OFFICE = [("gateway", "192.0.2.1", "eth0"), ("address", "192.0.2.11/24", "eth0"), ("client", "198.51.100.7", "eth0")]
MORE = [
    ("address", "172.17.0.1/16", "docker0"),
    ("libvirt network", "192.168.122.0/24", "virbr0"),
    ("route", "10.8.0.0/24", "tun0"),
    ("address", "fd00:20::11/64", "eth0"),
]
PROVIDERS = {"cidr": "192.0.2.0/24", "gateway": "192.0.2.1", "dhcp": False}  # hosts have no address in it
Listed = t.Iterable[tuple[str, str, str]]


def facts(places: Listed) -> list[dict[str, str]]:
    return [dict(zip(("kind", "cidr", "device"), place)) for place in places]


@pytest.fixture
def hosts(ledger: sa.Engine) -> None:
    with transaction(ledger) as connection:
        add_host(connection, "hv1", facts={})  # of before hosts said so
        add_host(connection, "hv2", facts={"places": facts([*OFFICE, *MORE])})


def refusal(run: Run, operation: str, **args: t.Any) -> str:
    with pytest.raises(ConflictError) as error:
        run(operation, **args)
    return str(error.value)


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize(
    ("network", "place"),
    [
        ({"cidr": "192.0.2.0/24"}, "its gateway 192.0.2.1 (eth0)"),
        ({"cidr": "192.0.2.128/25"}, "its address 192.0.2.11 (eth0)"),  # of which the host has no address
        ({"cidr": "192.0.0.0/16", "dhcp": False}, "its gateway 192.0.2.1 (eth0)"),  # hosts are the router
        ({"cidr": "198.51.100.0/24"}, "the address 198.51.100.7 that it is logged in to from (eth0)"),
        ({"cidr": "172.17.4.0/24"}, "its address 172.17.0.1 (docker0)"),
        ({"cidr": "192.168.122.0/25", "gateway": "192.168.122.1"}, "libvirt's network 192.168.122.0/24 (virbr0)"),
        ({"cidr": "10.8.0.0/16", "vlan": 7, "bridge_interface": "eth1"}, "its route to 10.8.0.0/24 (tun0)"),
        ({"cidr": "10.20.0.0/24", "cidr_v6": "fd00:20::/64"}, "its address fd00:20::11 (eth0)"),
        ({"cidr": "192.0.2.0/24", "vni": 10, "isolated": False}, "its gateway 192.0.2.1 (eth0)"),
        # the hosts' own LAN, by their own bridge, whose router the network would hand out
        ({"cidr": "192.0.2.0/24", "bridge": "eth0"}, "its gateway 192.0.2.1 (eth0)"),
        ({**PROVIDERS, "gateway": "192.0.2.254", "bridge_interface": "eth0"}, "its gateway 192.0.2.1 (eth0)"),
    ],
)
def test_a_network_is_refused_where_a_host_lives(
    run: Run, ledger: sa.Engine, network: dict[str, t.Any], place: str
) -> None:
    message = refusal(run, "network", networks=[{"name": "office", **network}])
    assert message.startswith("network 'office': ") and "compute host 'hv2' lives there, by " in message
    assert place in message
    with reading(ledger) as connection:
        assert connection.execute(sa.select(tables.network)).all() == []


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize(
    "network",
    [
        {"cidr": "10.20.0.0/24"},
        {"cidr": "192.0.2.0/24", "isolated": True},
        {"cidr": "172.17.0.0/24", "vni": 10},  # isolated by itself
        # a provider's network, in which no host has an address
        PROVIDERS,
        {**PROVIDERS, "bridge_interface": "eth1"},
        {**PROVIDERS, "cidr_v6": "fd00:20::/64", "gateway_v6": "fe80::1"},
        # the hosts' LAN, by their own bridge
        {"cidr": "192.0.2.0/24", "gateway": "192.0.2.1", "bridge": "eth0"},
        {"cidr": "192.0.2.0/24", "bridge": "eth0", "reserved": ["192.0.2.1-192.0.2.99"]},
    ],
)
def test_others_are_taken(run: Run, network: dict[str, t.Any]) -> None:
    assert run("network", networks=[{"name": "net", **network}])["changed"]


def test_a_network_that_is_there_changes_in_anything_else(run: Run, ledger: sa.Engine) -> None:
    """What a host has since is no reason to refuse its name servers; its range is looked at when it changes."""
    office = {"name": "office", "cidr": "192.0.2.0/24"}
    run("network", networks=[office])
    with transaction(ledger) as connection:
        add_host(connection, "hv2", facts={"places": facts(OFFICE)})
    assert not run("network", networks=[office])["changed"]
    assert run("network", networks=[{**office, "dns": ["9.9.9.9"]}])["changed"]
    assert "its address 192.0.2.11" in refusal(run, "network", networks=[{**office, "cidr": "192.0.2.128/25"}])
    assert "its gateway" in refusal(run, "network", networks=[{**office, "reserved": ["192.0.2.200"]}])
    run("network", networks=[{**office, "gateway": "192.0.2.1", "dhcp": False}])  # hosts have no address there any more


def test_a_part_of_a_shared_route_is_free(run: Run, ledger: sa.Engine) -> None:
    wide = facts([("route", "10.0.0.0/8", "eth0")])
    with transaction(ledger) as connection:
        add_host(connection, "hv1", facts={"places": wide, "shared_routes": ["10.0.0.0/8"]})
    assert run("network", networks=[{"name": "net", "cidr": "10.20.0.0/24"}])["changed"]
    with transaction(ledger) as connection:
        add_host(connection, "hv2", facts={"places": wide})
    assert "'hv2'" in refusal(run, "network", networks=[{"name": "more", "cidr": "10.21.0.0/24"}])


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize(
    ("pool", "place"),
    [
        ({"cidr": "192.0.2.0/24"}, "its gateway 192.0.2.1 (eth0)"),
        ({"cidr": "192.0.2.11/32"}, "its address 192.0.2.11 (eth0)"),
        ({"cidr": "198.51.100.0/28"}, "198.51.100.7 that it is logged in to from"),
        ({"cidr": "172.17.9.0/28"}, "its address 172.17.0.1 (docker0)"),
        ({"cidr": "192.0.2.0/24", "addresses": ["192.0.2.100-192.0.2.120"]}, None),
        ({"cidr": "192.0.2.0/24", "addresses": ["192.0.2.10-192.0.2.12"]}, "its address 192.0.2.11 (eth0)"),
        ({"cidr": "203.0.113.0/24"}, None),
    ],
)
def test_a_floating_pool_has_nobodys_address(run: Run, pool: dict[str, t.Any], place: str | None) -> None:
    item = {"name": "public", "interface": "eth0", **pool}
    if place is None:
        assert run("floating_pool", floating_pools=[item])["changed"]
    else:
        message = refusal(run, "floating_pool", floating_pools=[item])
        assert "floating pool 'public': compute host 'hv2' lives by " in message and place in message


def reported(ledger: sa.Engine, places: t.Any) -> tuple[bool, t.Any]:
    """Record that hv1 has said this; returns whether that was a change, and its row."""
    report = {"name": "hv1", "vcpus": 4, "memory_mb": 4096, "disk_gb": 100, "places": places}
    with transaction(ledger) as connection:
        done = compute_host(connection, {"compute_hosts": [report]})
        return done["changed"], connection.execute(sa.select(tables.compute_host)).one()


def test_who_asks_is_no_change_of_a_host(ledger: sa.Engine) -> None:
    """Two controllers: no choice is made again because the other one has looked."""

    def seen_by(client: str) -> tuple[bool, int, str]:
        changed, row = reported(ledger, facts([*OFFICE[:2], ("client", client, "eth0")]))
        return changed, row.generation, row.facts["places"][-1]["cidr"]

    changed, generation, client = seen_by("198.51.100.7")
    assert changed and client == "198.51.100.7"
    assert seen_by("198.51.100.8") == (False, generation, "198.51.100.8")
    changed, row = reported(ledger, facts(MORE))
    assert changed and row.generation == generation + 1


def test_what_a_host_says_is_read_by_a_list(run: Run, ledger: sa.Engine) -> None:
    lies = [{"kind": "route", "cidr": "10.0.0.0/8; reboot", "device": "x"}, 7, {"kind": "king", "cidr": "10.0.0.0/8"}]
    _changed, row = reported(ledger, [*lies, *facts(OFFICE)])
    assert row.facts["places"] == facts(OFFICE)
    assert "'hv1'" in refusal(run, "network", networks=[{"name": "net", "cidr": "192.0.2.0/24"}])
