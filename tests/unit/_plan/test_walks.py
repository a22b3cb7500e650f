# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The packets that hosts walk for an answer, and what is said where they contradict it."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._plan import reach, walks

WEB = {"id": 1, "name": "web", "rules": [{"protocol": "tcp", "port_min": 80, "port_max": 80, "cidr": "0.0.0.0/0"}]}
TALK = reach.Talk("tcp", 80)


def end(name: str, number: int, host: str, network: int = 1, scope: str = "") -> reach.End:
    text, bridge = f"10.0.{network}.{number}", f"br{network}"
    address = reach.Address(text, network, scope, bridge, f"tap{number}", f"10.0.{network}.0/24")
    return reach.End(name, (address,), (WEB,), host)


def outsider(text: str) -> reach.End:
    return reach.End(text, (reach.Address(text),))


def walked(source: reach.End, destination: reach.End) -> dict[str, dict[str, t.Any]]:
    answers = reach.answers(source, destination, TALK, {})
    hosts = walks.packets(source, destination, answers, TALK)
    assert all(len(packets) == 1 for packets in hosts.values())
    return {host: {name: value for name, value in packets[0].items() if value} for host, packets in hosts.items()}


def way(packet: dict[str, t.Any]) -> tuple[str | None, ...]:
    return tuple(packet.get(name) for name in ("interface_in", "device_in", "interface_out", "device_out"))


def test_on_one_host_it_is_one_walk_from_tap_to_tap() -> None:
    packets = walked(end("a", 1, "hv1"), end("b", 2, "hv1"))
    assert list(packets) == ["hv1"]
    assert way(packets["hv1"]) == ("br1", "tap1", "br1", "tap2")
    assert (packets["hv1"]["protocol"], packets["hv1"]["port"]) == (6, 80)


def test_on_two_hosts_each_sees_one_tap() -> None:
    packets = walked(end("a", 1, "hv1"), end("b", 2, "hv2"))
    assert way(packets["hv1"]) == ("br1", "tap1", "br1", walks.ELSEWHERE)
    assert way(packets["hv2"]) == ("br1", walks.ELSEWHERE, "br1", "tap2")


def test_between_networks_it_is_routed() -> None:
    packets = walked(end("a", 1, "hv1"), end("b", 2, "hv1", network=2))
    assert way(packets["hv1"]) == ("br1", "tap1", "br2", None)


def test_between_two_ranges_of_a_network_the_senders_host_routes() -> None:
    source, destination = end("a", 1, "hv1"), end("b", 2, "hv1")
    (there,) = destination.addresses
    destination = dataclasses.replace(
        destination, addresses=(dataclasses.replace(there, text="10.0.9.2", cidr="10.0.9.0/24"),)
    )
    assert way(walked(source, destination)["hv1"]) == ("br1", "tap1", "br1", None)
    packets = walked(source, dataclasses.replace(destination, host="hv2"))
    assert way(packets["hv1"]) == ("br1", "tap1", "br1", None)
    assert way(packets["hv2"]) == ("br1", walks.ELSEWHERE, "br1", "tap2")


def test_from_outside_it_comes_by_a_route_and_from_the_network_by_the_bridge() -> None:
    assert way(walked(outsider("192.0.2.7"), end("b", 2, "hv2"))["hv2"]) == (walks.ELSEWHERE, None, "br1", None)
    assert way(walked(outsider("10.0.1.99"), end("b", 2, "hv2"))["hv2"]) == ("br1", walks.ELSEWHERE, "br1", "tap2")
    assert way(walked(end("a", 1, "hv1"), outsider("192.0.2.7"))["hv1"]) == ("br1", "tap1", walks.ELSEWHERE, None)


def test_nothing_is_walked_where_there_is_no_host_or_no_way() -> None:
    assert walked(end("a", 1, ""), outsider("192.0.2.7")) == {}
    assert walked(end("a", 1, "hv1", network=2, scope="br2"), end("b", 2, "hv1")) == {}


def test_hosts_that_contradict_the_ledger_are_named() -> None:
    source, destination = end("a", 1, "hv1"), end("b", 2, "hv2")
    (allowed,) = reach.answers(source, destination, TALK, {})
    refused = {**allowed, "allowed": False}
    walk = {"answer": 0, "host": "hv2", "accepted": False, "certain": True, "lines": ["DROP"]}
    assert "the chains of hv2 do not" in walks.disagreements([allowed], [walk], 1)[0]
    assert walks.disagreements([refused], [walk], 1) == []
    assert walks.disagreements([allowed], [{**walk, "certain": False}], 1) == []
    through = {**walk, "accepted": True}
    assert "the chains of hv2 do: " in walks.disagreements([refused], [through], 1)[0]
    assert walks.disagreements([refused], [through], 2) == []  # the other host did not answer
    assert walks.lines([allowed], [walk]) == [allowed["line"], "  hv2  DROP"]
