# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPU that a host's operator gives its guests."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._model.cpu_mode import (
    CpuMode,
    cpu_mode_of,
    description_of,
    fault_of,
)

CUSTOM = {"cpu_mode": "custom", "cpu_models": ["Westmere", "Nehalem"], "cpu_model_extra_flags": ["PCID", "-vmx"]}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, None),
        ({"domain_type": "kvm"}, CpuMode("host-model")),
        ({"domain_type": "kvm", "cpu_mode": "none"}, None),
        ({"domain_type": "qemu"}, None),
        ({"domain_type": "qemu", "cpu_mode": "maximum"}, CpuMode("maximum")),
        (CUSTOM, CpuMode("custom", "Westmere", (("pcid", "require"), ("vmx", "disable")))),
    ],
)
def test_the_cpu_of_a_host(facts: dict[str, t.Any], expected: CpuMode | None) -> None:
    assert cpu_mode_of(facts) == expected


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({}, None),
        (CUSTOM, None),
        ({"cpu_mode": "custom", "cpu_models": []}, "cpu_mode is custom, and cpu_models is empty: name one"),
        ({"cpu_models": ["Westmere"]}, "cpu_models is Westmere, which counts with cpu_mode=custom only"),
        ({"cpu_mode": "none", "cpu_model_extra_flags": ["pcid"]}, "cpu_model_extra_flags does not count"),
        ({"cpu_mode": "custom", "cpu_models": ["<x>"]}, "cpu_models and cpu_model_extra_flags: '<x>' is not a name"),
    ],
)
def test_options_that_contradict_each_other(options: dict[str, t.Any], fault: str | None) -> None:
    said = fault_of(options)
    assert said is None if fault is None else (said or "").startswith(fault)


def test_cpus_that_differ_are_told_differently() -> None:
    passed = {"cpu_mode": "host-passthrough", "cpu_model": "AMD EPYC"}
    assert [
        description_of(facts) for facts in (CUSTOM, passed, {"cpu_model": "AMD EPYC", "domain_type": "kvm"}, {})
    ] == ["custom Westmere +pcid -vmx", "host-passthrough AMD EPYC", "host-model", "none"]
