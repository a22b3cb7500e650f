# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pages of ports: each is a part of the whole list, and costs what it holds."""

from __future__ import annotations

import itertools
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.support.grown import Cost, costs

FIRST, SECOND = "10.20.0.0/24", "10.30.0.0/24"


def add_servers(cloud: Cloud, project: str, networks: t.Sequence[t.Any], numbers: range) -> None:
    for number in numbers:
        prefix = networks[number % 2].cidr.rpartition(".")[0]
        cloud.instance(project, f"s{number}", "hv1", nics=[(networks[number % 2], f"{prefix}.{number + 10}")])


def ids_of(body: t.Any) -> list[str]:
    return [port["id"] for port in body["ports"]]


def walk(door: t.Any, query: str, rel: str = "next") -> list[list[str]]:
    """The ids of each page, as its links lead from one to the other."""
    pages, path = [], f"/ports?{query}"
    while path:
        body = door.get(path)
        pages.append(ids_of(body))
        links = {link["rel"]: link["href"] for link in body.get("ports_links", [])}
        path = links.get(rel, "").partition("/network/v2.0")[2]
    return pages


@pytest.mark.parametrize("who", ["member", "admin"])
def test_pages_are_the_whole_list_by_ids(doors: Doors, cloud: Cloud, who: str) -> None:
    networks = [cloud.network("first", FIRST), cloud.network("second", SECOND)]
    add_servers(cloud, doors.project, networks, range(9))
    other = cloud.project("stranger")
    add_servers(cloud, other, networks, range(20, 24))
    door = getattr(doors, who)
    for number in range(2):
        door.post("/ports", {"port": {"network_id": networks[0].uuid, "name": f"alone{number}"}}, 201)
    server = cloud.rows(sa.select(tables.instance.c.uuid).where(tables.instance.c.name == "s3"))[0].uuid
    mac = door.get(f"/ports?device_id={server}")["ports"][0]["mac_address"]
    for more in (
        "",
        f"&network_id={networks[1].uuid}",
        f"&network_id={networks[0].uuid}&network_id={networks[1].uuid}",
        f"&device_id={server}",
        f"&mac_address={mac}",
        "&status=DOWN",  # the database knows nothing of it
        "&name=alone1",
        "&id=none",
    ):
        whole = sorted(ids_of(door.get(f"/ports?{more[1:]}")))
        for limit in (1, 2, 5, len(whole) or 1, 50):
            pages = walk(door, f"limit={limit}{more}")
            assert [*itertools.chain(*pages)] == whole, (more, limit)
            assert all(len(page) == limit for page in pages[:-1]) and len(pages[-1]) <= limit
            back = walk(door, f"limit={limit}&page_reverse=True{more}", "previous")
            assert [*itertools.chain(*reversed(back))] == whole, (more, limit)
        assert all(marker not in ids_of(door.get(f"/ports?limit=3&marker={marker}{more}")) for marker in whole[:2])
    strangers = cloud.rows(sa.select(tables.vif.c.id).join(tables.instance).where(tables.instance.c.name == "s20"))
    door.get(f"/ports?limit=3&marker={strangers[0].id}", 200 if who == "admin" else 400)


def test_a_page_costs_what_it_holds(doors: Doors, cloud: Cloud) -> None:
    networks = [cloud.network("first", FIRST), cloud.network("second", SECOND)]

    def cost(query: str) -> Cost:
        with costs(doors.app.extensions["ledger"].engine) as made:
            doors.member.get(f"/ports?{query}")
        return made

    add_servers(cloud, doors.project, networks, range(8))
    server = cloud.rows(sa.select(tables.instance.c.uuid).where(tables.instance.c.name == "s3"))[0].uuid
    queries = ("limit=3", f"limit=3&network_id={networks[0].uuid}", f"device_id={server}")
    before = [cost(query) for query in queries]
    add_servers(cloud, doors.project, networks, range(8, 80))
    for query, small in zip(queries, before):
        large = cost(query)
        assert 0 < large.rows <= small.rows + 2 and large.statements == small.statements, query
