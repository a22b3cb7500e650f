# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sockets, cores and threads as Nova 34's own code chooses them for the same flavor and image."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._model.cpu_topology import topology_of


def of(vcpus: int, specs: dict[str, str], properties: dict[str, str]) -> tuple[int, ...] | None:
    flavor = {"name": "f", "vcpus": vcpus, "extra_specs": {f"hw:cpu_{key}": value for key, value in specs.items()}}
    return topology_of(flavor, {"name": "i", "properties": {f"hw_cpu_{k}": value for k, value in properties.items()}})


# What get_best_cpu_topology() of nova 34.0.0 answered
@pytest.mark.parametrize(
    ("vcpus", "specs", "properties", "expected"),
    [
        (4, {"cores": "2"}, {}, (2, 2, 1)),
        (8, {"sockets": "2", "threads": "2"}, {}, (2, 2, 2)),
        (8, {"max_sockets": "2"}, {}, (2, 4, 1)),
        (16, {"max_sockets": "2", "max_cores": "4"}, {}, (2, 4, 2)),
        (6, {"threads": "2"}, {"cores": "3"}, (2, 3, 1)),
        (8, {"cores": "4", "max_cores": "4"}, {"max_cores": "2"}, (8, 1, 1)),
        (4, {"sockets": "3"}, {}, (4, 1, 1)),
        (7, {"max_sockets": "1"}, {}, (1, 7, 1)),
        (12, {"sockets": "2", "cores": "3", "threads": "2"}, {"max_threads": "1"}, (12, 1, 1)),
    ],
)
def test_the_topology_is_novas(
    vcpus: int, specs: dict[str, str], properties: dict[str, str], expected: tuple[int, int, int]
) -> None:
    assert of(vcpus, specs, properties) == expected


def test_without_a_word_of_it_the_host_chooses() -> None:
    assert of(4, {}, {}) is None
    other: t.Any = {"name": "f", "vcpus": 4, "extra_specs": {"hw:cpu_policy": "shared"}}
    assert topology_of(other, {}) is None


@pytest.mark.parametrize(
    ("specs", "properties", "message"),
    [
        ({"max_sockets": "1", "max_cores": "2", "max_threads": "1"}, {}, "has 4 vCPUs, which 1 sockets, 2 cores and 1"),
        ({"max_cores": "2"}, {"max_cores": "4"}, "hw_cpu_max_cores=4, above flavor 'f''s 2"),
        ({"max_cores": "2"}, {"cores": "4"}, "hw_cpu_cores=4, above the 2 that it may have"),
        ({"cores": "many"}, {}, "hw:cpu_cores is 'many'; use a number from 1"),
        ({}, {"threads": "0"}, "hw_cpu_threads is '0'"),
    ],
)
def test_what_cannot_be_is_refused(specs: dict[str, str], properties: dict[str, str], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        of(4, specs, properties)
