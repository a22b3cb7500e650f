# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ipaddress
import typing as t

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.pools import parse_cidr, parse_reserved, ranges

if t.TYPE_CHECKING:
    from .conftest import Run

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
    full = {**NET, "reserved": ["10.20.0.64/30"], "dns": ["2001:DB8::0001", "9.9.9.9"], "cidr_v6": "fd00:20::/64",
            "gateway_v6": "fe80::1", "mtu": 1450, "dhcp": False, "vlan": 7, "bridge_interface": "eth1"}  # fmt: skip
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
        ({"cidr": "10.20.0.0"}, "is no address range"),
        ({"cidr": "ten/8"}, "is no address range"),
        ({"cidr": "fd00::/64"}, "is not IPv4"),
        ({"cidr": "10.0.0.0/15"}, "must lie between /16 and /30"),
        ({"cidr": "10.0.0.0/31"}, "must lie between /16 and /30"),
        ({"cidr": "224.0.0.0/24"}, "no host may use"),
        ({"cidr": "127.0.0.0/24"}, "no host may use"),
        ({"cidr": "0.0.0.0/16"}, "no host may use"),
        ({"cidr": "169.254.0.0/16"}, "no host may use"),
        ({"gateway": "10.21.0.1"}, "is no host's address in 10.20.0.0/24"),
        ({"gateway": "10.20.0.255"}, "is no host's address in"),
        ({"gateway": "first"}, "is no IP address"),
        ({"cidr_v6": "fd00::/48"}, "must have a prefix of /64"),
        ({"cidr_v6": "fe80::/64"}, "no host may use"),
        ({"gateway_v6": "fd00::1"}, "needs a cidr_v6"),
        ({"cidr_v6": "fd00::/64", "gateway_v6": "fd01::1"}, "neither an address in fd00::/64 nor link-local"),
        ({"reserved": ["10.21.0.1"]}, "is not within 10.20.0.0/24"),
        ({"reserved": ["10.20.0.9-10.20.0.1"]}, "ends before it begins"),
        ({"reserved": ["10.20.0.0/24"]}, "nothing is left for instances"),
        ({"bridge": "br100; reboot"}, "is no interface name"),
        ({"bridge": "a" * 16}, "is no interface name"),
        ({"bridge": ".."}, "is no interface name"),
        ({"bridge": "eth1", "bridge_interface": "eth1"}, "are both 'eth1'"),
        ({"vlan": 7}, "vlan 7 needs the bridge_interface"),
        ({"vlan": 4095, "bridge_interface": "eth1"}, "vlan 4095 is out of range"),
        ({"mtu": 500}, "mtu 500 is out of range"),
        ({"mtu": 1279, "cidr_v6": "fd00::/64"}, "mtu 1279 is out of range"),
        ({"lease_seconds": 60}, "lease_seconds 60 is out of range"),
        ({"domain": "nova local"}, "is no domain name"),
        ({"domain": ".".join(["a" * 63] * 4)}, "is no domain name"),
        ({"dns": ["dns.example.com"]}, "is no IP address"),
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
        connection.execute(
            sa.insert(tables.instance).values(
                id=7, uuid="u" * 36, project_id="d" * 32, name="web-1", hostname="web-1", flavor={}, image={},
                metadata={}, vm_state="active", attempts=[], created_at=0, updated_at=0,
            )
        )
        connection.execute(
            sa.insert(tables.vif).values(
                id="v" * 36, instance_uuid="u" * 36, network_id=network["id"], position=0, mac="fa:16:3e:00:00:01"
            )
        )
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
    with pytest.raises(QuotaError, match=r"networks: 4 wanted, 3 allowed"):
        run("network", networks=nets[4:], project="demo")


@given(st.sets(st.integers(number("10.0.0.0"), number("10.0.0.40"))))
def test_ranges_name_each_address_once(addresses: set[int]) -> None:
    texts = ranges(addresses)
    assert parse_reserved("n", texts, parse_cidr("n", "10.0.0.0/24")) == addresses
    # as short as can be: between two ranges there is a gap
    ends = [[number(end) for end in (text.split("-") * 2)[:2]] for text in texts]
    assert all(after[0] - before[1] > 1 for before, after in zip(ends, ends[1:]))
