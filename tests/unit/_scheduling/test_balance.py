# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves that even out the hosts: each is the best there is, is allowed, and takes nobody's way out."""

from __future__ import annotations

import collections
import dataclasses
import random
import re
import statistics
import subprocess
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import balance, reserve
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.balance import Rules
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.balance_placed import Peak, Placed
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import Group, HostState, Request
from tests.support.examples import part_of

OPTIONS = Options()
ALL = Rules(max_moves=1000)
SIZES = ((1, 512, 10), (1, 2048, 20), (2, 4096, 40), (4, 8192, 80), (8, 16384, 160))  # vCPUs, MiB, GiB


def host(name: str, **fields: t.Any) -> HostState:
    return HostState(name, **{"vcpus": 8, "memory_mb": 8192, "disk_gb": 100, **fields})


def request(uuid: str = "", **fields: t.Any) -> Request:
    return Request(**{"uuid": uuid, "name": uuid, "vcpus": 1, "memory_mb": 1024, "disk_gb": 1, **fields})


def loaded(counts: dict[str, int], **fields: t.Any) -> tuple[list[HostState], list[Placed]]:
    hosts, placed = [], []
    for name, count in counts.items():
        state = host(name, **fields.get(name, {}))
        for number in range(count):
            claimed = request(f"{name}-{number}")
            state = state.after(claimed)
            placed.append(Placed(claimed, name))
        hosts.append(state)
    return hosts, placed


def cluster(rng: random.Random, hosts: int, guests: int, **fields: t.Any) -> tuple[list[HostState], list[Placed]]:
    """Hosts of equal size, the first of them fuller than the last, with as many of the guests as find room."""
    states = {f"hv{number}": host(f"hv{number}", **fields) for number in range(hosts)}
    placed = []
    for number in range(guests):
        vcpus, memory_mb, disk_gb = rng.choice(SIZES)
        asked = request(f"i{number}", vcpus=vcpus, memory_mb=memory_mb, disk_gb=disk_gb if fields["disk_gb"] else 0)
        state = states[f"hv{min(hosts - 1, int(rng.betavariate(1.2, 2.5) * hosts))}"]
        if state.memory_mb_room >= memory_mb and state.vcpus_room >= vcpus and state.disk_gb_room >= asked.disk_gb:
            states[state.name] = state.after(asked)
            placed.append(Placed(asked, state.name))
    return list(states.values()), placed


ROOMY = {"vcpus": 64, "memory_mb": 262144, "disk_gb": 8192, "cpu_ratio": 4.0}
TIGHT = {"vcpus": 64, "memory_mb": 40960, "disk_gb": 8192, "cpu_ratio": 4.0}


def carried_out(
    hosts: t.Iterable[HostState], placed: t.Iterable[Placed], moves: t.Iterable[balance.Move]
) -> tuple[list[HostState], list[Placed]]:
    """The cluster after these moves."""
    states, guests = {state.name: state for state in hosts}, {guest.request.uuid: guest for guest in placed}
    for move in moves:
        asked = guests[move.uuid].request
        states[move.source] = states[move.source].with_more(asked, -1)
        states[move.target] = states[move.target].after(asked)._replace(num_io_ops=0)
        guests[move.uuid] = dataclasses.replace(guests[move.uuid], host=move.target)
    return list(states.values()), list(guests.values())


def plain_score(hosts: t.Sequence[HostState]) -> float:
    """The score by its definition."""
    shares = zip(*((h.vcpus_used / h.vcpus, h.memory_mb_used / h.memory_mb, h.disk_gb_used / h.disk_gb) for h in hosts))
    return sum(statistics.pstdev(column) for column in shares)


@settings(max_examples=part_of(40), deadline=None)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=5))
def test_moves_lower_the_score_to_the_end(counts: list[int]) -> None:
    names = "abcde"[: len(counts)]
    hosts, placed = loaded(dict(zip(names, counts)))
    moves = balance.moves(hosts, placed, OPTIONS, dataclasses.replace(ALL, enough=0.0))
    now, left = balance.score(hosts), dict(zip(names, counts))
    for move in moves:
        assert move.before == pytest.approx(now) and move.after < move.before
        left[move.source] -= 1
        left[move.target] += 1
        now = move.after
    lost = [loss for loss in reserve.losses(hosts, placed, {}, OPTIONS) if loss.stranded]
    # equal instances on equal hosts: in the end no two hosts differ by more than one of them, if nothing is in the way
    assert lost or max(left.values()) - min(left.values()) <= 1


