# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups, hints, aggregates and the rest: each filter's words, where tests/parity compares only the answer."""

from __future__ import annotations

import json
import random
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling import extra_specs, plugins, versions
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.explain import explanation
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.options import Options
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import (
    Aggregate,
    Group,
    HostState,
    Request,
)
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.select import select


def host(name: str = "hv1", **fields: t.Any) -> HostState:
    return HostState(**{"name": name, "vcpus": 8, "memory_mb": 8192, "disk_gb": 100, **fields})


def request(number: int = 1, **fields: t.Any) -> Request:
    fixed = {"uuid": f"u{number}", "name": f"web-{number}", "vcpus": 1, "memory_mb": 512, "disk_gb": 1}
    return Request(**{**fixed, **fields})


def refusal(name: str, state: HostState, asked: Request, **options: t.Any) -> str | None:
    """Return what the filter says, asked as the scheduler asks it."""
    settings = Options(enabled_filters=[name], **options)
    (only,) = plugins.filters_for(settings)
    reason = only.passes(state, asked, settings)
    if not only.concerns(asked, settings):
        assert reason is None, "a filter that is not concerned refuses nothing"
    if only.refused is not None:
        assert (only.refused([state], asked, settings) == [0]) == (reason is not None)
    return reason


def aggregate(**metadata: str) -> dict[str, t.Any]:
    return {"aggregates": [Aggregate("one", None, metadata)]}


FACTS = {"hypervisor_type": "KVM", "hypervisor_version": 7002000, "arch": "x86_64", "cpu_model": "EPYC"}
PAIR = Group("g", "anti-affinity", 1, {"a": "hv1"})


