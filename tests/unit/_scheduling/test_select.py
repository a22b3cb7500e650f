# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The scheduler's decisions: capacity, order, ties, alternates, and that an examination kept up to date is exact."""

from __future__ import annotations

import collections
import random
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import kinds
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import HostState, Request
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.select import select

CHOICES = ["simple", "chance", "zone", "filter_scheduler"]


def host(name: str, **fields: t.Any) -> HostState:
    return HostState(**{"name": name, "vcpus": 8, "memory_mb": 8192, "disk_gb": 100, **fields})


def request(name: str = "web-1", **fields: t.Any) -> Request:
    return Request(**{"uuid": f"uuid-{name}", "name": name, "vcpus": 1, "memory_mb": 512, "disk_gb": 1, **fields})


def several(count: int, **fields: t.Any) -> list[Request]:
    return [request(f"web-{number}", **fields) for number in range(1, count + 1)]


def chosen(
    hosts: list[HostState], requests: list[Request], choice: str = "simple", **options: t.Any
) -> list[str | None]:
    return [decision.host for decision in select(hosts, requests, choice, **options)]


hosts_of_any_kind = st.lists(
    st.builds(
        host,
        name=st.sampled_from([f"hv{number}" for number in range(12)]),
        vcpus=st.integers(0, 16),
        memory_mb=st.integers(0, 8192),
        disk_gb=st.integers(0, 100),
        up=st.booleans(),
        enabled=st.booleans(),
        zone=st.sampled_from(["nova", "west"]),
        vcpus_used=st.integers(0, 8),
        memory_mb_used=st.integers(0, 4096),
        disk_gb_used=st.integers(0, 50),
        reserved_memory_mb=st.integers(0, 1024),
        cpu_ratio=st.sampled_from([0.5, 1.0, 4.0, 16.0]),
        ram_ratio=st.sampled_from([0.9, 1.0, 1.5]),
    ),
    max_size=8,
    unique_by=lambda state: state.name,
)
requests_of_any_kind = st.lists(
    st.builds(
        Request,
        uuid=st.uuids().map(str),
        name=st.just("web"),
        vcpus=st.integers(1, 6),
        memory_mb=st.sampled_from([64, 512, 3000]),
        disk_gb=st.integers(0, 30),
        availability_zone=st.sampled_from([None, "nova", "west"]),
        ignore_hosts=st.sampled_from([(), ("hv1",), ("hv1", "hv2")]),
    ),
    max_size=12,
)


@given(hosts_of_any_kind, requests_of_any_kind, st.sampled_from(CHOICES), st.integers(0, 9))
def test_never_over_capacity_and_never_on_a_host_that_is_no_candidate(
    hosts: list[HostState], requests: list[Request], choice: str, seed: int
) -> None:
    used: dict[str, list[Request]] = collections.defaultdict(list)
    for decision in select(hosts, requests, choice, random.Random(seed)):
        if decision.host is not None:
            used[decision.host].append(decision.request)
            assert decision.host not in decision.request.ignore_hosts
            assert decision.host not in decision.alternates
    for hypervisor in hosts:
        if not used[hypervisor.name]:
            continue
        assert hypervisor.up and hypervisor.enabled
        assert {taken.availability_zone for taken in used[hypervisor.name]} <= {None, hypervisor.zone}
        vcpus = hypervisor.vcpus_used + sum(taken.vcpus for taken in used[hypervisor.name])
        memory = hypervisor.memory_mb_used + sum(taken.memory_mb for taken in used[hypervisor.name])
        disk = hypervisor.disk_gb_used + sum(taken.disk_gb for taken in used[hypervisor.name])
        assert vcpus <= (hypervisor.vcpus - hypervisor.reserved_vcpus) * hypervisor.cpu_ratio
        assert memory <= (hypervisor.memory_mb - hypervisor.reserved_memory_mb) * hypervisor.ram_ratio
        # who asks for no disk fits where too much is used already
        assert (
            disk == hypervisor.disk_gb_used
            or disk <= (hypervisor.disk_gb - hypervisor.reserved_disk_gb) * hypervisor.disk_ratio
        )


