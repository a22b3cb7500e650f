# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import concurrent.futures
import ipaddress
import typing as t

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._rules.pools import parse_cidr, parse_ranges, ranges
from tests.support.rows import DEMO, a_network, add_instance, add_vif
from tests.unit._ledger.conftest import on_postgresql

if t.TYPE_CHECKING:
    from tests.unit._ledger.conftest import Run

NET = {"name": "net", "cidr": "10.20.0.0/24"}


def number(address: str) -> int:
    return int(ipaddress.IPv4Address(address))


def pool(ledger: sa.Engine) -> dict[str, str | None]:
    """Every address that has a row, and as what it is reserved."""
    table = tables.fixed_ip
    with reading(ledger) as connection:
        rows = connection.execute(sa.select(table.c.ip, table.c.reserved).order_by(table.c.ip)).all()
    return {str(ipaddress.IPv4Address(row.ip)): row.reserved for row in rows}


def take(ledger: sa.Engine, address: str, owner: str = "vif:1") -> None:
    table = tables.fixed_ip
    with transaction(ledger) as connection:
        done = connection.execute(sa.update(table).where(table.c.ip == number(address)).values(owner=owner))
        assert done.rowcount == 1


def test_a_network_is_made_with_its_pool(run: Run, ledger: sa.Engine) -> None:
    made = run("network", networks=[{**NET, "gateway": "10.20.0.1", "reserved": ["10.20.0.8-10.20.0.9", "10.20.0.1"]}])
    [network] = made["networks"]
    assert made["diff"]["before"] == {"networks": {}}
    assert (network["bridge"], network["dhcp"], network["domain"]) == ("br100", True, "novalocal")
    assert network["reserved"] == ["10.20.0.8-10.20.0.9"]
    addresses = pool(ledger)
    assert len(addresses) == 256
    assert {address: role for address, role in addresses.items() if role} == {
        "10.20.0.0": "network",
        "10.20.0.1": "gateway",
        "10.20.0.8": "user",
        "10.20.0.9": "user",
        "10.20.0.255": "broadcast",
    }


def test_a_network_is_made_once_and_changes_only_in_what_was_said(run: Run) -> None:
    full = {
        **NET,
        "reserved": ["10.20.0.64/30"],
        "dns": ["2001:DB8::0001", "9.9.9.9"],
        "cidr_v6": "fd00:20::/64",
        "gateway_v6": "fe80::1",
        "mtu": 1450,
        "dhcp": False,
        "vlan": 7,
        "bridge_interface": "eth1",
    }
    made = run("network", networks=[full])
    assert made["networks"][0]["bridge"] == "br7"
    assert made["networks"][0]["dns"] == ["2001:db8::1", "9.9.9.9"]
    for same in (full, NET, {"name": "net"}, {"name": "net", "reserved": ["10.20.0.67", "10.20.0.64-10.20.0.66"]}):
        assert not run("network", networks=[same])["changed"]
    changed = run("network", networks=[{"name": "net", "mtu": 1400, "gateway_v6": ""}])
    assert changed["networks"][0] == {**made["networks"][0], "mtu": 1400, "gateway_v6": None}


def test_check_mode_fills_no_pool(run: Run, ledger: sa.Engine) -> None:
    assert run("network", networks=[NET], check_mode=True)["changed"]
    assert pool(ledger) == {}


def test_what_is_reserved_can_change_around_what_is_in_use(run: Run, ledger: sa.Engine) -> None:
    run("network", networks=[{**NET, "reserved": ["10.20.0.8-10.20.0.9"]}])
    take(ledger, "10.20.0.5")
    run("network", networks=[{"name": "net", "gateway": "10.20.0.254", "reserved": ["10.20.0.9", "10.20.0.10"]}])
    addresses = pool(ledger)
    assert {address for address, role in addresses.items() if role == "user"} == {"10.20.0.9", "10.20.0.10"}
    assert addresses["10.20.0.254"] == "gateway"
    with pytest.raises(ConflictError, match=r"10\.20\.0\.5 is in use"):
        run("network", networks=[{"name": "net", "reserved": ["10.20.0.4-10.20.0.5"]}])
    assert pool(ledger) == addresses


