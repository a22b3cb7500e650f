# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""MACs, EUI-64 and IPv4 addresses as numbers."""

from __future__ import annotations

import ipaddress
import random
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._addressing import ipv6, pools, texts
from ansible_collections.novalite.cloud.plugins.module_utils._addressing.ipv6 import RESERVED, host_ipv6, stable_privacy
from ansible_collections.novalite.cloud.plugins.module_utils._addressing.macs import eui64, new_mac
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

octets = st.integers(0, 255)


@given(st.integers(0, 2**32))
def test_macs_are_local_unicast_under_their_prefix(seed: int) -> None:
    mac = new_mac(rng=random.Random(seed))
    numbers = [int(part, 16) for part in mac.split(":")]
    assert mac.startswith("fa:16:3e:") and len(mac) == 17 and len(numbers) == 6
    assert new_mac("02:00:00", random.Random(seed)) == "02:00:00" + mac[8:]


def test_macs_differ() -> None:
    assert len({new_mac() for _ in range(200)}) > 190


@pytest.mark.parametrize(
    ("prefix", "reason"),
    [("fa:16", "three octets"), ("fa163e", "three octets"), ("01:16:3e", "multicast"), ("00:16:3e", "manufacturer")],
)
def test_prefixes_that_no_guest_may_have_are_refused(prefix: str, reason: str) -> None:
    with pytest.raises(NovaliteError, match=f"{prefix}.*{reason}"):
        new_mac(prefix)


@pytest.mark.parametrize(
    "text",
    [
        "10.20.0.5",
        "10.20.0.0/24",
        "10.20.0.5/24",
        "10.20.0.0/255.255.255.0",
        "10.20.0.0/0.0.0.255",
        "10.20.0.0/08",
        "fd00::1",
        "fd00::/64",
        "fd00::1/64",
        "::ffff:10.0.0.1",
        "FD00::A",
        # what netaddr or the C library would take, and what neither does
        "1",
        "10.1",
        "10.20",
        "010.20.0.5",
        "0x0a.0.0.1",
        " 10.20.0.5",
        "10.20.0.5\n",
        "10.20.0.0/24\n",
        "10.20.0.0/ 24",
        "10.20.0.0/+24",
        "10.20.0.0/-1",
        "10.20.0.0/\u0662\u0664",
        "10.20.0.0/33",
        "10.20.0.0/255.0.255.0",
        "10/8",
        "fd00::/129",
        "fd00::/ffff::",
        "fd00:::1",
        "10.20.0.0/24/24",
        "10.20.0.0/",
        "/24",
        "",
        "web",
        "10.20.0.5\x00",
    ],
)
def test_addresses_and_ranges_are_read_as_strictly_as_by_python(text: str) -> None:
    def read(by: t.Callable[[str], t.Any]) -> tuple[int, int] | None:
        try:
            read = by(text)
        except ValueError:
            return None
        return (int(read), read.version) if hasattr(read, "__int__") else (int(read[0]), int(read[-1]))

    assert read(texts.parse_address) == read(ipaddress.ip_address)
    assert read(texts.parse_network) == read(ipaddress.ip_network)
    assert read(lambda text: texts.parse_network(text, strict=False)) == read(
        lambda text: ipaddress.ip_network(text, strict=False)
    )


@pytest.mark.parametrize("text", ["fe80::1%eth0", "fe80::1%eth0/64", "10.0.0.1%\n-j ACCEPT"])
def test_a_zone_is_no_part_of_an_address(text: str) -> None:
    for parse in (texts.parse_address, texts.parse_network):
        with pytest.raises(ValueError):
            parse(text)


def test_eui64_as_in_rfc_4291() -> None:
    assert eui64("fd00:1::/64", "fa:16:3e:12:34:56") == "fd00:1::f816:3eff:fe12:3456"


@given(st.lists(octets, min_size=6, max_size=6), st.integers(0, 2**64 - 1))
def test_eui64_keeps_prefix_and_mac(mac: list[int], prefix: int) -> None:
    network = ipaddress.IPv6Network((prefix << 64, 64))
    address = ipaddress.IPv6Address(eui64(str(network), ":".join(f"{octet:02x}" for octet in mac)))
    assert address in network
    low = address.packed[8:]
    assert [low[0] ^ 2, low[1], low[2], low[5], low[6], low[7]] == mac and low[3:5] == b"\xff\xfe"


@pytest.mark.parametrize("cidr", ["fd00::/80", "10.0.0.0/24"])
def test_eui64_needs_a_64(cidr: str) -> None:
    with pytest.raises(NovaliteError, match="is not an IPv6 /64"):
        eui64(cidr, "fa:16:3e:12:34:56")


def test_the_address_of_a_hypervisor_is_its_ipv4_address_as_a_number() -> None:
    assert host_ipv6("fd00:1::/64", "10.20.0.2") == "fd00:1::a14:2"
    with pytest.raises(NovaliteError, match="is not an IPv6 /64"):
        host_ipv6("fd00::/48", "10.20.0.2")


@given(st.ip_addresses(v=4), st.lists(octets, min_size=6, max_size=6), st.binary(min_size=1), st.integers(0, 3))
def test_hypervisors_and_instances_share_no_address(
    v4: ipaddress.IPv4Address, mac: list[int], secret: bytes, counter: int
) -> None:
    host = host_ipv6("fd00::/64", str(v4))
    # a local MAC gives an identifier that is not small
    mac[0] = mac[0] & 0xFC | 2
    mac[1] |= 1
    assert eui64("fd00::/64", ":".join(f"{octet:02x}" for octet in mac)) != host
    assert stable_privacy("fd00::/64", str(mac), "net", secret, counter) != host


@given(st.text(), st.text(), st.binary(), st.integers(0, 9))
def test_stable_private_addresses_depend_on_all_that_rfc_7217_names(
    interface: str, network: str, secret: bytes, counter: int
) -> None:
    made = stable_privacy("fd00::/64", interface, network, secret, counter)
    number = int(ipaddress.IPv6Address(made)) & 2**64 - 1
    assert ipaddress.IPv6Address(made) in ipaddress.IPv6Network("fd00::/64")
    assert not any(low <= number <= high for low, high in RESERVED)
    others = [
        stable_privacy("fd01::/64", interface, network, secret, counter),
        stable_privacy("fd00::/64", interface + "x", network, secret, counter),
        stable_privacy("fd00::/64", interface, network + "x", secret, counter),
        stable_privacy("fd00::/64", interface, network, secret + b"x", counter),
        stable_privacy("fd00::/64", interface, network, secret, counter + 1),
    ]
    assert number not in {int(ipaddress.IPv6Address(other)) & 2**64 - 1 for other in others}
    assert made == stable_privacy("fd00::/64", interface, network, secret, counter)


def test_a_reserved_interface_identifier_counts_as_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (stable_privacy("fd00::/64", "i", "n", b"s", counter) for counter in (0, 1))
    number = int(ipaddress.IPv6Address(first)) & 2**64 - 1
    monkeypatch.setattr(ipv6, "RESERVED", ((number, number),))
    assert stable_privacy("fd00::/64", "i", "n", b"s") == second


@given(st.integers(0, 2**32 - 1))
def test_addresses_survive_the_way_through_numbers(number: int) -> None:
    assert pools.to_int(pools.to_text(number)) == number


@pytest.mark.parametrize("text", ["10.20.0", "10.20.0.256", "::1", "", "10.20.0.1/24"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(NovaliteError, match="is not an IPv4 address"):
        pools.to_int(text)
