# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read from a host: order, names, tables, and whose they are."""

from __future__ import annotations

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._firewall import ruleset
from tests.unit._firewall.test_merge import FOREIGN


@pytest.mark.parametrize("spelling", ["-p 2", "-p igmp"])
def test_the_order_of_what_leads_to_instances_is_no_change(spelling: str) -> None:
    """What comes first in such a chain is, and what leads elsewhere."""
    head = (f"-d 224.0.0.1/32 {spelling} -j RETURN",)
    entries = [
        f"-m physdev --physdev-out tap{number} --physdev-is-bridged -g nova-inst-{number}" for number in range(4)
    ]
    for_us = ("-d 224.0.0.1/32 -p 2 -j RETURN", *entries)
    assert ruleset.same("nova-tap", (*head, *reversed(entries)), for_us)
    assert ruleset.edits("nova-tap", (*head, *reversed(entries)), for_us) == []
    assert ruleset.edits("nova-tap", (*head, *entries[2:], entries[0]), for_us) == [f"-A nova-tap {entries[1]}"]
    assert ruleset.edits("nova-tap", (*head, *entries, "-j ACCEPT"), for_us) is None
    for wrong in (
        (*entries, *head),
        (entries[0], *head, *entries[1:]),
        (*head, *entries[:3], entries[2]),
        (*head, *entries, entries[0]),
        ("-j ACCEPT", *entries),
        (*head, *entries, "-j ACCEPT"),
    ):
        assert not ruleset.same("nova-tap", wrong, for_us)
    assert not ruleset.same("nova-sg-1", (*head, *reversed(entries)), for_us)


def test_an_unreadable_table_is_no_empty_one() -> None:
    with pytest.raises(NovaliteError, match="native nftables"):
        ruleset.parse("# Table `filter' is incompatible, use 'nft' tool.\n")


def test_an_unreadable_table_that_is_not_ours_is_no_matter() -> None:
    assert ruleset.parse("# Table `nat' is incompatible, use 'nft' tool.\n" + FOREIGN) == ruleset.parse(FOREIGN)


def test_other_tables_are_not_read() -> None:
    parsed_ruleset = ruleset.parse("*nat\n:nova-local - [0:0]\n-A nova-local -j ACCEPT\nCOMMIT\n" + FOREIGN)
    assert parsed_ruleset == ruleset.parse(FOREIGN)
    assert parsed_ruleset.policies["FORWARD"] == "DROP"
    rule = parsed_ruleset.tables["filter"]["FORWARD"][0]
    assert rule == '-m comment --comment "go -j nova-inst-1 there" -j DOCKER'
    assert ruleset.target(rule) == "DOCKER"
    assert parsed_ruleset.owned() == {}


@pytest.mark.parametrize(
    "name",
    [
        "nova-local",
        "nova-inst-1",
        "nova-inst-0",
        "nova-inst-1+20",
        "nova-new-7",
        "nova-sg-3",
        "nova-re-3",
        "nova-sg-3.7",
        "nova-re-3.65535",
        "nova-l-0a0001",
        "nova-l-x0123456789abcdef012",
        "nova-net-br7",
        "nova-ipv6-fallback",
    ],
)
def test_a_name_is_ours_in_its_own_table_only(name: str) -> None:
    assert ruleset.is_owned("filter", name)
    assert not ruleset.is_owned("security", name)
    assert not ruleset.is_owned("raw", name)
    assert ruleset.table_of(name) == "filter"
    assert not ruleset.is_owned("filter", name + "!")
    assert not ruleset.is_owned("filter", "x" + name)


@pytest.mark.parametrize(
    "name",
    [
        "nova-out",
        "nova-out-7",
        "nova-out-7+8",
        "nova-eg-1",
        "nova-ri-1",
        "nova-eg-1.7",
        "nova-ri-1.7",
        "nova-m-0a",
        "nova-from-br7",
    ],
)
def test_what_is_sent_is_judged_in_a_table_of_its_own(name: str) -> None:
    assert ruleset.is_owned("security", name)
    assert not ruleset.is_owned("filter", name)
    assert ruleset.table_of(name) == "security"
