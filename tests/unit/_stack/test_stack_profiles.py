# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._stack.document import (
    ProfileError,
    merged,
    resolved,
    without_nulls,
)

leaves = st.none() | st.integers() | st.sampled_from(["", "x"]) | st.lists(st.integers(), max_size=2)
keys = st.sampled_from(["a", "b", "c"])
mappings: st.SearchStrategy[dict[str, t.Any]] = st.recursive(
    st.dictionaries(keys, leaves, max_size=3),
    lambda inner: st.dictionaries(keys, leaves | inner, max_size=3),
    max_leaves=8,
)


def leaf_paths(value: t.Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], t.Any]:
    if isinstance(value, dict) and value:
        return {at: leaf for key, item in value.items() for at, leaf in leaf_paths(item, (*path, key)).items()}
    return {path: value}


@given(mappings, mappings)
def test_what_lies_above_wins(below: dict[str, t.Any], above: dict[str, t.Any]) -> None:
    result = leaf_paths(merged(below, above))
    for path, leaf in leaf_paths(above).items():
        if leaf != {}:
            assert result[path] == leaf


@given(mappings, mappings)
def test_what_nothing_lies_above_stays(below: dict[str, t.Any], above: dict[str, t.Any]) -> None:
    result = leaf_paths(merged(below, above))
    over = leaf_paths(above)
    for path, leaf in leaf_paths(below).items():
        covered = [other for other, value in over.items() if value != {} and path[: len(other)] == other]
        replaced = [other for other in over if other[: len(path)] == path]
        if leaf != {} and not covered and not replaced:
            assert result[path] == leaf


@given(mappings, mappings, mappings)
def test_merging_is_associative_and_leaves_its_arguments_alone(
    first: dict[str, t.Any], second: dict[str, t.Any], third: dict[str, t.Any]
) -> None:
    before = repr((first, second, third))
    left = merged(merged(first, second), third)
    right = merged(first, merged(second, third))
    assert repr((first, second, third)) == before
    # what lies lower down shows where a mapping was laid over something else: only the last such place can differ
    if not _mixed(first, second, third):
        assert left == right


def _mixed(*values: dict[str, t.Any]) -> bool:
    """Tell whether one key holds a mapping here and something else there."""
    shared = {key for value in values for key in value}
    for key in shared:
        values_of_key = [value[key] for value in values if key in value]
        kinds = {isinstance(item, dict) for item in values_of_key}
        if len(kinds) == 2 or (kinds == {True} and _mixed(*values_of_key)):
            return True
    return False


@given(mappings)
def test_merging_with_nothing_or_itself_changes_nothing(value: dict[str, t.Any]) -> None:
    assert merged(value, {}) == merged({}, value) == merged(value, value) == value


def test_a_null_takes_away_and_says_nothing() -> None:
    profiles = {"web": {"key": "mine", "metadata": {"a": "1", "b": "2"}}}
    assert resolved({"name": "x", "profile": "web", "key": None, "metadata": {"a": None}}, profiles) == {
        "name": "x",
        "metadata": {"b": "2"},
    }
    assert without_nulls({"a": None, "b": {"c": None}}) == {"b": {}}


def test_later_profiles_win_and_lists_are_replaced() -> None:
    profiles = {
        "base": {"security_groups": ["a"], "metadata": {"x": "base", "y": "base"}},
        "one": {"profile": "base", "security_groups": ["b", "c"]},
        "two": {"metadata": {"x": "two"}},
        "empty": None,
    }
    assert resolved({"profile": ["one", "two", "empty"]}, t.cast("dict[str, dict[str, t.Any]]", profiles)) == {
        "security_groups": ["b", "c"],
        "metadata": {"x": "two", "y": "base"},
    }


def test_a_profile_may_be_used_twice_but_not_by_itself() -> None:
    profiles: dict[str, dict[str, t.Any]] = {"base": {"a": 1}, "one": {"profile": "base"}, "two": {"profile": "base"}}
    assert resolved({"profile": ["one", "two"]}, profiles) == {"a": 1}
    with pytest.raises(ProfileError, match="leads to itself: loop -> loop"):
        resolved({"profile": "loop"}, {"loop": {"profile": "loop"}})
