# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requirements and ranks: what they mean, and that whatever else is written is refused and never run."""

from __future__ import annotations

import re
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.expressions import (
    MAX_DEPTH,
    MAX_LENGTH,
    compiled,
    evaluate,
    evaluate_number,
)
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import Aggregate, HostState

HOST = HostState(
    name="hv1",
    vcpus=8,
    memory_mb=8192,
    disk_gb=100,
    memory_mb_used=2048,
    zone="west",
    traits=("CUSTOM_SSD",),
    aggregates=(Aggregate("fast", None, {"rack": "a1"}),),
    facts={"hypervisor_type": "QEMU", "cpu_info": '{"model": "EPYC"}', "grade": 2.5},
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("free_ram_mb > 4096", True),
        ("free_ram_mb = 6144", True),
        ("free_ram_mb != 6144", False),
        ("free_ram_mb >= 6145 or zone = 'west'", True),
        ('free_ram_mb > 4096 and not (zone = "west" or zone = "east")', False),
        ("vcpus = 8 & zone != 'east' | 1 = 2", True),
        ("! (vcpus = 8)", False),
        ("not not vcpus = 8", True),
        ("vcpus = 1 or vcpus = 8 and disk_gb = 100", True),  # and binds closer
        ("memory_mb / 1024 - 2 * 3 = 2", True),
        ("-vcpus < -7", True),
        ("2 - 3 - 4 = -5", True),
        ("hypervisor_type = 'QEMU'", True),
        ("'EM' in hypervisor_type", True),
        ("'CUSTOM_SSD' in trait and 'fast' in aggregate", True),
        ("metadata.rack = 'a1'", True),
        ("cpu_info.model = 'EPYC'", True),
        ("grade >= 2.5", True),
        ("absent = 1", False),
        ("not absent = 1", True),
        ("absent != 1", False),
        ("zone > 1", False),  # a text and a number have no order
    ],
)
def test_what_is_true_of_a_host(text: str, value: bool) -> None:
    assert bool(evaluate(text, HOST)) is value


def test_a_rank_is_a_number() -> None:
    assert evaluate_number("free_ram_mb / memory_mb", HOST) == 0.75
    assert evaluate_number("absent", HOST) == 0
    assert evaluate_number("vcpus / 0", HOST) == 0
    assert evaluate_number("zone", HOST) == 0
    assert evaluate_number("zone = 'west'", HOST) == 1


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("free_ram_mb >", "'the end'"),
        ("(vcpus = 1", "'the end'"),
        ("vcpus = 1)", "')'"),
        ("vcpus memory_mb", "'memory_mb'"),
        ("__import__('os')", "\"('os')\""),
        ("vcpus = [1]", "'[1]'"),
        ("'open", '"\'open"'),
        ("1x = 2", "'1x = 2'"),
        ("", "'the end'"),
    ],
)
def test_an_expression_that_cannot_be_read_says_where(text: str, at: str) -> None:
    with pytest.raises(NovaliteError, match=re.escape(f"cannot be read at {at}")):
        evaluate(text, HOST)


def test_length_and_depth_are_bounded() -> None:
    with pytest.raises(NovaliteError, match="characters"):
        compiled("1 = 1 or " * MAX_LENGTH)
    with pytest.raises(NovaliteError, match="nested deeper"):
        compiled("(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1))


@given(st.text("()!&|<>=+-*/ '\"09.az_$", max_size=40))
def test_any_text_is_a_value_or_a_clear_refusal(text: str) -> None:
    try:
        value: t.Any = evaluate(text, HOST)
    except NovaliteError as error:
        assert repr(text) in str(error)
    else:
        assert value is None or isinstance(value, (bool, int, float, str, list, tuple, dict))
