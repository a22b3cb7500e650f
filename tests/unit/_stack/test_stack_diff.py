# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._stack import plan
from ansible_collections.novalite.cloud.plugins.module_utils._stack.plan import Change, Item

names = st.sampled_from(["a", "b", "c"])
networks = st.lists(
    st.fixed_dictionaries({"name": names, "fixed_ip": st.sampled_from([None, "10.0.0.5", "10.0.0.6"])}), max_size=2
)
FIELDS: dict[str, st.SearchStrategy[t.Any]] = {
    "flavor": names,
    "image": names,
    "key": names,
    "hostname": names,
    "networks": networks,
    "security_groups": st.lists(names, max_size=3, unique=True),
    "metadata": st.dictionaries(names, names, max_size=3),
    "config_drive": st.booleans(),
    "user_data": names,
}
lives = st.fixed_dictionaries({**FIELDS, "vm_state": st.just("active"), "launched_at": st.just(1)})
wishes = st.fixed_dictionaries({}, optional=FIELDS)


def brought_about(desired: dict[str, t.Any], live: dict[str, t.Any]) -> dict[str, t.Any]:
    """The server after the plan was carried out: what was asked for, and the rest as it was."""
    after = {**live, **desired}
    after["metadata"] = {**live["metadata"], **desired.get("metadata", {})}
    if "networks" in desired:
        after["networks"] = [
            {**network, "fixed_ip": network["fixed_ip"] or "10.0.0.99"} for network in desired["networks"]
        ]
    return after


@given(wishes, lives)
def test_carried_out_once_nothing_is_left(desired: dict[str, t.Any], live: dict[str, t.Any]) -> None:
    assert plan.server_item("x", desired, brought_about(desired, live)) is None


@given(lives, st.data())
def test_only_what_is_said_is_compared(live: dict[str, t.Any], data: st.DataObject) -> None:
    said = data.draw(st.sets(st.sampled_from(sorted(FIELDS))))
    assert plan.server_item("x", {field: live[field] for field in said}, live) is None
    assert plan.server_item("x", {}, live) is None


@given(wishes, lives)
def test_changes_name_fields_that_were_said_and_differ(desired: dict[str, t.Any], live: dict[str, t.Any]) -> None:
    changes = list(plan.server_changes(desired, live))
    assert {change.field.partition(".")[0] for change in changes} <= set(desired)
    for change in changes:
        assert change.before != change.after or change.field in plan.HIDDEN
    item = plan.server_item("x", desired, live)
    replaced = {change.field.partition(".")[0] for change in changes} - set(plan.IN_PLACE)
    assert (item is None) == (not changes)
    assert item is None or item.action == ("-/+" if replaced else "~")


def test_what_is_said_of_a_network_without_an_address_takes_any() -> None:
    live = {"networks": [{"name": "a", "fixed_ip": "10.0.0.5"}], "vm_state": "active", "launched_at": 1}
    assert plan.server_item("x", {"networks": [{"name": "a", "fixed_ip": None}]}, live) is None
    item = plan.server_item("x", {"networks": [{"name": "a", "fixed_ip": "10.0.0.6"}]}, live)
    assert item is not None and item.changes == (Change("networks", ["a (10.0.0.5)"], ["a (10.0.0.6)"]),)


def test_a_build_that_failed_is_begun_again() -> None:
    failed = {"flavor": "a", "vm_state": "error", "launched_at": None}
    for live in (failed, {**failed, "launched_at": 1}, {**failed, "vm_state": "building"}):
        item = plan.server_item("x", {"flavor": "a"}, live)
        assert item is not None and item.action == "+" and item.note
    assert plan.server_item("x", {"flavor": "b"}, {**failed, "launched_at": 1}).action == "-/+"  # type: ignore[union-attr]


def test_secrets_are_in_no_plan() -> None:
    desired = {"user_data": "c2VjcmV0", "files": [{"path": "/a", "content": "secret"}]}
    live = {"user_data": "other-secret", "files": None, "vm_state": "active", "launched_at": 1}
    for there in (None, live):
        item = plan.server_item("x", desired, there)
        assert item is not None
        shown = repr(item.as_data()) + "\n".join(plan.table([item], "t"))
        assert "secret" not in shown and "c2Vj" not in shown


def test_the_table() -> None:
    rule = {"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "cidr": "0.0.0.0/0", "remote_group": None}
    items = [
        Item("+", "flavor", "small", (Change("vcpus", None, 1), Change("memory_mb", None, 512))),
        Item(
            "~",
            "security_group",
            "web",
            (Change("rules", [{**rule, "port_min": 80, "port_max": 80}], [{**rule, "port_min": 81, "port_max": 90}]),),
        ),
        Item("-/+", "server", "db", (Change("image", "old", "new"), Change("key", None, "me")), "needs a new instance"),
        Item("-", "server", "web-10"),
    ]
    assert plan.table(items, "Stack 'a':") == [
        "Stack 'a':",
        "  +    flavor          small   vcpus 1, memory_mb 512",
        "  ~    security_group  web     rules: - tcp 80 from 0.0.0.0/0",
        "                               rules: + tcp 81-90 from 0.0.0.0/0",
        "  -/+  server          db      image: old -> new",
        "                               key: none -> me",
        "                               (needs a new instance)",
        "  -    server          web-10",
        "Plan: 1 to add, 1 to change, 1 to replace, 1 to remove.",
    ]
    assert plan.table([], "t") == ["t", "Plan: nothing to do."]