def test_bridges_are_numbered_around_those_that_are_taken(run: Run) -> None:
    made = run(
        "network",
        networks=[
            {"name": "a", "cidr": "10.0.0.0/24"},
            {"name": "b", "cidr": "10.0.1.0/24", "vlan": 101, "bridge_interface": "eth1", "bridge": "brlan"},
            {"name": "c", "cidr": "10.0.2.0/24"},
        ],
    )
    assert [network["bridge"] for network in made["networks"]] == ["br100", "brlan", "br102"]


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"name": "n"}, "'n' does not exist yet: give its cidr"),
        ({"cidr": "10.20.0.1/24"}, "has bits set beyond its prefix: write 10.20.0.0/24"),
        ({"cidr": "10.20.0.0"}, "is not an address range"),
        ({"cidr": "ten/8"}, "is not an address range"),
        ({"cidr": "fd00::/64"}, "is not IPv4"),
        ({"cidr": "10.0.0.0/15"}, "must lie between /16 and /30"),
        ({"cidr": "10.0.0.0/31"}, "must lie between /16 and /30"),
        ({"cidr": "224.0.0.0/24"}, "no host may use"),
        ({"cidr": "127.0.0.0/24"}, "no host may use"),
        ({"cidr": "0.0.0.0/16"}, "no host may use"),
        ({"cidr": "169.254.0.0/16"}, "no host may use"),
        ({"gateway": "10.21.0.1"}, "is not a host's address in 10.20.0.0/24"),
        ({"gateway": "10.20.0.255"}, "is not a host's address in"),
        ({"gateway": "first"}, "is not an IP address"),
        ({"cidr_v6": "fd00::/48"}, "must have a prefix of /64"),
        ({"cidr_v6": "fe80::/64"}, "no host may use"),
        ({"gateway_v6": "fd00::1"}, "needs a cidr_v6"),
        ({"cidr_v6": "fd00::/64", "gateway_v6": "fd01::1"}, "neither an address in fd00::/64 nor link-local"),
        ({"reserved": ["10.21.0.1"]}, "is not within 10.20.0.0/24"),
        ({"reserved": ["10.20.0.9-10.20.0.1"]}, "ends before it begins"),
        ({"reserved": ["10.20.0.0/24"]}, "nothing is left for instances"),
        ({"bridge": "br100; reboot"}, "is not an interface name"),
        ({"bridge": "a" * 16}, "is not an interface name"),
        ({"bridge": ".."}, "is not an interface name"),
        ({"bridge": "eth1", "bridge_interface": "eth1"}, "are both 'eth1'"),
        ({"vlan": 7}, "vlan 7 needs the bridge_interface"),
        ({"manager": "vlan"}, "vlan 100 needs the bridge_interface"),
        ({"vlan": 4095, "bridge_interface": "eth1"}, "vlan 4095 is out of range"),
        ({"vlan": 0, "bridge_interface": "eth1"}, "vlan 0 is out of range"),
        ({"vlan": 10**30, "bridge_interface": "eth1"}, f"vlan {10**30} is out of range"),
        ({"vni": 0}, "vni 0 is out of range"),
        ({"vni": 2**24}, "vni 16777216 is out of range"),
        ({"vni": 1, "vlan": 1, "bridge_interface": "eth1"}, "vni 1 goes with the manager vxlan, and it has vlan"),
        ({"vlan": 7, "manager": "flat_dhcp"}, "vlan 7 goes with the manager vlan, and it has flat_dhcp"),
        ({"vni": 7, "bridge_interface": "eth1"}, "leave bridge_interface 'eth1' out"),
        ({"manager": "flat", "dhcp": True}, "the manager flat has no DHCP"),
        ({"manager": "flat_dhcp", "dhcp": False}, "the manager flat_dhcp has DHCP"),
        ({"gateway": "10.20.0.1", "snat": True}, "the guests' gateway is 10.20.0.1"),
        ({"cidr": "10.0.0.0/8"}, "has 16777216 addresses: a pool must lie between /16 and /30"),
        ({"gateway": "10.20.0.0"}, "is not a host's address in"),
        ({"cidr_v6": "fd00::/64", "gateway_v6": "fd00::a14:7"}, "among the hypervisors' own addresses, fd00::a14:0"),
        ({"ntp": ["pool.ntp.org"]}, "ntp 'pool.ntp.org' is not an IP address"),
        ({"ntp": ["9.9.9.9"] * 9}, "9 NTP servers: 8 is the limit"),
        ({"mtu": 500}, "mtu 500 is out of range"),
        ({"mtu": 1279, "cidr_v6": "fd00::/64"}, "mtu 1279 is out of range"),
        ({"lease_seconds": 60}, "lease_seconds 60 is out of range"),
        ({"domain": "nova local"}, "is not a domain name"),
        ({"domain": ".".join(["a" * 63] * 4)}, "is not a domain name"),
        ({"dns": ["dns.example.com"]}, "is not an IP address"),
        ({"dns": ["9.9.9.9"] * 9}, "8 is the limit"),
    ],
)
def test_a_network_that_makes_no_sense_is_refused(run: Run, network: dict[str, t.Any], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        run("network", networks=[network if "name" in network else {**NET, **network}])


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"cidr": "10.20.0.128/25"}, "cidr 10.20.0.128/25 overlaps 10.20.0.0/24 of the network 'net'"),
        ({"cidr": "10.20.0.0/16"}, "overlaps"),
        ({"cidr": "10.21.0.0/24", "cidr_v6": "fd00::/64"}, "cidr_v6 fd00::/64 overlaps"),
        ({"cidr": "10.21.0.0/24", "bridge": "br7"}, "bridge br7 belongs to the network 'net'"),
        ({"cidr": "10.21.0.0/24", "bridge": "b", "vlan": 7, "bridge_interface": "e"}, "vlan 7 belongs to"),
    ],
)
def test_what_another_network_has_is_taken(run: Run, network: dict[str, t.Any], message: str) -> None:
    run("network", networks=[{**NET, "cidr_v6": "fd00::/64", "vlan": 7, "bridge_interface": "eth1"}])
    with pytest.raises(ConflictError, match=message):
        run("network", networks=[{"name": "other", **network}], project="demo")


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({}, {"manager": "flat_dhcp", "bridge": "br100", "dhcp": True, "isolated": False, "snat": True, "mtu": None}),
        ({"dhcp": False}, {"manager": "flat", "bridge": "br100", "snat": False}),
        ({"manager": "flat", "snat": True}, {"dhcp": False, "snat": True}),
        ({"vlan": 7, "bridge_interface": "eth1"}, {"manager": "vlan", "bridge": "br7", "dhcp": True, "snat": True}),
        ({"manager": "vlan", "bridge_interface": "eth1"}, {"vlan": 100, "bridge": "br100", "isolated": False}),
        (
            {"manager": "vxlan"},
            {"vni": 10000, "bridge": "br10000", "isolated": True, "mtu": 1450, "dhcp": True, "snat": True},
        ),
        ({"vni": 77, "isolated": False, "mtu": 8950}, {"manager": "vxlan", "isolated": False, "mtu": 8950}),
        ({"manager": "vxlan", "gateway": "10.20.0.1", "dhcp": False}, {"snat": False, "dhcp": False}),
        ({"cidr_v6": "fd00::/64", "gateway_v6": "fd00::1", "ipv6_mode": "stable-privacy"}, {"manager": "flat_dhcp"}),
    ],
)
def test_the_manager_decides_what_was_not_said(run: Run, options: dict[str, t.Any], made: dict[str, t.Any]) -> None:
    [network] = run("network", networks=[{**NET, **options}])["networks"]
    assert {key: network[key] for key in made} == made
    assert not run("network", networks=[{**NET, **options}])["changed"]
    assert not run("network", networks=[NET if options.get("dhcp") is None else {**NET, "dhcp": False}])["changed"]


