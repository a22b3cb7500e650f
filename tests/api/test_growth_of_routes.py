# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""No request for one page, one host or one server reads the whole cloud: each GET route of the application is asked in
two clouds, of which the larger one has five times as many instances on as many hosts, and what the ledger does is
counted."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

import pytest
import sqlalchemy as sa
from flask import Flask

from tests.api import applications
from tests.api.doors import User
from tests.support.cloud import Cloud, sqlite
from tests.support.grown import GUESTS, Cost, Grown, costs, grow
from tests.support.rows import DEMO

HOSTS, CROWD = 16, 160
NEWEST = "2.87, volume 3.71"


class Asked(t.NamedTuple):
    status: int
    cost: Cost
    steps: dict[str, int]  # by statement


class Sized(t.NamedTuple):
    app: Flask
    engine: sa.Engine
    admin: User
    grown: Grown

    def cost(self, path: str) -> Asked:
        steps: dict[str, int] = {}
        self.admin.ask("GET", path, version=NEWEST)  # the first one compiles, and notes that the token was used
        with costs(self.app.extensions["ledger"].engine, steps) as cost:
            answer = self.admin.ask("GET", path, version=NEWEST)
            cost.size = len(answer.get_data())
        return Asked(answer.status_code, cost, steps)


@contextlib.contextmanager
def sized(home: pathlib.Path, crowd: int) -> t.Iterator[Sized]:
    cloud = Cloud(sqlite(home))
    grown = grow(cloud.engine, HOSTS, crowd, prefix=20)
    with applications.application(home, api_metrics_from="127.0.0.1") as app:
        admin = User(t.cast(t.Any, cloud), app.test_client(), DEMO, "admin", "")
        yield Sized(app, cloud.engine, admin, grown)
    cloud.close()


@pytest.fixture(scope="module")
def clouds(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[tuple[Sized, Sized]]:
    home = tmp_path_factory.mktemp("grown")
    with sized(home / "small", GUESTS) as small, sized(home / "large", CROWD) as large:
        yield small, large


# Values of routes' arguments that name something that is alike in both clouds
NAMED = {"host": "hv0", "pattern": "hv0", "project": DEMO}
# What is asked with other queries than its route alone
QUERIES = (
    "/compute/v2.1/servers/detail?limit=10&name=g1",
    "/compute/v2.1/servers/detail?limit=10&name=g[0-9]",
    "/compute/v2.1/servers/detail?limit=10&all_tenants=1&name=^g",
    "/compute/v2.1/servers/detail?limit=10&all_tenants=1&ip=10",
    "/compute/v2.1/servers?limit=10&not-tags=a",
    "/compute/v2.1/os-hypervisors/detail?limit=3",
    "/compute/v2.1/os-services?host=hv0",
    *(
        f"/volume/v3/{DEMO}/{kind}/detail?limit=10{more}"
        for kind in ("volumes", "snapshots")
        for more in ("&all_tenants=1", "&name~=v", "&sort=created_at:desc", "&offset=3")
    ),
    f"/volume/v3/{DEMO}/volumes/detail?limit=10&metadata={{}}",
)
# Those that are about all there is, and count it by indexes or read it to the end
ABOUT_ALL = {
    "/compute/v2.1/os-hypervisors/statistics": "sums over all hosts",
    "/compute/v2.1/os-simple-tenant-usage": "the use of each project in a period",
    "/metrics": "counts of all there is",
    "/compute/v2.1/os-simple-tenant-usage/<project>": "the use of a project in a period",
    **dict.fromkeys(
        (
            "/network/v2.0/quotas/<project>/details",
            "/network/v2.0/quotas/<project>/details.json",
            "/volume/v3/<project>/limits",
        ),
        "sums over what a project has, by the database",
    ),
    "/volume/v3/<project>/volumes/summary": "sums over all volumes of a project",
}


def paths_of(app: Flask, server: str) -> dict[str, str]:
    """Each GET route without arguments, or with such as both clouds have: by its rule, the path to ask for."""
    values = {**NAMED, "server_id": server}
    rules = [rule for rule in app.url_map.iter_rules() if "GET" in (rule.methods or ()) and rule.arguments <= {*values}]
    built = {rule.rule: rule.build({name: values[name] for name in rule.arguments}) for rule in rules}
    routes = {rule: f"{place[1]}?limit=10" for rule, place in built.items() if place is not None}
    return {**routes, **{query: query for query in QUERIES}}


def test_what_one_page_shows_is_all_that_is_read(clouds: tuple[Sized, Sized]) -> None:
    asked = [paths_of(sized.app, sized.grown.uuids[1]) for sized in clouds]
    assert asked[0].keys() == asked[1].keys() > ABOUT_ALL.keys() and len(asked[0]) > 100
    grew = {}
    for rule in asked[0].keys() - ABOUT_ALL:
        small, large = (sized.cost(paths[rule]) for sized, paths in zip(clouds, asked))
        assert small.status == large.status, rule
        statements = [
            f"{small.steps.get(statement, 0)} -> {count} steps: {statement}"
            for statement, count in large.steps.items()
            if count > 2 * small.steps.get(statement, 0) + 500
        ]
        if (
            statements
            or large.cost.rows > 1.2 * small.cost.rows + 10
            or large.cost.statements > small.cost.statements + 5
        ):
            grew[rule] = [f"{small.cost}; {large.cost}", *statements]
    assert not grew, "\n".join(f"{rule}: {line}" for rule, lines in grew.items() for line in lines)


def test_metrics_are_counted_by_the_database(clouds: tuple[Sized, Sized]) -> None:
    """Rows of hosts and of states, as many as there are of these, and none of an instance, a claim or a job."""
    small, large = (sized.cost("/metrics") for sized in clouds)
    assert small.status == large.status == 200
    assert large.cost.statements == small.cost.statements and large.cost.rows == small.cost.rows < 5 * HOSTS + 20
    # what is counted is counted within an index: no row of an instance is read
    with clouds[1].engine.connect() as connection:
        for statement in (text for text in large.steps if "FROM instance" in text):
            query = statement.replace("?", "NULL")
            plan = " ".join(row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}"))
            assert "COVERING INDEX" in plan, (statement, plan)
    figures = clouds[1].admin.ask("GET", "/metrics", version="2.87").get_data(as_text=True)
    assert f'novalite_instances{{vm_state="active"}} {clouds[1].grown.instances}.0' in figures


def test_a_name_that_few_have_is_looked_for_in_an_index(clouds: tuple[Sized, Sized]) -> None:
    """All names are looked through, as in Nova, and nothing else of the instances that have others."""
    small, large = (sized.cost("/compute/v2.1/servers?limit=10&name=g17") for sized in clouds)
    statement = next(text for text in large.steps if "instr(" in text)
    with clouds[1].engine.connect() as connection:
        query = statement.replace("?", "NULL")
        plan = " ".join(row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}"))
    assert "COVERING INDEX ix_instance_listed_of_project" in plan and "TEMP B-TREE" not in plan
    assert large.cost.statements == small.cost.statements and large.cost.rows <= small.cost.rows + 10
