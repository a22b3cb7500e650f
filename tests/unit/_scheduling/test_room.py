# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""As many more fit as a scheduler would place."""

from __future__ import annotations

import dataclasses
import typing as t

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import capacity_tools
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import HostState, Request
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.select import select
from tests.support.examples import part_of

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


@settings(max_examples=part_of(60), deadline=None)
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