def test_numbers_and_bridges_are_given_out_around_those_that_are_taken(run: Run) -> None:
    lan = {"bridge_interface": "eth1"}
    made = run(
        "network",
        networks=[
            {"name": "a", "cidr": "10.0.0.0/24"},  # br100: no VLAN may have it
            {"name": "b", "cidr": "10.0.1.0/24", "vlan": 101, **lan},
            {"name": "c", "cidr": "10.0.2.0/24", "manager": "vlan", **lan},
            {"name": "d", "cidr": "10.0.3.0/24", "manager": "vlan", "bridge": "brd", **lan},
            {"name": "e", "cidr": "10.0.4.0/24", "vni": 10000},
            {"name": "f", "cidr": "10.0.4.0/24", "manager": "vxlan"},
        ],
    )["networks"]
    assert [network["vlan"] for network in made] == [None, 101, 102, 100, None, None]
    assert [network["vni"] for network in made] == [None, None, None, None, 10000, 10001]
    assert [network["bridge"] for network in made] == ["br100", "br101", "br102", "brd", "br10000", "br10001"]
    for number in ({"vni": 10001}, {"vlan": 102, **lan}):
        [(key, value), *_rest] = number.items()
        with pytest.raises(ConflictError, match=f"{key} {value} belongs to the network"):
            run("network", networks=[{"name": "x", "cidr": "10.9.0.0/24", "bridge": "brx", **number}])


