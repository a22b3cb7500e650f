# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Server groups: made, joined, left, held against quotas, and kept by the scheduler up to the claim."""

from __future__ import annotations

import concurrent.futures
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    NotFoundError,
    NovaliteError,
    QuotaError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.server_groups import create_server_group
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import groups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.records import server_group
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.scheduler import scheduler
from ansible_collections.novalite.cloud.plugins.module_utils._scheduling.rows import Group
from tests.support.patience import GENEROUS
from tests.support.rows import DEMO


def make(cloud: t.Any, name: str, policy: str | None, limit: int | None = None, **params: t.Any) -> dict[str, t.Any]:
    items = [{"name": name, "policy": policy, "max_server_per_host": limit}]
    with transaction(cloud.engine) as connection:
        return server_group(connection, {"project": "demo", "server_groups": items, "state": "present", **params})


def ask(name: str, count: int = 1, **more: t.Any) -> dict[str, t.Any]:
    return {"name": name, "count": count, "flavor": "m1.nano", "image": "ami-tiny", **more}


def schedule(cloud: t.Any, instances: list[dict[str, t.Any]], **params: t.Any) -> dict[str, t.Any]:
    cloud.write(sa.update(tables.compute_host).values(last_seen_at=int(time.time())))
    with transaction(cloud.engine) as connection:
        return scheduler(connection, {"instances": instances, **params})


def test_a_group_is_made_once_and_removed(cloud: t.Any) -> None:
    first, again = make(cloud, "db", "anti-affinity", 2), make(cloud, "db", None)
    assert first["changed"] and not again["changed"]
    (group,) = again["server_groups"]
    assert group == {**first["server_groups"][0], "members": []}
    assert (group["policy"], group["max_server_per_host"]) == ("anti-affinity", 2)
    assert make(cloud, "db", None, state="absent")["changed"]
    assert not make(cloud, "db", None, state="absent")["changed"]


def test_what_makes_no_sense_is_refused(cloud: t.Any) -> None:
    with pytest.raises(NovaliteError, match="'db' does not exist yet: give its policy"):
        make(cloud, "db", None)
    with pytest.raises(NovaliteError, match="for anti-affinity only, not for affinity"):
        make(cloud, "db", "affinity", 2)


@pytest.mark.both_databases
def test_a_project_has_a_quota_of_groups(cloud: t.Any) -> None:
    for number in range(10):
        make(cloud, f"g{number}", "affinity")
    with pytest.raises(QuotaError, match="server_groups"):
        make(cloud, "g10", "affinity")


@pytest.mark.both_databases
@pytest.mark.parametrize("cloud", ["postgresql"], indirect=True)
def test_of_two_requests_for_groups_of_a_name_the_second_is_refused(cloud: t.Any) -> None:
    def create(policy: str) -> None:
        with transaction(cloud.engine) as connection:
            create_server_group(connection, {"id": DEMO, "name": "demo"}, "db", policy, None)

    with concurrent.futures.ThreadPoolExecutor(1) as worker:
        with transaction(cloud.engine) as connection:
            create_server_group(connection, {"id": DEMO, "name": "demo"}, "db", "affinity", None)
            second = worker.submit(create, "anti-affinity")
            with pytest.raises(concurrent.futures.TimeoutError):  # it waits for the first one
                second.result(timeout=1)
        with pytest.raises(ConflictError, match="has a server group 'db' already"):
            second.result(timeout=GENEROUS)
    assert make(cloud, "db", None)["server_groups"][0]["policy"] == "affinity"


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_server_joins_by_hint_and_leaves_when_deleted(cloud: t.Any, by: str) -> None:
    group = make(cloud, "db", "anti-affinity")["server_groups"][0]
    built = cloud.server(ask("db", 2, hints={"group": group[by]}))["to_build"]
    assert [instance["request"] for instance in built] == [{"group": group["id"]}] * 2
    members = make(cloud, "db", None)["server_groups"][0]["members"]
    assert members == sorted(instance["uuid"] for instance in built)
    with pytest.raises(ConflictError, match="has 2 servers"):
        make(cloud, "db", "affinity")
    cloud.server({"name": "db", "count": 2}, state="absent")
    cloud.state({"uuids": members, "state": "deleted"})
    assert make(cloud, "db", "affinity")["server_groups"][0]["members"] == []


@pytest.mark.both_databases
def test_a_group_has_a_quota_of_members_and_nothing_is_written_beyond(cloud: t.Any) -> None:
    make(cloud, "db", "anti-affinity")
    cloud.write(sa.insert(tables.quota).values(project_id="d" * 32, resource="server_group_members", hard_limit=2))
    before = cloud.dump()
    with pytest.raises(QuotaError, match="server_group_members of server group 'db': 3 wanted, 2 allowed"):
        cloud.server(ask("db", 3, hints={"group": "db"}))
    assert cloud.dump() == before


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"hints": {"group": "none"}}, NotFoundError, "unknown server group 'none'"),
        ({"hints": {"same_host": "ghost"}}, NotFoundError, "names the server 'ghost'"),
        ({"hints": {"different_host": ["web"]}}, NovaliteError, "names that server itself"),
        ({"hints": {"build_near_host_ip": "hv1"}}, NovaliteError, "'hv1' is not an IP address"),
        ({"hints": {"build_near_host_ip": "10.0.0.1", "cidr": "/40"}}, NovaliteError, "prefix length of 0 to 32"),
        ({"hints": {"cidr": "/24"}}, NovaliteError, "without build_near_host_ip"),
        ({"hints": {"host": ["hv1", "hv2"]}}, NovaliteError, "hint host of 'web': give one name or UUID, not 2"),
        ({"hints": {"host": {"name": "hv1"}}}, NovaliteError, "hint host of 'web': give names or UUIDs"),
        ({"hints": {"host": 5}}, NovaliteError, "hint host of 'web': give names or UUIDs"),
        ({"hints": {"query": "free_ram_mb"}}, NovaliteError, "give a JSON list"),
        ({"requirements": " "}, NovaliteError, "requirements of 'web': give an expression"),
    ],
)
def test_hints_that_mean_nothing_are_refused(
    cloud: t.Any, more: dict[str, t.Any], error: type[Exception], message: str
) -> None:
    before = cloud.dump()
    with pytest.raises(error, match=message):
        cloud.server(ask("web", **more))
    assert cloud.dump() == before