@pytest.mark.parametrize(
    ("name", "state", "asked", "options", "reason"),
    [
        ("vcpu", host(vcpus_used=9), request(vcpus=0), {}, None),
        ("retry", host("HV1"), request(ignore_hosts=["hv1"]), {}, "failed to build it before"),
        ("traits", host(traits=["A"]), request(extra_specs={"trait:A": "required"}), {}, None),
        ("traits", host(), request(image_properties={"trait:A": "required"}), {}, "lacks the required traits A"),
        ("traits", host(traits=["A"]), request(extra_specs={"trait:A": "forbidden"}), {}, "has the forbidden traits A"),
        ("same_host", host(instances={"x": {}}), request(hints={"same_host": "x"}), {}, None),
        (
            "same_host",
            host(),
            request(hints={"same_host": ["x", "y"]}),
            {},
            "has none of the instances to be with (x, y)",
        ),
        (
            "different_host",
            host(instances={"x": {}}),
            request(hints={"different_host": ["x"]}),
            {},
            "has instances to be away from (x)",
        ),
        ("simple_cidr_affinity", host(address="10.1.0.9"), request(hints={"build_near_host_ip": "10.1.0.1"}), {}, None),
        (
            "simple_cidr_affinity",
            host(address="10.1.1.9"),
            request(hints={"build_near_host_ip": ["10.1.0.1"], "cidr": ["/24"]}),
            {},
            "has address 10.1.1.9, not in 10.1.0.0/24",
        ),
        ("server_group_anti_affinity", host("hv2"), request(group=PAIR), {}, None),
        ("server_group_anti_affinity", host("hv1"), request(group=PAIR, uuid="a"), {}, None),
        (
            "server_group_anti_affinity",
            host("hv1"),
            request(group=PAIR),
            {},
            "has 1 of the group's members, and 1 may share a host",
        ),
        (
            "server_group_affinity",
            host("hv2"),
            request(group=Group("g", "affinity", 1, {"a": "hv1"})),
            {},
            "has none of the group's members, which are on hv1",
        ),
        ("io_ops", host(num_io_ops=8), request(), {}, "has 8 disk operations under way, 8 at most"),
        ("aggregate_io_ops", host(num_io_ops=8, **aggregate(max_io_ops_per_host="9")), request(), {}, None),
        ("num_instances", host(num_instances=3), request(), {"max_instances_per_host": 4}, None),
        (
            "aggregate_num_instances",
            host(num_instances=2, **aggregate(max_instances_per_host="2")),
            request(),
            {},
            "has 2 instances, 2 at most",
        ),
        ("isolated_hosts", host(), request(), {"isolated_hosts": ["hv1"]}, "is kept for the isolated images"),
        (
            "isolated_hosts",
            host(),
            request(image_id="i"),
            {"isolated_images": ["i"]},
            "is not among the isolated hosts, the image is among the isolated images",
        ),
        (
            "compute_capabilities",
            host(facts=FACTS),
            request(extra_specs={"capabilities:cpu_info:model": "<in> Sky"}),
            {},
            "has cpu_info:model EPYC, the flavor asks for <in> Sky",
        ),
        (
            "compute_capabilities",
            host(facts=FACTS),
            request(extra_specs={"capabilities:gpu": "1", "ssd": "yes", "hw:x": "1"}),
            {},
            "has no gpu, the flavor asks for 1",
        ),
        (
            "image_properties",
            host(facts=FACTS),
            request(image_properties={"hw_vm_mode": "xen"}),
            {},
            "does not run guests that are xen",
        ),
        (
            "image_properties",
            host(facts=FACTS),
            request(image_properties={"img_hv_type": "qemu", "img_hv_requested_version": ">=8"}),
            {},
            "has hypervisor version 7.2.0, the image asks for >=8",
        ),
        (
            "image_properties",
            host(),
            request(root_gb=1, image_min_disk_gb=2),
            {},
            "would give 1 GiB of root disk, the image needs 2",
        ),
        ("image_properties", host(), request(root_gb=0, image_min_disk_gb=2), {}, None),
        (
            "aggregate_instance_extra_specs",
            host(**aggregate(ssd="no")),
            request(extra_specs={"ssd": "yes"}),
            {},
            "is in aggregates with ssd no, the flavor asks for yes",
        ),
        (
            "aggregate_image_properties_isolation",
            host(**aggregate(os="linux, bsd")),
            request(image_properties={"os": "dos"}),
            {},
            "is kept for images with os bsd, linux, this one has dos",
        ),
        (
            "aggregate_multitenancy_isolation",
            host(**aggregate(filter_tenant_id="a,b")),
            request(project_id="c"),
            {},
            "is kept for other projects than c",
        ),
        (
            "aggregate_type_affinity",
            host(**aggregate(instance_type="gold, large")),
            request(flavor_name="small"),
            {},
            "is kept for the flavors gold, large, not small",
        ),
        ("requirements", host(), request(requirements="vcpus > 8"), {}, "does not satisfy vcpus > 8"),
        ("metrics", host(), request(), {"metrics_weight_setting": {"load": -1}}, "does not report load"),
        (
            "json",
            host(),
            request(hints={"query": json.dumps(["and", [">=", "$vcpus_total", 8], ["not", ["=", "$host", "hv1"]]])}),
            {},
            None,  # Nova's own: `not` makes a list of [False], and a list is true
        ),
        (
            "json",
            host(),
            request(hints={"query": '["<", "$vcpus_total", 8]'}),
            {},
            'does not satisfy ["<", "$vcpus_total", 8]',
        ),
    ],
)
def test_a_refusal_says_why(
    name: str, state: HostState, asked: Request, options: dict[str, t.Any], reason: str | None
) -> None:
    assert refusal(name, state, asked, **options) == reason


@pytest.mark.parametrize("query", ["nonsense", '{"a": 1}', '["near", 1]', "[" * 3000, '["not", ["eval", 1]]'])
def test_a_query_that_is_none_fails_the_request_with_one_line(query: str) -> None:
    with pytest.raises(NovaliteError, match="the hint query="):
        refusal("json", host(), request(hints={"query": query}))


def test_a_network_that_is_none_fails_the_request_with_one_line() -> None:
    with pytest.raises(NovaliteError, match="make no network"):
        refusal("simple_cidr_affinity", host(), request(hints={"build_near_host_ip": "10.1.0.1", "cidr": "/99"}))


