# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests of a network that is open to itself (Nova's allow_same_net_traffic) reach each other, and nobody else reaches
them that no rule lets in."""

from __future__ import annotations

import typing as t

import pytest

from tests.packets import frames
from tests.packets.bed import UPLINK_MAC, Bed, Place
from tests.packets.policies import policy
from tests.packets.test_by_device import with_devices
from tests.packets.test_spoofing import Frame, packet, reached, udp

pytestmark = pytest.mark.root

RANGES = ("10.99.0.0/24", "fd99::/64", "fe80::/10")
OUT = [{"direction": "egress", "protocol": "tcp", "port_min": 1}]  # egress rules apply: it may answer all the same


def to(sender: Place, receiver: Place, honest: bool) -> list[Frame]:
    ours, by = udp(40000, 7001), None if sender.bridge else UPLINK_MAC
    return [
        Frame("IPv4", honest, packet(sender.ip, receiver.ip, 17, ours), to=by),
        Frame("IPv6", honest, packet(sender.ip6, receiver.ip6, 17, ours), frames.IPV6, to=by),
    ]


def answer(sender: Place, receiver: Place) -> list[Frame]:
    return [Frame("answer", True, packet(sender.ip, receiver.ip, 17, udp(7001, 40000)))]


@pytest.mark.parametrize("rules", [[], OUT], ids=["no rules", "egress rules"])
def test_a_network_is_open_to_itself(bed: Bed, rules: list[dict[str, t.Any]]) -> None:
    desired_policy = with_devices(bed, policy(bed.places, {1: rules}, {1: [1], 2: [1]}))
    first, second, near, far = (bed.places[name] for name in ("guest-1", "guest-2", "bystander", "outside"))
    desired_policy["instances"][0]["open_networks"] = [{"bridge": "br0", "cidr": cidr} for cidr in RANGES]
    bed.enforce(**desired_policy)
    problems = reached(bed, "bystander", "guest-1", to(near, first, True))
    problems += reached(bed, "guest-1", "bystander", answer(first, near))
    problems += reached(bed, "bystander", "guest-2", to(near, second, False))  # of a network that is not
    problems += reached(bed, "outside", "guest-1", to(far, first, False))
    lie = Frame("from outside as a neighbour", False, packet(near.ip, first.ip, 17, udp(1, 7001)), to=UPLINK_MAC)
    problems += reached(bed, "outside", "guest-1", [lie])
    assert not problems, "\n".join(problems)
    assert not bed.enforce(**desired_policy)["changed"]
    bed.forget_notes()
    alone = {**desired_policy, "instances": desired_policy["instances"][1:]}
    assert not bed.enforce(**alone)["changed"], "who is not given keeps what he was given"
    assert not reached(bed, "bystander", "guest-1", to(near, first, True))
    closed = {key: value for key, value in desired_policy["instances"][0].items() if key != "open_networks"}
    bed.enforce(**{**desired_policy, "instances": [closed]})
    problems = reached(bed, "bystander", "guest-1", to(near, first, False))
    assert not problems, "the open flows are cut with it: " + "\n".join(problems)