def test_the_last_vlan_is_given_out_and_no_other_after_it(run: Run, ledger: sa.Engine) -> None:
    with transaction(ledger) as connection:
        rows = [a_network(str(vlan), "10.9.0.0/30", vlan=vlan, isolated=True) for vlan in range(100, 4094)]
        connection.execute(sa.insert(tables.network), rows)
    net = {"manager": "vlan", "bridge_interface": "eth1"}
    assert run("network", networks=[{**NET, **net}])["networks"][0]["vlan"] == 4094
    with pytest.raises(NovaliteError, match="every vlan from 100 to 4094 is taken"):
        run("network", networks=[{"name": "more", "cidr": "10.21.0.0/24", **net}])


def test_only_networks_that_are_isolated_overlap(run: Run) -> None:
    run("network", networks=[NET])
    ours = {"name": "inside", "cidr": "10.20.0.0/16", "manager": "vxlan", "cidr_v6": "fd00::/64"}
    for project in ("demo", None):
        assert run("network", networks=[ours], project=project)["changed"]
    with pytest.raises(ConflictError, match=r"cidr 10\.20\.0\.0/16 overlaps 10\.20\.0\.0/24 of the network 'net'"):
        run("network", networks=[{"name": "inside", "isolated": False}])


def test_a_network_can_change_its_manager_until_it_is_used(run: Run, ledger: sa.Engine) -> None:
    [network] = run("network", networks=[NET])["networks"]
    changed = run("network", networks=[{"name": "net", "manager": "vxlan"}])["networks"][0]
    assert changed == {**network, "manager": "vxlan", "vni": 10000, "isolated": True, "mtu": 1450}
    changed = run("network", networks=[{"name": "net", "vlan": 8, "bridge_interface": "eth1"}])["networks"][0]
    assert (changed["manager"], changed["vlan"], changed["vni"], changed["isolated"]) == ("vlan", 8, None, False)
    changed = run("network", networks=[{"name": "net", "manager": "flat"}])["networks"][0]
    assert (changed["vlan"], changed["dhcp"], changed["snat"]) == (None, False, True)
    take(ledger, "10.20.0.9")
    with pytest.raises(ConflictError, match="manager cannot change from flat to flat_dhcp while the address"):
        run("network", networks=[{"name": "net", "dhcp": True}])
    assert run("network", networks=[{"name": "net", "snat": False}])["changed"]
    # a gateway of its own ends what the hypervisors did; it comes back when it is asked for
    assert run("network", networks=[{"name": "net", "snat": True, "ntp": ["2001:DB8::1"]}])["changed"]
    [network] = run("network", networks=[{"name": "net", "gateway": "10.20.0.1"}])["networks"]
    assert (network["snat"], network["ntp"]) == (False, ["2001:db8::1"])


def test_of_networks_one_of_which_makes_no_sense_none_is_made(run: Run, ledger: sa.Engine) -> None:
    with pytest.raises(NovaliteError, match="'bad': mtu 1"):
        run("network", networks=[NET, {"name": "bad", "cidr": "10.21.0.0/24", "mtu": 1}])
    assert pool(ledger) == {}