def test_a_hint_for_a_host_may_be_a_list_of_one(cloud: t.Any) -> None:
    built = cloud.server(ask("web", hints={"host": ["hv2"]}))["to_build"]
    assert [server["host"] for server in schedule(cloud, built)["instances"]] == ["hv2"]


def test_hints_name_servers_of_the_same_call(cloud: t.Any) -> None:
    first, second = cloud.server(ask("a"), ask("b", hints={"different_host": "a"}, rank="-num_instances"))["to_build"]
    assert second["request"] == {"different_host": [first["uuid"]], "rank": "-num_instances"}


def test_members_are_known_with_their_hosts(cloud: t.Any) -> None:
    group = make(cloud, "db", "anti-affinity", 2)["server_groups"][0]
    first, second = cloud.server(ask("db", 2, hints={"group": "db"}))["to_build"]
    cloud.place(first["uuid"], "hv2")
    with transaction(cloud.engine) as connection:
        known = groups.groups_of(connection, [second, {"uuid": "new", "request": {"group": group["id"]}}])
    expected = Group(group["id"], "anti-affinity", 2, {first["uuid"]: "hv2"})
    assert known == {second["uuid"]: expected, "new": expected}


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("policy", "limit", "hosts", "broken"),
    [
        ("anti-affinity", 1, ["hv1", "hv2"], False),
        ("anti-affinity", 1, ["hv1", "hv1"], True),
        ("anti-affinity", 2, ["hv1", "hv1"], False),
        ("affinity", None, ["hv1", "hv1"], False),
        ("affinity", None, ["hv1", "hv2"], True),
        ("soft-affinity", None, ["hv1", "hv2"], False),
    ],
)
def test_the_late_check_counts_what_is_claimed_now(
    cloud: t.Any, policy: str, limit: int | None, hosts: list[str], broken: bool
) -> None:
    """As if another run had placed a member between our choice and our claim: the choice knew of none."""
    group = make(cloud, "db", policy, limit)["server_groups"][0]
    built = cloud.server(ask("db", 2, hints={"group": "db"}))["to_build"]
    for instance, host in zip(built, hosts):
        cloud.place(instance["uuid"], host)
    chosen_on = Group(group["id"], policy, limit or 1, {})
    with transaction(cloud.engine) as connection:
        assert groups.violated(connection, {built[1]["uuid"]: (chosen_on, hosts[1])}) is broken


def test_a_failed_build_is_counted_until_one_succeeds(cloud: t.Any) -> None:
    def failed() -> dict[str, int]:
        c = tables.compute_host.c
        return {name: count for name, count in cloud.rows(sa.select(c.name, c.failed_builds)) if count}

    first, second, third = cloud.server(ask("web", 3))["to_build"]
    for server in (first, second):
        cloud.place(server["uuid"], "hv1")
    cloud.state({"uuids": [first["uuid"]], "state": "retry", "host": "hv1"})
    cloud.state({"uuids": [second["uuid"]], "state": "error", "host": "hv1", "reason": "no"})
    # refused before any host was asked
    cloud.state({"uuids": [third["uuid"]], "state": "error", "reason": "no address"})
    assert failed() == {"hv1": 2}
    cloud.place(first["uuid"], "hv1")
    cloud.state({"uuids": [first["uuid"]], "state": "active", "host": "hv1"})
    assert failed() == {}


def test_members_are_kept_apart_and_a_third_is_refused(cloud: t.Any) -> None:
    make(cloud, "db", "anti-affinity")
    built = cloud.server(ask("db", 3, hints={"group": "db"}))["to_build"]
    hosts = ["hv1", "hv2"]
    first = schedule(cloud, built[:1], limit_to=hosts)
    second = schedule(cloud, built[1:], limit_to=hosts, all_or_nothing=False)
    assert {instance["host"] for instance in first["instances"] + second["instances"]} == set(hosts)
    (refused,) = second["unplaced"]
    assert "server_group_anti_affinity removed 2" in refused["message"]
    assert "No valid host was found for 'db-3'" in second["explanations"][1]["lines"][0]


def test_a_server_goes_where_another_is(cloud: t.Any) -> None:
    (first,) = schedule(cloud, cloud.server(ask("a"))["to_build"], limit_to=["hv2"])["instances"]
    asked = cloud.server(ask("b", hints={"same_host": "a"}), ask("c", hints={"different_host": ["a", "b"]}))["to_build"]
    with_it, away = schedule(cloud, asked)["instances"]
    assert (first["host"], with_it["host"]) == ("hv2", "hv2") and away["host"] in ("hv1", "hv3")
    details = cloud.info(name="b", actions=True)[0]["actions"][0]["details"]
    assert "hv1: removed by same_host: has none of the instances" in "\n".join(details["scheduler"]["lines"])
