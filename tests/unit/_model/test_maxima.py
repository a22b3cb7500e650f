# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Maxima that a flavor sets, and what a change of flavor needs a restart for."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model import hardware, maxima
from ansible_collections.novalite.cloud.plugins.module_utils._model.cpu_topology import topology_of
from ansible_collections.novalite.cloud.plugins.module_utils._model.maxima import MAX_RAM, MAX_VCPUS

OTHERS = ("hw:watchdog_action", "novalite:disk_backend", "quota:cpu_shares", "aggregate_instance_extra_specs:ssd")
FLAVORS = st.builds(
    lambda vcpus, memory_mb, root_gb, swap_mb, most, others: {
        "name": "m1.any",
        **{"vcpus": vcpus, "memory_mb": memory_mb, "root_gb": root_gb, "ephemeral_gb": 0, "swap_mb": swap_mb},
        "extra_specs": {**{name: str(number) for name, number in most.items()}, **others},
    },
    st.integers(1, 4),
    st.sampled_from([64, 128]),
    st.integers(0, 1),
    st.integers(0, 1),
    st.dictionaries(st.sampled_from([MAX_VCPUS, MAX_RAM]), st.sampled_from([128, 256])),
    st.dictionaries(st.sampled_from(OTHERS), st.sampled_from(["a", "b"])),
)


def flavor(vcpus: int = 1, memory_mb: int = 64, **specs: object) -> dict[str, t.Any]:
    sizes = {"vcpus": vcpus, "memory_mb": memory_mb, "root_gb": 1, "ephemeral_gb": 0, "swap_mb": 0}
    return {"name": "m1.any", **sizes, "extra_specs": {f"novalite:{name}": str(value) for name, value in specs.items()}}


def fixed(of: dict[str, t.Any]) -> tuple[t.Any, ...]:
    """Return what a guest of this flavor has from its start to its end."""
    own = {key: value for key, value in of["extra_specs"].items() if not key.startswith("aggregate")}
    vcpus = None if MAX_VCPUS in own else of["vcpus"]
    memory = None if MAX_RAM in own else of["memory_mb"]
    return own, vcpus, memory, of["root_gb"], of["ephemeral_gb"], of["swap_mb"]


@given(FLAVORS, FLAVORS)
def test_a_flavor_needs_no_restart_exactly_when_all_that_is_fixed_is_alike(
    old: dict[str, t.Any], new: dict[str, t.Any]
) -> None:
    assert (maxima.restart_reasons(old, new, "kvm") == []) is (fixed(old) == fixed(new))
    assert maxima.restart_reasons(old, old, "qemu") == []


@given(FLAVORS, FLAVORS)
def test_there_is_a_way_back_unless_cpus_are_emulated(old: dict[str, t.Any], new: dict[str, t.Any]) -> None:
    there, back = maxima.restart_reasons(old, new, "kvm"), maxima.restart_reasons(new, old, "kvm")
    assert (there == []) is (back == [])
    emulated = maxima.restart_reasons(old, new, "qemu")
    assert emulated == there or (there == [] and new["vcpus"] < old["vcpus"] and "emulates" in emulated[0])


def test_reasons_name_what_changes() -> None:
    small, large = flavor(1, 64, max_vcpus=4, max_ram=256), flavor(4, 256, max_vcpus=4, max_ram=256)
    assert maxima.restart_reasons(small, large, "qemu") == []
    assert maxima.restart_reasons(flavor(1), flavor(2, 128), "kvm") == [
        "its vCPUs are fixed, as its flavor has no novalite:max_vcpus",
        "its MiB of memory are fixed, as its flavor has no novalite:max_ram",
    ]
    assert maxima.restart_reasons(small, flavor(1, 64, max_vcpus=8, max_ram=256), "kvm") == [
        "novalite:max_vcpus changes from 4 to 8"
    ]
    assert maxima.restart_reasons(small, {**large, "root_gb": 9}, "kvm") == ["its root_gb changes from 1 to 9"]
    watched = {**large, "extra_specs": {**large["extra_specs"], "hw:watchdog_action": "reset"}}
    assert maxima.restart_reasons(small, watched, "kvm") == ["hw:watchdog_action changes from none to reset"]


@pytest.mark.parametrize(
    ("of", "message"),
    [
        (
            flavor(max_vcpus="many"),
            "flavor 'm1.any': extra spec novalite:max_vcpus is 'many'; use a number of vCPUs up",
        ),
        (flavor(max_ram="0"), "use a number of MiB of memory up to"),
        (flavor(max_vcpus="1" * 50), "use a number of vCPUs up to 1024"),
        (flavor(4, max_vcpus=2), "novalite:max_vcpus is 2, below its 4 vCPUs: raise it"),
        (flavor(1, 64, max_ram=32), "novalite:max_ram is 32, below its 64 MiB of memory: raise it"),
    ],
)
def test_impossible_maxima_are_refused_at_the_launch(of: dict[str, t.Any], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        hardware.checked(of, {"name": "tiny"})


def test_what_has_places_of_its_own_cannot_change() -> None:
    pinned = flavor(2, max_vcpus=4)
    pinned["extra_specs"]["hw:numa_nodes"] = "2"
    with pytest.raises(NovaliteError, match="has novalite:max_vcpus and hw:numa_nodes, which do not go together"):
        maxima.check(pinned)


def test_a_topology_has_places_for_all() -> None:
    threaded = flavor(1, max_vcpus=4)
    threaded["extra_specs"]["hw:cpu_threads"] = "2"
    assert topology_of(threaded, {}) == (2, 1, 2)