@on_postgresql
def test_of_two_networks_that_overlap_at_the_same_moment_one_is_refused(run: Run, ledger: sa.Engine) -> None:
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        tries = [
            threads.submit(run, "network", networks=[{"name": f"n{number}", "cidr": f"10.20.0.0/{24 + number}"}])
            for number in range(4)
        ]
        errors = [attempt.exception() for attempt in tries]
    assert sum(isinstance(error, ConflictError) for error in errors) == 3 and errors.count(None) == 1


def test_the_cidr_of_an_unused_network_can_change_and_of_a_used_one_cannot(run: Run, ledger: sa.Engine) -> None:
    run("network", networks=[{**NET, "reserved": ["10.20.0.9"]}])
    take(ledger, "10.20.0.2", owner="dhcp:hv1")
    moved = {"name": "net", "cidr": "10.30.0.0/28", "reserved": []}
    changed = run("network", networks=[moved])
    assert changed["diff"]["before"]["networks"]["net"]["cidr"] == "10.20.0.0/24"
    assert list(pool(ledger))[::15] == ["10.30.0.0", "10.30.0.15"]
    take(ledger, "10.30.0.5")
    for change in ({"cidr": "10.31.0.0/24"}, {"bridge": "brx"}, {"vlan": 9, "bridge_interface": "eth1"}):
        with pytest.raises(ConflictError, match=r"cannot change from .* while the address 10\.30\.0\.5"):
            run("network", networks=[{"name": "net", **change}])
    assert run("network", networks=[{"name": "net", "dns": ["9.9.9.9"]}])["changed"]


def test_a_network_in_use_stays(run: Run, ledger: sa.Engine) -> None:
    [network] = run("network", networks=[NET])["networks"]
    take(ledger, "10.20.0.2", owner="dhcp:hv1")
    with transaction(ledger) as connection:
        add_vif(connection, add_instance(connection, "web-1", id=7), network["id"])
    with pytest.raises(ConflictError, match=r"'net' is in use by the instance 'web-1'"):
        run("network", networks=[{"name": "net"}], state="absent")
    with transaction(ledger) as connection:
        connection.execute(sa.update(tables.instance).values(deleted=7))
    assert run("network", networks=[{"name": "net"}], state="absent")["changed"]
    assert pool(ledger) == {}
    assert not run("network", networks=[{"name": "net"}], state="absent")["changed"]


def test_the_networks_of_a_project_are_limited_and_public_ones_are_not(run: Run) -> None:
    nets = [{"name": f"n{i}", "cidr": f"10.{i}.0.0/30"} for i in range(8)]
    assert run("network", networks=nets[:4])["changed"]
    run("project", projects=[{"name": "demo", "quotas": {"networks": 3}}])
    with pytest.raises(QuotaError, match=r"networks: 4 wanted, 3 allowed"):
        run("network", networks=nets[4:], project="demo")


def test_networks_are_counted_as_the_network_api_counts_them(run: Run, ledger: sa.Engine) -> None:
    run("project", projects=[{"name": "demo", "quotas": {"networks": 2}}])
    with transaction(ledger) as connection:
        connection.execute(sa.insert(tables.floating_pool).values(name="p", cidr="", interface="eth1", made_by=DEMO))
    [made] = run("network", networks=[NET], project="demo")["networks"]
    with pytest.raises(QuotaError, match=r"networks: 3 wanted, 2 allowed"):
        run("network", networks=[{"name": "other", "cidr": "10.21.0.0/24"}], project="demo")
    # what it has can be changed, however many they are
    run("project", projects=[{"name": "demo", "quotas": {"networks": 1}}])
    assert run("network", networks=[{"name": "net", "dns": ["9.9.9.9"]}], project="demo")["changed"]
    with reading(ledger) as connection:
        created = connection.execute(sa.select(tables.network.c.created_at)).scalar_one()
    assert created > 0, f"the Network API shows {made['name']} as of 1970"


@given(st.sets(st.integers(number("10.0.0.0"), number("10.0.0.40"))))
def test_ranges_name_each_address_once(addresses: set[int]) -> None:
    texts = ranges(addresses)
    assert parse_ranges("n", texts, parse_cidr("n", "10.0.0.0/24")) == addresses
    # as short as can be: between two ranges there is a gap
    ends = [[number(end) for end in (text.split("-") * 2)[:2]] for text in texts]
    assert all(after[0] - before[1] > 1 for before, after in zip(ends, ends[1:]))