@pytest.mark.parametrize(
    ("value", "requirement", "matches"),
    [
        ("8", "= 8", True),
        ("9", "= 8", True),  # "=" is "at least"
        ("7", "= 8", False),
        ("8.0", "== 8", True),
        ("8", "8", True),
        ("8.0", "8", False),
        ("abc", ">= 1", False),
        ("8", ">=", False),
        ("a", "<or> b <or> a", True),
        ("a", "<or>", False),
        ("<or>", "<or> b <or> a", False),
        ("a b", "<all-in> a b", True),
        ("a", "<all-in>", False),
        ("abc", "<in> bc", True),
        ("10", "s< 9", True),
    ],
)
def test_operators_of_extra_specs(value: str, requirement: str, matches: bool) -> None:
    assert extra_specs.matches(value, requirement) is matches


@pytest.mark.parametrize(
    ("number", "required", "satisfied"),
    [
        (7002000, ">=7.2", True),
        (7002000, "==7.2.0", True),
        (7002001, ">7.2,<8", True),
        (10000000, "<9", False),
        (7002000, "7.2", False),
        (7002000, ">=seven", False),
    ],
)
def test_versions(number: int, required: str, satisfied: bool) -> None:
    assert versions.satisfies(number, required) is satisfied


@pytest.mark.parametrize(
    ("policy", "most", "placed"),
    [
        ("affinity", 1, ["hv1", "hv1", "hv1", "hv1"]),
        ("anti-affinity", 1, ["hv1", "hv2", None, None]),
        ("anti-affinity", 2, ["hv1", "hv2", "hv1", "hv2"]),
        ("soft-affinity", 1, ["hv1", "hv1", "hv1", "hv1"]),
        ("soft-anti-affinity", 1, ["hv1", "hv2", "hv1", "hv2"]),
    ],
)
def test_a_group_sees_the_members_that_the_same_call_placed(policy: str, most: int, placed: list[str | None]) -> None:
    group = Group("g", policy, most)
    # two flavors in one group: what was placed for one likeness counts for the other
    asked = [request(number, group=group, vcpus=1 + number % 2) for number in range(4)]
    options = Options(soft_affinity_weight_multiplier=50.0, soft_anti_affinity_weight_multiplier=50.0)
    decisions = select([host("hv1"), host("hv2")], asked, "filter_scheduler", options=options)
    assert [decision.host for decision in decisions] == placed


def test_an_aggregate_overrides_a_multiplier_for_its_hosts() -> None:
    big = host("big", vcpus=16, **aggregate(cpu_weight_multiplier="-1", ram_weight_multiplier="no number"))
    (decision,) = select([big, host("small")], [request()], "filter_scheduler")
    assert [(state.name, state.score) for state in decision.weighed] == [("small", 2.5), ("big", 1.0)]


def test_requirements_and_rank_of_a_request() -> None:
    hosts = [host("hv1", memory_mb=2048), host("hv2", memory_mb=4096), host("hv3", memory_mb=8192)]
    asked = request(requirements="memory_mb > 2048", rank="-memory_mb")
    (decision,) = select(hosts, [asked], "filter_scheduler")
    assert (decision.host, decision.alternates) == ("hv2", ("hv3",))


def test_a_metric_that_a_host_lacks() -> None:
    hosts = [host("hv1"), host("hv2", metrics={"load": 1.0})]
    setting: dict[str, t.Any] = {"metrics_weight_setting": {"load": -1.0}}
    with pytest.raises(NovaliteError, match="'hv1' does not report the metric 'load'"):
        select(hosts, [request()], "filter_scheduler", options=Options(**setting))
    (decision,) = select(hosts, [request()], "filter_scheduler", options=Options(**setting, metrics_required=False))
    assert decision.host == "hv2"


def test_the_whole_explanation_has_every_host() -> None:
    hosts = [host(f"hv{number:03}", up=number > 2) for number in range(300)]
    (decision,) = select(hosts, [request()], "filter_scheduler", explained_hosts=300)
    whole = explanation(decision, named=None)
    assert len(whole["weights"]) + sum(len(step["removed"]) for step in whole["filters"]) == 300


def test_the_best_are_shuffled_when_asked() -> None:
    hosts = [host("hv1"), host("hv2"), host("hv3", vcpus=4)]
    options = Options(shuffle_best_same_weighed_hosts=True)
    picks = {
        select(hosts, [request()], "filter_scheduler", random.Random(seed), options=options)[0].host
        for seed in range(30)
    }
    assert picks == {"hv1", "hv2"}