@settings(max_examples=part_of(25), deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(2, 24))
def test_each_move_is_the_best_that_there_is(seed: int, hosts: int, guests: int) -> None:
    states, placed = cluster(random.Random(seed), hosts, guests, **ROOMY)
    for move in balance.moves(states, placed, OPTIONS, ALL):
        assert move.before == pytest.approx(plain_score(states), abs=1e-9)
        every = [
            plain_score(carried_out(states, placed, [dataclasses.replace(move, uuid=uuid, source=at, target=to)])[0])
            for uuid, at in ((guest.request.uuid, guest.host) for guest in placed)
            for to in (state.name for state in states if state.name != at)
        ]
        assert move.after == pytest.approx(min(every), abs=1e-9)
        states, placed = carried_out(states, placed, [move])


@pytest.mark.parametrize("seed", range(6))
def test_a_plan_is_as_good_as_that_of_hbal_after_every_move(seed: int) -> None:
    rng = random.Random(seed)
    # on storage that all hosts share, as in hbal's input
    hosts, placed = cluster(rng, rng.randint(8, 12), 60, **{**ROOMY, "disk_gb": 0})
    lines = ["default|g|preferred||", ""]
    for state in hosts:
        free = state.memory_mb - state.memory_mb_used
        lines.append(f"{state.name}|{state.memory_mb}|0|{free}|1|1|64|{'NM'[state.name == 'hv0']}|g|1||N|0|1|1.0")
    lines += ["", *(_instance(guest) for guest in placed), "", ""]
    lines.append("|128,1,1024,1,1,1|128,1,1024,1,1,1;32768,8,1048576,16,8,12|plain,drbd,sharedfile,ext|16.0|32.0")
    command = ["hbal", "-t", "/dev/stdin", "--ignore-dynu"]
    said = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True).stdout
    theirs = [float(score) for score in re.findall(r"^\s*\d+\.\s+\S+.*?\s(\d+\.\d+)\s+a=", said, re.MULTILINE)]
    ours = [move.after for move in balance.moves(hosts, placed, OPTIONS, ALL)]
    assert theirs and len(ours) <= len(theirs)
    assert all(own <= other + 1e-7 for own, other in zip(ours, theirs))
    assert ours[-1] <= theirs[-1] + 1e-7


def _instance(guest: Placed) -> str:
    asked = guest.request
    return f"{asked.name}|{asked.memory_mb}|0|{asked.vcpus}|running|Y|{guest.host}||ext||1|-"


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(3, 6), st.integers(4, 30))
def test_no_move_takes_a_way_out(seed: int, hosts: int, guests: int) -> None:
    states, placed = cluster(random.Random(seed), hosts, guests, **TIGHT)
    before = _stranded(states, placed)
    for move in balance.moves(states, placed, OPTIONS, ALL):
        states, placed = carried_out(states, placed, [move])
        after = _stranded(states, placed)
        assert set(after) <= set(before) and sum(after.values()) <= sum(before.values())
        before = after


def _stranded(states: list[HostState], placed: list[Placed]) -> dict[str, int]:
    losses = reserve.losses(states, placed, {}, OPTIONS)
    return {loss.host: len(loss.stranded) for loss in losses if loss.stranded}


def test_a_move_that_evens_out_but_strands_guests_is_not_made() -> None:
    # b's guest of 6 GiB finds room on c alone, as long as nobody comes there
    big = request("big", memory_mb=6144)
    hosts = [host("a").after(request("a-0")).after(request("a-1")), host("b").after(big), host("c")]
    hosts[0] = hosts[0]._replace(memory_mb_used=hosts[0].memory_mb_used + 2048)
    placed = [Placed(request("a-0"), "a"), Placed(request("a-1"), "a"), Placed(big, "b", fixed=True)]
    roomy = [hosts[0], hosts[1], hosts[2]._replace(memory_mb=8192 - 1024 - 512)]
    assert balance.moves([hosts[0], hosts[1], hosts[2]], placed, OPTIONS)
    assert balance.moves(roomy, placed, OPTIONS) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_second_run_moves_nothing(seed: int) -> None:
    states, placed = cluster(random.Random(seed), 12, 80, **ROOMY)
    moves = balance.moves(states, placed, OPTIONS, ALL)
    assert moves
    assert balance.moves(*carried_out(states, placed, moves), OPTIONS, ALL) == []


