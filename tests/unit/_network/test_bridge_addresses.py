# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses of bridges that come and go with their ranges."""

from __future__ import annotations

import dataclasses
import ipaddress
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._network import bridge
from ansible_collections.novalite.cloud.plugins.module_utils._network.additions import Additions
from ansible_collections.novalite.cloud.plugins.module_utils._network.bridge import Bridge
from tests.unit._network.test_bridge import BR100, OURS, SPEC, commands, host


@pytest.mark.parametrize(
    ("ranges", "gone"),
    [
        (("10.20.0.0/24", "10.21.0.0/24", "10.22.0.0/24"), []),
        (("10.20.0.0/24", "10.21.0.0/24"), ["10.22.0.2/24"]),
        ((), ["10.21.0.2/24", "10.22.0.2/24"]),  # the network is back to one
    ],
)
@pytest.mark.parametrize("alias", [OURS, None], ids=["ours", "others"])
def test_an_address_goes_with_its_range(ranges: tuple[str, ...], gone: list[str], alias: str | None) -> None:
    """An address that nobody remembers to be novalite's stays, in whichever range it is."""
    own_addresses = ("10.20.0.2/24", "10.21.0.2/24", "10.22.0.2/24")
    link = dataclasses.replace(BR100, alias=alias, addresses=(*own_addresses, "10.23.0.7/24"))
    added = Additions(addresses=own_addresses)
    spec = dataclasses.replace(SPEC, interface=None, ranges=ranges)
    steps = bridge.plan_present(spec, host(link, added=added))
    assert commands(steps) == [f"addr del {text} dev br100" for text in reversed(gone)]
    # and one that its host is to have in a range of the network comes; the first goes first
    spec = dataclasses.replace(SPEC, interface=None, addresses=("10.21.0.2/24",), ranges=("10.21.0.0/24",))
    steps = bridge.plan_present(spec, host(link, added=added))
    assert commands(steps) == ["addr del 10.22.0.2/24 dev br100", "addr del 10.20.0.2/24 dev br100"]


class Addresses(list[str]):
    """A device's IPv4 addresses as the kernel keeps them (net/ipv4/devinet.c): the first of each range, then others."""

    def carry_out(self, argv: t.Sequence[str]) -> None:
        verb, text = argv[2:4]
        network = ipaddress.ip_interface(text).network
        ranged = [other for other in self if ipaddress.ip_interface(other).network == network]
        if verb == "add":
            assert text not in self, "File exists"
            firsts = {str(ipaddress.ip_interface(other).network): other for other in reversed(self)}
            self.insert(len(self) if ranged else len(firsts), text)
        else:
            assert text in self, "Cannot assign requested address"
            for other in ranged if text == ranged[0] else [text]:
                self.remove(other)


RANGES = ("10.20.0.0/24", "10.21.0.0/24", "10.20.0.0/16")


IN_THEM = st.builds(
    lambda text, host: f"{ipaddress.ip_network(text)[host]}/{text.partition('/')[2]}",
    st.sampled_from(RANGES),
    st.integers(1, 4),
)


@given(
    st.lists(IN_THEM, max_size=6, unique_by=lambda text: text.partition("/")[0]),
    st.lists(st.sampled_from(RANGES[:2]), min_size=1, unique=True),
    st.sets(st.integers(0, 5)),
    st.booleans(),
)
def test_addresses_of_one_range_survive_each_other(
    there: list[str], ranges: list[str], remembered: set[int], alive: bool
) -> None:
    """Whatever a bridge has, and whichever of that goes: no step fails, and what is not ours is there afterwards."""
    before = Addresses()
    for text in there:
        before.carry_out(["ip", "addr", "add", text])
    added = Additions(addresses=tuple(text for place, text in enumerate(there) if place in remembered))
    ours = tuple(f"{ipaddress.ip_network(text)[2]}/24" for text in ranges)
    spec = Bridge("br100", addresses=ours, ranges=tuple(ranges), mark=SPEC.mark)
    theirs = {text for text in before if text not in added.addresses} - {f"{text.split('/')[0]}/16" for text in ours}
    for alias in (OURS, None):
        link = dataclasses.replace(BR100, alias=alias, addresses=tuple(before))
        there_is = host(link, added=added, routed=frozenset({"br100"} if alive else ()))
        after = Addresses(before)
        for step in bridge.plan_present(spec, there_is):
            after.carry_out(step.argv)
        assert theirs <= set(after)
        assert alias is None or set(ours) <= set(after)
        assert alias is None or alive or tuple(after[: len(ours)]) == ours
    after = Addresses(before)
    steps, _kept = bridge.plan_absent(
        spec, host(dataclasses.replace(BR100, alias=None, addresses=tuple(before)), added=added)
    )
    for step in steps:
        after.carry_out(step.argv)
    assert set(after) == set(before) - set(added.addresses)
