# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._graph import security_groups
from ansible_collections.novalite.cloud.plugins.module_utils._plan import reach
from tests.packets.bed import all_places
from tests.packets.oracle import Probe, passes
from tests.packets.policies import random_policy
from tests.packets.probes import STRANGER

WEB = {"id": 1, "name": "web", "rules": [{"protocol": "tcp", "port_min": 80, "port_max": 81, "cidr": "0.0.0.0/0"}]}
DB = {"id": 2, "name": "db", "rules": [{"protocol": "tcp", "port_min": 3306, "port_max": 3306, "remote_group_id": 1}]}
TO_TEN = {"direction": "egress", "protocol": "tcp", "port_min": 80, "cidr": "10.0.0.0/8"}
OUT = {"id": 3, "name": "out", "rules": [TO_TEN]}


def end(name: str, address: str, *groups: dict[str, t.Any], network: int = 1, scope: str = "") -> reach.End:
    return reach.End(name, (reach.Address(address, network, scope),), groups)


def ask(source: reach.End, destination: reach.End, talk: reach.Talk) -> dict[str, t.Any]:
    web = reach.Remote("web", {"": ["10.0.0.1"], "br3": ["10.0.0.3"]})
    (answer,) = reach.answers(source, destination, talk, {1: web})
    return answer


def test_the_rule_is_named() -> None:
    web, db = end("web-1", "10.0.0.1", WEB), end("db-1", "10.0.0.2", DB)
    answer = ask(web, db, reach.Talk("tcp", 3306))
    assert answer["allowed"] and answer["rules"]["ingress"]["group"] == "db"
    assert answer["line"] == (
        "web-1 10.0.0.1 -> db-1 10.0.0.2 tcp 3306: allowed, web-1 may send anything, let in by group db: tcp 3306 from "
        "group web"
    )
    answer = ask(db, web, reach.Talk("tcp", 22))
    assert answer["line"].endswith("tcp 22: not allowed, no rule lets it in (groups of web-1: web)")
    assert not ask(end("x", "10.0.0.3"), db, reach.Talk("tcp", 3306))["allowed"]


def test_both_sides_have_a_say() -> None:
    web, out = end("web-1", "10.0.0.1", WEB), end("out-1", "10.0.0.9", OUT)
    answer = ask(out, web, reach.Talk("tcp", 80))
    assert answer["allowed"] and answer["rules"]["egress"]["group"] == "out"
    assert "no rule lets it out" in ask(out, web, reach.Talk("tcp", 81))["line"]
    stranger = reach.End("192.0.2.1", (reach.Address("192.0.2.1"),))
    assert ask(stranger, web, reach.Talk("tcp", 81))["allowed"]
    assert "no rule lets it out" in ask(out, stranger, reach.Talk("tcp", 80))["line"]
    assert ask(stranger, stranger, reach.Talk("udp", 1))["line"].endswith("allowed, neither is an instance")


def test_isolated_networks() -> None:
    web = end("web-1", "10.0.0.1", WEB, network=2, scope="br2")
    other = end("a", "10.0.0.3", network=2, scope="br2")
    assert ask(other, web, reach.Talk("tcp", 80))["allowed"]
    assert "isolated" in ask(end("b", "10.0.0.4", network=3), web, reach.Talk("tcp", 80))["line"]


def test_a_member_is_one_on_its_own_network() -> None:
    talk = reach.Talk("tcp", 3306)
    for scope, allowed in (("br2", []), ("br3", ["10.0.0.3"]), ("", ["10.0.0.1"])):
        db = end("db-1", "10.0.0.2", DB, network=7, scope=scope)
        sources = [end("x", address, network=7, scope=scope) for address in ("10.0.0.1", "10.0.0.3")]
        assert [source.addresses[0].text for source in sources if ask(source, db, talk)["allowed"]] == allowed


def test_what_is_no_protocol_is_refused() -> None:
    with pytest.raises(NovaliteError, match="'carrier-pigeon' is unknown"):
        ask(end("a", "10.0.0.1", WEB), end("b", "10.0.0.2", WEB), reach.Talk("carrier-pigeon"))


@pytest.mark.parametrize("seed", range(60))
def test_it_is_what_happens_to_packets(seed: int) -> None:
    """The same verdict as the oracle that the firewall is tested against with packets."""
    places = {place.name: place for place in all_places(4)}
    policy = random_policy(places, seed)
    for instance in policy["instances"]:
        instance["allowed_pairs"] = []
    groups = {group["id"]: {**group, "name": str(group["id"])} for group in policy["security_groups"]}
    remotes = {number: reach.Remote(str(number), {"": group["members"]}) for number, group in groups.items()}
    own = {
        f"guest-{instance['id']}": [groups[number] for number in instance["security_groups"]]
        for instance in policy["instances"]
    }
    talks = [
        (6, "tcp", 22, None),
        (6, "TCP", 1023, None),
        (17, "17", 80, None),
        (47, "gre", None, None),
        (253, "253", None, None),
    ]
    names = [*(name for name in places if name.startswith("guest-")), "bystander"]
    judged = 0
    for (source, destination), version in itertools.product(itertools.permutations([*names, "outside"], 2), (4, 6)):
        ends = []
        for name in (source, destination):
            attribute = "ip" if version == 4 else "ip6"
            address = STRANGER[version] if name == "outside" else getattr(places[name], attribute)
            ends.append(reach.End(name, (reach.Address(address, 1),), own.get(name)))
        ping = (1, "icmp", 8, 0) if version == 4 else (58, "icmpv6", 128, 0)
        for number, protocol, port, code in [*talks, ping]:
            probe = Probe(
                "",
                source,
                destination,
                ends[0].addresses[0].text,
                ends[1].addresses[0].text,
                number,
                port,
                code if number in (1, 58) else 40000,
            )
            (answer,) = reach.answers(ends[0], ends[1], reach.Talk(protocol, port, code), remotes)
            assert answer["allowed"] == passes(policy, probe), answer["line"]
            judged += 1
    assert judged == 30 * 2 * 6


def test_picture() -> None:
    text = security_groups.dot(
        [
            {**WEB, "project": "demo", "servers": [f"web-{number}" for number in range(10)]},
            {**DB, "project": "demo", "servers": ['db "1" <a>']},
            {**OUT, "project": "demo", "servers": []},
        ]
    )
    assert '"ingress anyone" -> "group1" [label="tcp 80-81"];' in text
    assert '"group1" -> "group2" [label="tcp 3306"];' in text
    assert '"group3" -> "egress 10.0.0.0/8" [label="tcp 80", style=dashed];' in text
    assert "and 2 more" in text and "db &quot;1&quot; &lt;a&gt;" in text and "no instance" in text


def test_picture_says_one_thing_once() -> None:
    both = [{"protocol": "tcp", "port_min": 22, "ethertype": family} for family in ("IPv4", "IPv6")]
    only = {"protocol": "udp", "port_min": 53, "ethertype": "IPv6"}
    text = security_groups.dot([{"id": 7, "name": "a", "rules": [*both, only], "servers": []}])
    assert '"ingress anyone" -> "group7" [label="tcp 22\\nudp 53 (IPv6)"];' in text


def test_a_network_that_is_open_to_itself_lets_its_own_guests_in() -> None:
    inside = reach.End("b", (reach.Address("10.20.0.6", 1),), [])
    for network, allowed in ((1, True), (2, False)):
        receiver = reach.End("a", (reach.Address("10.20.0.5", network, open_network=True),), [])
        (answer,) = reach.answers(inside, receiver, reach.Talk("tcp", 22), {})
        assert answer["allowed"] is allowed
