# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reserve for the death of a host: everybody is placed within what the others have, or named with the reason."""

from __future__ import annotations

import dataclasses
import typing as t

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import reserve
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.balance import Placed
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import Group, HostState, Request

OPTIONS = Options()


@dataclasses.dataclass
class Cluster:
    hosts: dict[str, HostState] = dataclasses.field(default_factory=dict)
    placed: list[Placed] = dataclasses.field(default_factory=list)

    def host(self, name: str, memory_mb: int = 8192, **fields: t.Any) -> None:
        self.hosts[name] = HostState(name, **{"vcpus": 64, "memory_mb": memory_mb, "disk_gb": 100, **fields})

    def guest(self, uuid: str, host: str, memory_mb: int = 1024, **fields: t.Any) -> None:
        request = Request(**{"uuid": uuid, "name": uuid, "vcpus": 1, "memory_mb": memory_mb, "disk_gb": 1, **fields})
        self.hosts[host] = self.hosts[host].after(request)
        self.placed.append(Placed(request, host))

    def losses(self, **bound: t.Sequence[reserve.Stranded]) -> dict[str, reserve.Loss]:
        return {loss.host: loss for loss in reserve.losses(self.hosts.values(), self.placed, bound, OPTIONS)}


MEMORY = st.integers(1, 8).map(lambda number: number * 512)
CLUSTERS = st.tuples(
    st.lists(st.tuples(MEMORY.map(lambda mib: 4 * mib), st.booleans(), st.booleans()), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), MEMORY), max_size=20),
)


@settings(deadline=None)
@given(CLUSTERS)
def test_everybody_finds_room_that_there_is_or_is_named(
    drawn: tuple[list[tuple[int, bool, bool]], list[tuple[int, int]]],
) -> None:
    cluster = Cluster()
    for number, (memory_mb, up, enabled) in enumerate(drawn[0]):
        cluster.host(f"hv{number}", memory_mb, up=up, enabled=enabled)
    for number, (at, memory_mb) in enumerate(drawn[1]):
        cluster.guest(f"g{number}", f"hv{at % len(drawn[0])}", memory_mb)
    losses = cluster.losses()
    assert set(losses) == {placed.host for placed in cluster.placed}
    for name, loss in losses.items():
        guests = {placed.request.uuid: placed.request for placed in cluster.placed if placed.host == name}
        assert loss.instances == len(guests) == sum(loss.takers.values()) + len(loss.stranded)
        assert {guest.uuid for guest in loss.stranded} <= set(guests)
        takers = [cluster.hosts[taker] for taker in loss.takers]
        assert all(host.up and host.enabled and host.name != name for host in takers)
        stays = sum(request.memory_mb for request in guests.values())
        stays -= sum(guests[guest.uuid].memory_mb for guest in loss.stranded)
        assert stays <= sum(host.memory_mb - host.memory_mb_used for host in takers)
        # it was asked before all that are smaller: no host has room for it beside those that are larger
        for guest in loss.stranded:
            size = guests[guest.uuid].memory_mb
            larger = sum(request.memory_mb for request in guests.values() if request.memory_mb >= size)
            others = [host for host in cluster.hosts.values() if host.up and host.enabled and host.name != name]
            assert all(host.memory_mb_room < larger for host in others) and guest.name in guest.reason


def test_the_largest_is_placed_first() -> None:
    cluster = Cluster()
    cluster.host("hv1")
    cluster.host("hv2", 4096)
    cluster.host("hv10", 1024)
    for number in range(2):
        cluster.guest(f"small-{number}", "hv1")
    cluster.guest("large", "hv1", 4096)
    loss = cluster.losses()["hv1"]
    assert (loss.instances, loss.takers) == (3, {"hv2": 1, "hv10": 1})
    assert [guest.name.partition("-")[0] for guest in loss.stranded] == ["small"]
    assert "ram removed 2 (hv10: " in loss.stranded[0].reason


def test_members_that_die_with_their_host_bind_nobody() -> None:
    cluster = Cluster()
    for name in ("hv1", "hv2", "hv3"):
        cluster.host(name)
    members = {"together-0": "hv1", "together-1": "hv1"}
    for uuid in members:
        cluster.guest(uuid, "hv1", group=Group("one", "affinity", members=members))
    loss = cluster.losses()["hv1"]
    assert (list(loss.takers.values()), loss.stranded) == ([2], ())
    members = {"apart-0": "hv2", "apart-1": "hv3"}
    for uuid, host in members.items():
        cluster.guest(uuid, host, group=Group("two", "anti-affinity", members=members))
    assert cluster.losses()["hv2"].takers == {"hv1": 1}
    cluster.hosts["hv1"] = cluster.hosts["hv1"]._replace(enabled=False)
    (alone,) = cluster.losses()["hv2"].stranded
    assert alone.name == "apart-0" and "server_group_anti_affinity removed 1 (hv3: " in alone.reason


def test_many_at_a_time_and_an_earlier_failure_are_no_want_of_room() -> None:
    cluster = Cluster()
    cluster.host("hv1", 65536)
    cluster.host("hv2", 65536)
    for number in range(20):
        cluster.guest(f"g{number}", "hv1", ignore_hosts=["hv2"])
    every = Options.of({"enabled_filters": ["retry", "compute", "io_ops", "ram"]})
    (loss,) = reserve.losses(cluster.hosts.values(), cluster.placed, {}, every)
    assert (loss.takers, loss.stranded) == ({"hv2": 20}, ())


def test_those_that_are_bound_to_their_host_are_named_first() -> None:
    cluster = Cluster()
    cluster.host("hv1")
    cluster.host("hv2", 512)
    cluster.guest("free", "hv1")
    bound = reserve.Stranded("bound", "bound", "it has a volume")
    loss = cluster.losses(hv1=[bound])["hv1"]
    assert (loss.instances, loss.takers, [guest.uuid for guest in loss.stranded]) == (2, {}, ["bound", "free"])
    assert cluster.losses(hv2=[bound])["hv2"] == reserve.Loss("hv2", 1, {}, (bound,))
