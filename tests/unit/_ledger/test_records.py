# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

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
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.quotas import check_quota
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.quota_records import (
    DEFAULTS,
    quota_limits,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.lookups import (
    flavor_by_name,
    network_by_name,
    networks_by_name,
    project_by_name,
    security_group_by_name,
    unknown,
)
from tests.support.rows import add_instance

if t.TYPE_CHECKING:
    from .conftest import Run

TINY = {"name": "m1.tiny", "vcpus": 1, "memory_mb": 512}


def test_a_flavor_is_made_once(run: Run) -> None:
    first = run("flavor", flavors=[TINY])
    again = run("flavor", flavors=[TINY])
    made = {
        "id": 1,
        "name": "m1.tiny",
        "vcpus": 1,
        "memory_mb": 512,
        "root_gb": 0,
        "ephemeral_gb": 0,
        "swap_mb": 0,
        "extra_specs": {},
        "flavorid": None,
        "is_public": True,
        "description": None,
    }
    assert first["changed"] and first["flavors"] == [made]
    assert first["diff"]["before"] == {"flavors": {}}
    assert first["diff"]["after"]["flavors"]["m1.tiny"]["memory_mb"] == 512
    assert again == {"changed": False, "flavors": [made]}


def test_a_flavor_changes_only_in_what_was_said(run: Run) -> None:
    run("flavor", flavors=[{**TINY, "root_gb": 5, "extra_specs": {"hw:numa_nodes": 2, "x": True}}])
    result = run("flavor", flavors=[{"name": "m1.tiny", "memory_mb": 1024}])
    [now] = result["flavors"]
    assert (now["vcpus"], now["memory_mb"], now["root_gb"]) == (1, 1024, 5)
    assert now["extra_specs"] == {"hw:numa_nodes": "2", "x": "true"}
    assert result["diff"]["before"]["flavors"]["m1.tiny"]["memory_mb"] == 512


def test_flavors_go_and_stay_gone(run: Run) -> None:
    run("flavor", flavors=[TINY])
    result = run("flavor", flavors=[{"name": "m1.tiny"}], state="absent")
    assert result["changed"] and result["diff"]["after"] == {"flavors": {}}
    assert run("flavor", flavors=[{"name": "m1.tiny"}], state="absent") == {"changed": False, "flavors": []}


def test_check_mode_tells_the_same_and_writes_nothing(run: Run, ledger: sa.Engine) -> None:
    planned = run("flavor", flavors=[TINY], check_mode=True)
    with reading(ledger) as connection:
        assert connection.execute(sa.select(tables.flavor)).all() == []
    made = run("flavor", flavors=[TINY])
    # PostgreSQL's counters are no part of a transaction: the plan used a number up
    assert {key: value for key, value in planned.items() if key != "flavors"} == {
        key: value for key, value in made.items() if key != "flavors"
    }
    assert [{**flavor, "id": 0} for flavor in planned["flavors"]] == [{**flavor, "id": 0} for flavor in made["flavors"]]


@pytest.mark.parametrize(
    ("flavor", "message"),
    [
        ({"name": "f", "vcpus": 1}, "'f' does not exist yet: give its memory_mb"),
        ({**TINY, "vcpus": 0}, "vcpus 0 is out of range"),
        ({**TINY, "root_gb": -1}, "root_gb -1 is out of range"),
        ({**TINY, "memory_mb": 2**31}, "memory_mb 2147483648 is out of range"),
        ({**TINY, "name": ""}, "is empty"),
        ({**TINY, "name": " x"}, "begins or ends with a space"),
        ({**TINY, "name": "a\nb"}, "control character"),
        ({**TINY, "name": "x" * 256}, "has 256 characters: 255 is the limit"),
        ({**TINY, "extra_specs": {"a$": "b"}}, r"'a\$' is not a valid key"),
        ({**TINY, "extra_specs": {"novalite:disk_backend": "lvm"}}, "is 'lvm': use qcow2 or raw"),
        ({**TINY, "extra_specs": {"a": ["b"]}}, "give it a string"),
        ({**TINY, "extra_specs": {"a": "x" * 256}}, "255 is the limit"),
    ],
)
def test_a_flavor_that_makes_no_sense_is_refused(run: Run, flavor: dict[str, t.Any], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        run("flavor", flavors=[flavor])


def test_one_bad_flavor_keeps_the_others_out(run: Run, ledger: sa.Engine) -> None:
    with pytest.raises(NovaliteError):
        run("flavor", flavors=[TINY, {"name": "bad"}])
    with reading(ledger) as connection:
        assert connection.execute(sa.select(tables.flavor)).all() == []


def test_a_name_that_comes_twice_is_refused(run: Run) -> None:
    with pytest.raises(NovaliteError, match=r"'m1.tiny' is listed twice"):
        run("flavor", flavors=[TINY, TINY])


def test_a_project_has_novas_quotas_until_it_says_otherwise(run: Run, ledger: sa.Engine) -> None:
    made = run("project", projects=[{"name": "ci", "quotas": {"instances": 60, "ram": "-1", "cores": 20}}])
    [project] = made["projects"]
    assert len(project["id"]) == 32
    assert project["quotas"] == {**DEFAULTS, "instances": 60, "ram": -1}
    with reading(ledger) as connection:
        # cores is the default: it takes no row, and would follow a new default
        rows = connection.execute(sa.select(tables.quota.c.resource).order_by(tables.quota.c.resource)).scalars().all()
        assert quota_limits(connection, project["id"]) == project["quotas"]
    assert rows == ["instances", "ram"]
    assert run("project", projects=[{"name": "ci", "quotas": {"instances": 60}}])["changed"] is False
    changed = run("project", projects=[{"name": "ci", "quotas": {"instances": 10}}])
    assert changed["projects"][0]["quotas"] == {**DEFAULTS, "ram": -1}


@pytest.mark.parametrize("limit", [-2, 2**31, "many", 1.5, None])
def test_a_limit_that_is_none_is_refused(run: Run, limit: object) -> None:
    with pytest.raises(NovaliteError, match=r"quota cores: .* is not a limit"):
        run("project", projects=[{"name": "ci", "quotas": {"cores": limit}}])


def test_an_operators_project_has_no_limits_but_for_single_requests(run: Run) -> None:
    [project] = run("project", projects=[{"name": "fleet", "quotas": "unlimited"}])["projects"]
    bounded = {name for name, limit in project["quotas"].items() if limit != -1}
    assert {name: project["quotas"][name] for name in bounded} == {name: DEFAULTS[name] for name in bounded}
    assert bounded == {
        "metadata_items",
        "injected_files",
        "injected_file_content_bytes",
        "injected_file_path_length",
        "jobs",
        "server_snapshots",
        "groups",
    }
    assert run("project", projects=[{"name": "fleet", "quotas": "unlimited"}])["changed"] is False
    with pytest.raises(NovaliteError, match="quotas 'endless': give limits by resource, or 'unlimited'"):
        run("project", projects=[{"name": "fleet", "quotas": "endless"}])


def test_the_operators_own_project_is_made_without_limits(run: Run, ledger: sa.Engine) -> None:
    run("project", projects=[{"name": "demo"}])  # it was there already
    with reading(ledger) as connection:
        assert quota_limits(connection, "d" * 32) == DEFAULTS
    run("project", projects=[{"name": "demo"}], state="absent")
    (made,) = run("project", projects=[{"name": "demo"}])["projects"]
    assert {made["quotas"][name] for name in ("instances", "cores", "ram", "volumes", "networks")} == {-1}
    assert made["quotas"]["jobs"] == DEFAULTS["jobs"]
    assert not run("project", projects=[{"name": "demo"}])["changed"]
    run("project", projects=[{"name": "demo"}], state="absent")
    (limited,) = run("project", projects=[{"name": "demo", "quotas": {"cores": 4}}])["projects"]
    assert limited["quotas"] == {**DEFAULTS, "cores": 4}


def test_an_unknown_quota_is_refused(run: Run) -> None:
    with pytest.raises(NotFoundError, match=r"unknown quota 'core': there are instances, cores, ram"):
        run("project", projects=[{"name": "ci", "quotas": {"core": 1}}])


@pytest.mark.both_databases
def test_a_quota_is_exceeded_by_one_more_than_it_allows(ledger: sa.Engine) -> None:
    with reading(ledger) as connection:
        check_quota(connection, "d" * 32, "cores", 20)
        check_quota(connection, "d" * 32, "fixed_ips", 10**9)
        with pytest.raises(QuotaError, match=r"quota exceeded for cores: 21 wanted, 20 allowed"):
            check_quota(connection, "d" * 32, "cores", 21)


def test_a_project_goes_with_all_that_it_owned(run: Run, ledger: sa.Engine) -> None:
    groups: list[dict[str, t.Any]] = [
        {"name": "a", "rules": [{"protocol": "any", "remote_group": "b"}]},
        {"name": "b", "rules": [{"protocol": "any", "remote_group": "a"}]},
    ]
    run("security_group", security_groups=groups)
    with transaction(ledger) as connection:
        add_instance(connection, "old", deleted=1)
    run("project", projects=[{"name": "demo"}], state="absent")
    with reading(ledger) as connection:
        for table in (tables.project, tables.security_group, tables.security_group_rule, tables.instance):
            assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar() == 0


def test_a_project_with_an_instance_network_or_image_stays(run: Run, ledger: sa.Engine) -> None:
    run("network", networks=[{"name": "own", "cidr": "10.0.0.0/24"}], project="demo")
    with pytest.raises(ConflictError, match=r"still has the network 'own'"):
        run("project", projects=[{"name": "demo"}], state="absent")
    with transaction(ledger) as connection:
        add_instance(connection, "web")
    with pytest.raises(ConflictError, match=r"still has the instance 'web'"):
        run("project", projects=[{"name": "demo"}], state="absent")


def test_what_is_unknown_is_named_with_what_there_is(run: Run, ledger: sa.Engine) -> None:
    with reading(ledger) as connection:
        with pytest.raises(NotFoundError, match=r"^unknown flavor 'm1.foo': there is none yet$"):
            flavor_by_name(connection, "m1.foo")
        with pytest.raises(NotFoundError, match=r"^unknown project 'x': there is demo$"):
            project_by_name(connection, "x")
    run("flavor", flavors=[{**TINY, "name": "m1.large", "memory_mb": 8192}, TINY])
    with reading(ledger) as connection, pytest.raises(NotFoundError, match=r"there are m1.tiny, m1.large$"):
        flavor_by_name(connection, "m1.foo")
    assert str(unknown("x", "y", map(str, range(12)))).endswith("8, 9 and 2 more")


def test_a_project_sees_public_networks_and_its_own_and_its_own_first(run: Run, ledger: sa.Engine) -> None:
    run("project", projects=[{"name": "other"}])
    run("network", networks=[{"name": "net", "cidr": "10.0.0.0/24"}, {"name": "pub", "cidr": "10.0.1.0/24"}])
    run("network", networks=[{"name": "net", "cidr": "10.0.2.0/24"}], project="demo")
    run("network", networks=[{"name": "secret", "cidr": "10.0.3.0/24"}], project="other")
    with reading(ledger) as connection:
        demo, other = (project_by_name(connection, name)["id"] for name in ("demo", "other"))
        assert network_by_name(connection, "net", demo)["cidr"] == "10.0.2.0/24"
        assert network_by_name(connection, "net", other)["cidr"] == "10.0.0.0/24"
        networks = networks_by_name(connection, ["pub", "net"], demo)
        assert [record["cidr"] for record in networks] == ["10.0.1.0/24", "10.0.2.0/24"]
        with pytest.raises(NotFoundError, match=r"unknown network 'secret': there are net, pub$"):
            network_by_name(connection, "secret", demo)


def test_a_foreign_group_is_unknown(run: Run, ledger: sa.Engine) -> None:
    run("project", projects=[{"name": "other"}])
    run("security_group", security_groups=[{"name": "web"}], project="other")
    with reading(ledger) as connection, pytest.raises(NotFoundError, match=r"there is none yet"):
        security_group_by_name(connection, "web", "d" * 32)