def test_noise_does_not_move_a_guest_twice_in_its_rest() -> None:
    """200 rounds, a minute apart, of measured loads that differ by 5 % from round to round."""
    rng, rest = random.Random(7), 360
    states, placed = cluster(rng, 10, 60, **ROOMY)
    base = {guest.request.uuid: rng.uniform(0.05, 1.0) * guest.request.vcpus for guest in placed}
    moved_at: dict[str, list[int]] = collections.defaultdict(list)
    for minute in range(200):
        measured = [
            dataclasses.replace(
                guest,
                peak=Peak(base[guest.request.uuid] * rng.uniform(0.95, 1.05), guest.request.memory_mb),
                fixed=any(minute - at < rest for at in moved_at[guest.request.uuid]),
            )
            for guest in placed
        ]
        moves = balance.moves(states, measured, OPTIONS)
        states, placed = carried_out(states, placed, moves)
        for move in moves:
            moved_at[move.uuid].append(minute)
    assert max(map(len, moved_at.values())) == 1
    assert sum(map(len, moved_at.values())) < len(placed) / 2  # the others did not move at all


def test_moves_go_where_filters_allow() -> None:
    hosts, placed = loaded({"a": 4, "b": 0, "c": 0, "d": 0}, b={"enabled": False}, c={"memory_mb": 512})
    moves = balance.moves(hosts, placed, OPTIONS)
    assert {(move.source, move.target) for move in moves} == {("a", "d")}


def test_a_group_is_kept_apart_and_together() -> None:
    hosts, placed = loaded({"a": 3, "b": 1})
    apart = Group("g", "anti-affinity", 1, {"a-0": "a", "b-0": "b"})
    pinned = [
        Placed(dataclasses.replace(guest.request, group=apart), guest.host)
        if guest.request.uuid in apart.members
        else Placed(dataclasses.replace(guest.request, requested_host=guest.host), guest.host)
        for guest in placed
    ]
    assert balance.moves(hosts, pinned, OPTIONS) == []
    together = Group("g", "affinity", 1, {"a-0": "a", "a-1": "a", "a-2": "a"})
    pinned = [Placed(dataclasses.replace(guest.request, group=together), guest.host) for guest in placed[:3]]
    assert balance.moves(hosts, pinned, OPTIONS) == []
    alone = Group("g", "affinity", 1, {"a-0": "a"})
    (move,) = balance.moves(hosts, [Placed(dataclasses.replace(placed[0].request, group=alone), "a")], OPTIONS)
    assert (move.uuid, move.target) == ("a-0", "b")


def test_the_number_of_moves_what_they_send_and_their_worth_are_bounded() -> None:
    hosts, placed = loaded({"a": 8, "b": 0})
    assert len(balance.moves(hosts, placed, OPTIONS, Rules(max_moves=2))) == 2
    assert balance.moves(hosts, placed, OPTIONS, Rules(min_gain=0.5, enough=9.0)) == []
    sending = [dataclasses.replace(guest, moved_mib=1000 + 100 * at) for at, guest in enumerate(placed)]
    moves = balance.moves(hosts, sending, OPTIONS, Rules(max_mib=2500))
    assert [move.moved_mib for move in moves] == [1000, 1100]  # of equal ones, those that send least
    assert balance.moves(hosts, [dataclasses.replace(guest, fixed=True) for guest in placed], OPTIONS) == []


def test_a_host_takes_what_its_peaks_leave_room_for() -> None:
    hosts, placed = loaded({"a": 6, "b": 0, "c": 0})
    busy = [dataclasses.replace(guest, peak=Peak(1.0, 1024.0)) for guest in placed]

    def targets(**peaks: Peak) -> set[str]:
        return {move.target for move in balance.moves(hosts, busy, OPTIONS, peaks=peaks)}

    assert targets() == targets(b=Peak(1.0, 512.0), c=Peak()) == {"b", "c"}
    assert targets(b=Peak(7.5, 512.0)) == {"c"}
    assert targets(b=Peak(1.0, 7500.0)) == {"c"}
    assert targets(b=Peak(1.0, 512.0, pressure=0.5)) == {"c"}
    # what comes counts: after the first one, the next does not fit any more
    only = balance.moves(hosts, busy, OPTIONS, peaks={"b": Peak(6.5, 0.0), "c": Peak(8.0)})
    assert [move.target for move in only] == ["b"]