@given(hosts_of_any_kind, requests_of_any_kind, st.sampled_from(["simple", "zone", "filter_scheduler"]))
def test_a_batch_decides_as_single_calls_on_updated_hosts_would(
    hosts: list[HostState], requests: list[Request], choice: str
) -> None:
    """The examination that is kept up to date must not differ from a fresh one, explanations included."""
    state = {hypervisor.name: hypervisor for hypervisor in hosts}
    for decision in select(hosts, requests, choice):
        (alone,) = select(state.values(), [decision.request], choice)
        assert alone == decision
        if decision.host is not None:
            state[decision.host] = state[decision.host].after(decision.request)


def test_a_refused_host_is_explained_as_what_was_claimed_since_left_it() -> None:
    """Refused for its memory at first, then another kind of request took the last vCPU, which is asked about before."""
    small, large = request("small", memory_mb=64), request("large", memory_mb=512)
    decisions = select([host("hv1", vcpus=1, memory_mb=356, cpu_ratio=1.0, ram_ratio=1.0)], [large, small, large])
    refusals = [{step.name: dict(step.removed) for step in decision.filters if step.removed} for decision in decisions]
    assert [decision.host for decision in decisions] == [None, "hv1", None]
    assert refusals == [
        {"ram": {"hv1": "has 356 MiB in all, 512 are asked for"}},
        {},
        {"vcpu": {"hv1": "0 of 1 vCPUs free"}},
    ]


def test_refused_hosts_are_told_by_name_whenever_each_was_refused() -> None:
    """The first host passes, until the first request has taken its vCPU."""
    hosts = [host("hv1", vcpus=1, cpu_ratio=1.0), host("hv2", vcpus=0, cpu_ratio=1.0)]
    _, refused = select(hosts, [request("first"), request("second")])
    assert [list(step.removed) for step in refused.filters if step.removed] == [["hv1", "hv2"]]
    assert refused.message.index("hv1") < refused.message.index("hv2")


@given(hosts_of_any_kind, requests_of_any_kind, st.sampled_from(CHOICES), st.randoms(use_true_random=False))
def test_the_order_of_the_hosts_does_not_matter(
    hosts: list[HostState], requests: list[Request], choice: str, shuffler: random.Random
) -> None:
    shuffled = list(hosts)
    shuffler.shuffle(shuffled)
    assert select(hosts, requests, choice, random.Random(1)) == select(shuffled, requests, choice, random.Random(1))


@given(hosts_of_any_kind, requests_of_any_kind)
def test_the_counts_of_an_explanation_add_up(hosts: list[HostState], requests: list[Request]) -> None:
    for decision in select(hosts, requests):
        left = len(hosts)
        for step in decision.filters:
            assert step.start == left
            assert step.end == step.start - len(step.removed)
            left = step.end
        assert (left == 0) == (decision.host is None)


@pytest.mark.parametrize("choice", ["simple", "zone", "filter_scheduler"])
def test_four_equal_instances_spread_evenly_over_two_equal_hosts(choice: str) -> None:
    assert chosen([host("hv2"), host("hv1")], several(4), choice) == ["hv1", "hv2", "hv1", "hv2"]


def test_simple_takes_the_fewest_cores_in_use_whatever_the_size() -> None:
    assert chosen([host("big", vcpus=64, vcpus_used=3), host("small", vcpus_used=2)], [request()]) == ["small"]


def test_zone_takes_the_zone_with_the_fewest_cores_in_use_first() -> None:
    hosts = [host("a1", zone="a", vcpus_used=1), host("a2", zone="a", vcpus_used=1), host("b1", zone="b", vcpus_used=1)]
    assert chosen(hosts, several(2), "zone") == ["b1", "a1"]
    assert chosen(hosts, [request(availability_zone="a")], "zone") == ["a1"]


def test_chance_uses_every_host_that_passes_and_no_other() -> None:
    hosts = [host("hv1"), host("hv2"), host("hv3", up=False)]
    picks = [chosen(hosts, [request()], "chance", rng=random.Random(seed))[0] for seed in range(40)]
    assert set(picks) == {"hv1", "hv2"}


