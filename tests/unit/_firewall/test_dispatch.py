# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dispatch of packets to chains: whichever keys there are, each finds its own rule, and no other's."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from ansible_collections.novalite.cloud.plugins.module_utils._firewall import dispatch, tree

FORM = tree.Form(
    "root",
    2,
    2,
    "node-{}".format,
    lambda key, who: f"is {key} to {who}",
    lambda prefix, node: f"begins {prefix} {node}",
)
# names of devices as libvirt gives them to adopted guests: one may begin all others
KEYS = st.sets(st.text("01", min_size=1, max_size=5).map("vnet{}".format), max_size=12)


def reached(chains: tree.Chains, key: str) -> str | None:
    """What a packet's key comes to; fails where two rules of a chain are for it."""
    name = "root"
    while True:
        rules = [rule.split() for rule in chains.get(name, ())]
        hits = [rule for rule in rules if (key == rule[1] if rule[0] == "is" else key.startswith(rule[1]))]
        assert len(hits) <= 1, (name, hits)
        if not hits:
            return None
        if hits[0][0] == "is":
            return hits[0][3]
        name = hits[0][2]


@given(KEYS, KEYS)
@example({"vnet1", "vnet10", "vnet11", "vnet100"}, {"vnet10"})
def test_each_key_comes_to_its_own_entry(before: set[str], after: set[str]) -> None:
    old, new = ({key: f"guest-{key}" for key in keys} for keys in (before, after))
    chains = dict(tree.changed(FORM, tree.NOTHING, tree.State(old)).chains)
    assert {key: reached(chains, key) for key in before | after} == {key: old.get(key) for key in before | after}
    change = tree.changed(FORM, tree.State(old), tree.State(new))
    chains = {name: rules for name, rules in {**chains, **change.chains}.items() if name not in change.gone}
    assert {key: reached(chains, key) for key in before | after} == {key: new.get(key) for key in before | after}
    assert chains == tree.changed(FORM, tree.NOTHING, tree.State(new)).chains


@pytest.mark.parametrize("here", [{}, {"0a000007": "7"}])
def test_what_leaves_by_an_isolated_bridge_meets_no_other_networks_addresses(here: dispatch.Entries) -> None:
    """Also where nothing is known on that bridge: another network's guest may have the same address."""
    scopes = {dispatch.EVERYWHERE: {"0a000005": "5"}, "br7": here}
    root = dispatch.chains(dispatch.OUT, scopes, "IPv4")[dispatch.OUT.root]
    first = next(rule for rule in root if "br7" in rule or "10.0.0.5" in rule)
    assert first == ("-i br7 -g nova-from-br7" if here else "-i br7 -j RETURN")
