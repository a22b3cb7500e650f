# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""As many more fit as a scheduler would place; moves that are proposed are allowed and lower the score."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import balance, capacity_tools
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import Group, HostState, Request
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.select import select

OPTIONS = Options()


def host(name: str, **fields: t.Any) -> HostState:
    return HostState(name, **{"vcpus": 8, "memory_mb": 8192, "disk_gb": 100, **fields})


def request(uuid: str = "", **fields: t.Any) -> Request:
    return Request(**{"uuid": uuid, "name": uuid, "vcpus": 1, "memory_mb": 1024, "disk_gb": 1, **fields})


hosts_of = st.lists(
    st.builds(
        host,
        st.sampled_from("abcdefgh"),
        vcpus=st.integers(0, 16),
        memory_mb=st.integers(0, 16384),
        disk_gb=st.integers(0, 40),
        vcpus_used=st.integers(0, 20),
        cpu_ratio=st.sampled_from([0.5, 1.0, 4.0]),
        reserved_memory_mb=st.integers(0, 4096),
        enabled=st.booleans(),
    ),
    max_size=6,
    unique_by=lambda state: state.name,
)


@settings(max_examples=60, deadline=None)
@given(hosts_of, st.integers(1, 4), st.integers(1, 4096), st.integers(0, 20))
def test_what_fits_is_what_a_scheduler_places(hosts: list[HostState], vcpus: int, memory_mb: int, disk_gb: int) -> None:
    placement_request = request(vcpus=vcpus, memory_mb=memory_mb, disk_gb=disk_gb)
    rooms = capacity_tools.room(hosts, placement_request, OPTIONS)
    asked = sum(room.fits for room in rooms) + 1
    decisions = select(hosts, [dataclasses.replace(placement_request, uuid=str(i)) for i in range(asked)])
    counts = {room.host: room.fits for room in rooms}
    placed = [decision.host for decision in decisions if decision.host]
    assert {name: placed.count(name) for name in counts} == counts
    assert all(room.bottleneck and room.reason for room in rooms)


def test_the_bottleneck_is_named() -> None:
    hosts = [host("a", memory_mb=2048), host("b", memory_mb=3072), host("c", disk_gb=1), host("d", enabled=False)]
    rooms = capacity_tools.room(hosts, request(), OPTIONS)
    assert [(room.fits, room.bottleneck) for room in rooms] == [(2, "ram"), (3, "ram"), (1, "disk"), (0, "compute")]
    assert list(capacity_tools.bottlenecks(rooms).items()) == [("ram", 2), ("compute", 1), ("disk", 1)]


def loaded(counts: dict[str, int], **fields: t.Any) -> tuple[list[HostState], list[balance.Placed]]:
    hosts, placed = [], []
    for name, count in counts.items():
        state = host(name, **fields.get(name, {}))
        for number in range(count):
            claimed = request(f"{name}-{number}")
            state = state.after(claimed)
            placed.append(balance.Placed(claimed, name))
        hosts.append(state)
    return hosts, placed


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=5))
def test_moves_lower_the_score_to_the_end(counts: list[int]) -> None:
    names = "abcde"[: len(counts)]
    hosts, placed = loaded(dict(zip(names, counts)))
    moves = balance.moves(hosts, placed, OPTIONS, max_moves=100)
    now, left = balance.score(hosts), dict(zip(names, counts))
    for move in moves:
        assert move.before == pytest.approx(now) and move.after < move.before
        left[move.source] -= 1
        left[move.target] += 1
        now = move.after
    # equal instances on equal hosts: in the end no two hosts differ by more than one of them
    assert max(left.values()) - min(left.values()) <= 1


def test_moves_go_where_filters_allow() -> None:
    hosts, placed = loaded({"a": 4, "b": 0, "c": 0, "d": 0}, b={"enabled": False}, c={"memory_mb": 512})
    moves = balance.moves(hosts, placed, OPTIONS)
    assert {(move.source, move.target) for move in moves} == {("a", "d")}


def test_a_group_is_kept_apart_and_together() -> None:
    hosts, placed = loaded({"a": 3, "b": 1})
    apart = Group("g", "anti-affinity", 1, {"a-0": "a", "b-0": "b"})
    pinned = [
        balance.Placed(dataclasses.replace(placed_guest.request, group=apart), placed_guest.host)
        if placed_guest.request.uuid in apart.members
        else balance.Placed(
            dataclasses.replace(placed_guest.request, requested_host=placed_guest.host), placed_guest.host
        )
        for placed_guest in placed
    ]
    assert balance.moves(hosts, pinned, OPTIONS) == []
    together = Group("g", "affinity", 1, {"a-0": "a", "a-1": "a", "a-2": "a"})
    pinned = [
        balance.Placed(dataclasses.replace(placed_guest.request, group=together), placed_guest.host)
        for placed_guest in placed[:3]
    ]
    assert balance.moves(hosts, pinned, OPTIONS) == []
    alone = Group("g", "affinity", 1, {"a-0": "a"})
    (move,) = balance.moves(hosts, [balance.Placed(dataclasses.replace(placed[0].request, group=alone), "a")], OPTIONS)
    assert (move.uuid, move.target) == ("a-0", "b")


def test_the_number_of_moves_and_their_worth_are_bounded() -> None:
    hosts, placed = loaded({"a": 8, "b": 0})
    assert len(balance.moves(hosts, placed, OPTIONS, max_moves=2)) == 2
    assert balance.moves(hosts, placed, OPTIONS, min_gain=0.5) == []
