# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters that put together what hosts said, and name what they are about to do it to."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.filter.by_host import by_host
from ansible_collections.novalite.cloud.plugins.filter.causes import LONGEST, causes
from ansible_collections.novalite.cloud.plugins.filter.columns import columns
from ansible_collections.novalite.cloud.plugins.filter.from_hosts import from_hosts
from ansible_collections.novalite.cloud.plugins.filter.looked import looked
from ansible_collections.novalite.cloud.plugins.filter.named import named

HOSTVARS: dict[str, dict[str, t.Any]] = {
    "hv1": {"outcome": {"host": "hv1", "error": None}, "waited": {"silent": [{"name": "a"}, {"name": "b"}]}},
    "hv2": {"outcome": {}, "waited": {"skipped": True}},  # as a skipped task registers it
    "hv3": {"waited": {"silent": []}},
    "hv4": {"outcome": {"host": "hv4"}, "waited": {"silent": [{"name": "c"}]}},
}
HOSTS = ["hv4", "hv3", "hv2", "hv1", "of no inventory"]


def test_outcomes_are_those_of_hosts_that_said_something() -> None:
    assert from_hosts(HOSTS, HOSTVARS, "outcome") == [{"host": "hv4"}, {"host": "hv1", "error": None}]
    assert from_hosts(dict.fromkeys(HOSTS, "a plan"), HOSTVARS, "outcome.host") == ["hv4", "hv1"]


def test_lists_become_one() -> None:
    assert from_hosts(HOSTS, HOSTVARS, "waited.silent") == [{"name": "c"}, {"name": "a"}, {"name": "b"}]


def test_by_host_leaves_out_who_has_nothing_unless_there_is_a_default() -> None:
    assert by_host(HOSTS, HOSTVARS, "outcome.host") == {"hv4": "hv4", "hv1": "hv1"}
    assert by_host(["hv3", "hv1"], HOSTVARS, "outcome.host", default="") == {"hv3": "", "hv1": "hv1"}
    assert by_host(["hv2"], HOSTVARS, "outcome") == {"hv2": {}}


def test_a_host_that_answers_lives_whatever_its_look_came_to() -> None:
    look, words = {"libvirt": True}, [{"host": "hv9", "reached": False}]
    steps = [{"result": {"kept": {}}}, {"result": look}]
    done: dict[str, dict[str, t.Any]] = {
        "answers": {"steps": steps},
        "answers for others": {"steps": [*steps, {"result": {"words": words}}]},
        "fails": {"failed": True, "msg": "no libvirt", "steps": steps[:1]},
        "is silent": {"unreachable": True, "msg": "no route"},
        "takes too long": {"failed": True, "timedout": {"period": 6}},
    }
    hostvars = {host: {"novalite_looked": result} for host, result in done.items()} | {"was never looked at": {}}
    assert looked([*hostvars, "of no inventory"], hostvars) == {
        "answers": look,
        "answers for others": look,
        "fails": {"libvirt": False},
    }
    assert looked([*hostvars, "of no inventory"], hostvars, "others") == {"answers for others": words}


def test_records_are_named_by_name_uuid_and_host() -> None:
    records: list[dict[str, t.Any]] = [
        {"name": "web", "uuid": "u1", "host": "hv1"},
        {"name": "db", "uuid": "u2", "host": None},
        {"name": "web", "uuid": "u1", "from_host": "hv1", "to_host": "hv2"},
        {"name": "data", "id": "v1", "does": "snapshot_delete", "host": "hv1"},
        {"uuid": "u3", "reason": "there is no such instance any more"},
    ]
    assert named(records) == [
        "web (u1) on hv1",
        "db (u2) on no host",
        "web (u1) from hv1 to hv2",
        "snapshot delete data (v1) on hv1",
        "u3: there is no such instance any more",
    ]


def test_of_many_causes_the_first_are_told_and_the_others_counted() -> None:
    assert causes([]) == ""
    assert causes(["'web': no room", "'db': no room", "'web': no room"]) == "'web': no room; 'db': no room"
    assert causes(["x" * 5000]) == f"{'x' * 297} ... {'x' * 297}"
    joined = causes([f"'web-{number}': its host does not answer" for number in range(100)])
    assert joined.startswith("'web-0': its host does not answer; 'web-1': ")
    assert joined.endswith("; and 83 more: novalite show says of each why")
    assert LONGEST - 50 < len(joined) < LONGEST + 80


def test_records_become_a_table() -> None:
    records: list[dict[str, t.Any]] = [{"address": "192.0.2.129", "server": "web"}, {"address": "::1", "server": None}]
    assert columns(records, "address", "server") == ["ADDRESS      SERVER", "192.0.2.129  web", "::1          -"]
    assert columns([], "address") == ["ADDRESS"]


def test_of_two_thousand_causes_the_rest_is_counted() -> None:
    text = causes([f"hv{number}: it did not answer" for number in range(2000)], "the table has them all")
    assert len(text) < LONGEST + 60 and text.endswith(" more: the table has them all")