def test_weights_are_normalised_over_what_passed() -> None:
    """Nova's sum by hand, from 0 to the best: cpu (0.5, 1, 0.75) + ram (1, 0.5, 0.625) + disk (1, 1, 1)."""
    hosts = [
        host("a", vcpus=8, memory_mb=8000),
        host("b", vcpus=16, memory_mb=4000),
        host("c", vcpus=12, memory_mb=5000),
        host("off", vcpus=9999, memory_mb=99999, enabled=False),
    ]
    (decision,) = select(hosts, [request()], "filter_scheduler")
    assert [(state.name, state.score) for state in decision.weighed] == [("a", 2.5), ("b", 2.5), ("c", 2.375)]
    assert decision.weighed[0].details == {"cpu": 0.5, "ram": 1.0, "disk": 1.0}


def test_a_negative_multiplier_packs() -> None:
    pack = Options(
        cpu_weight_multiplier=-1, ram_weight_multiplier=-1, disk_weight_multiplier=-1, io_ops_weight_multiplier=0
    )
    hosts = [host("empty"), host("used", vcpus_used=2, memory_mb_used=1024, disk_gb_used=2)]
    assert chosen(hosts, several(3), "filter_scheduler", options=pack) == ["used"] * 3


def test_the_subset_draws_among_the_best_only() -> None:
    hosts = [host(f"hv{number}", vcpus_used=number) for number in range(5)]
    picks = {chosen(hosts, [request()], host_subset_size=2, rng=random.Random(seed))[0] for seed in range(30)}
    assert picks == {"hv0", "hv1"}


def test_alternates_are_the_next_best_and_as_many_as_attempts_are_left() -> None:
    hosts = [host(f"hv{number}", vcpus_used=number) for number in range(5)]
    (first,) = select(hosts, [request()])
    assert (first.host, first.alternates) == ("hv0", ("hv1", "hv2"))
    (second,) = select(hosts, [request(ignore_hosts=("hv0",))])
    assert (second.host, second.alternates) == ("hv1", ("hv2",))
    (last,) = select(hosts, [request(ignore_hosts=("hv0", "hv1"))])
    assert (last.host, last.alternates) == ("hv2", ())


def test_the_hosts_that_were_given_are_not_changed() -> None:
    hosts = [host("hv1")]
    select(hosts, several(3))
    assert hosts == [host("hv1")]


def test_an_unknown_choice_is_refused_with_those_that_exist() -> None:
    with pytest.raises(NovaliteError, match=r"'best'.*simple, chance, zone, filter_scheduler"):
        select([host("hv1")], [request()], "best")


def test_a_filter_that_runs_once_is_asked_once_for_equal_requests() -> None:
    asked: collections.Counter[str] = collections.Counter()

    def static(state: HostState, _request: Request, _options: Options) -> str | None:
        asked[f"static {state.name}"] += 1
        return None

    def dynamic(state: HostState, _request: Request, _options: Options) -> str | None:
        asked[f"dynamic {state.name}"] += 1
        return None

    filters = [kinds.Filter("dynamic", dynamic), kinds.Filter("static", static, once=True)]
    assert chosen([host("hv1"), host("hv2")], several(5), filters=filters) == ["hv1", "hv2", "hv1", "hv2", "hv1"]
    # once for all, and then again for each host that was chosen before another choice
    assert asked == {"static hv1": 1, "static hv2": 1, "dynamic hv1": 3, "dynamic hv2": 3}


def test_a_filter_that_looks_at_other_hosts_is_asked_about_all_again() -> None:
    """Affinity: once one host holds an instance, every other host is refused, though nothing changed on it."""
    placed: list[str] = []

    def together(state: HostState, _request: Request, _options: Options) -> str | None:
        return None if not placed or state.num_instances else "has none of the group"

    def remember(state: HostState, _request: Request, _options: Options) -> str | None:
        if state.num_instances and state.name not in placed:
            placed.append(state.name)
        return None

    filters = [kinds.Filter("remember", remember), kinds.Filter("affinity", together, looks_around=True)]
    assert chosen([host("hv1"), host("hv2")], several(3), filters=filters) == ["hv1", "hv1", "hv1"]
