# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers asked for at the API by several processes at once, on each database."""

from __future__ import annotations

import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import create, new_servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_identity, tables_jobs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.tokens import issue_token
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
from tests.support.beside import CONTEXT
from tests.support.patience import GENEROUS

REQUESTS = 8  # of each process
USER = "a" * 32


def _post(url: str, token: str, image: str, results: t.Any) -> None:
    """Ask for servers of one name as one process of the API; report what was answered."""
    from api import create_app
    from api.settings import Settings

    client = create_app(Settings(ledger_url=url), ["openstack.compute"]).test_client()
    body = {"server": {"name": "web", "flavorRef": "1", "imageRef": image}}
    answers = [
        client.post("/compute/v2.1/servers", json=body, headers={"X-Auth-Token": token}).status_code
        for _request in range(REQUESTS)
    ]
    results.put(answers)


@pytest.mark.both_databases
def test_a_quota_holds_against_requests_to_several_processes(cloud: t.Any) -> None:
    with transaction(cloud.engine) as connection:
        connection.execute(sa.insert(tables_identity.user).values(id=USER, name="demo", created_at=1))
        project = connection.execute(sa.select(tables.project.c.id).where(tables.project.c.name == "demo")).scalar_one()
        connection.execute(
            sa.insert(tables_identity.role_assignment).values(user_id=USER, project_id=project, role="member")
        )
        token = issue_token(connection, USER, project).text
        image = connection.execute(sa.select(tables.image.c.id).where(tables.image.c.name == "ami-tiny")).scalar_one()
    results = CONTEXT.Queue()
    workers = [CONTEXT.Process(target=_post, args=(cloud.url, token, image, results)) for _worker in range(3)]
    for worker in workers:
        worker.start()
    answers = [status for _worker in workers for status in results.get(timeout=GENEROUS)]
    for worker in workers:
        worker.join()
    assert sorted(answers) == [202] * 10 + [403] * (3 * REQUESTS - 10)
    made = cloud.rows(sa.select(tables.instance))
    assert len({row.name for row in made}) == len({row.hostname for row in made}) == 10
    assert {row.display_name for row in made} == {"web"}
    assert len(cloud.rows(sa.select(tables_jobs.job))) == len(cloud.rows(sa.select(tables_jobs.job_instance))) == 10


@pytest.fixture
def made(cloud: t.Any) -> list[str]:
    """Five servers of one name, and one of another project."""
    with transaction(cloud.engine) as connection:
        ids = {row.name: row.id for row in connection.execute(sa.select(tables.project))}
        image = connection.execute(sa.select(tables.image.c.id).where(tables.image.c.name == "ami-tiny")).scalar_one()
        for project in ("demo", "other"):
            most, labels = 5 if project == "demo" else 1, create.Labels(tags=("a",))
            create_request = new_servers.CreateRequest("web", "1", image, max_count=most, labels=labels)
            created = new_servers.create(connection, ids[project], create_request, request_id="req-1")
            if project == "demo":
                uuids = created.uuids
    return uuids


@pytest.mark.parametrize("key", sorted(server_listing.SORT_KEYS))
@pytest.mark.parametrize("ascending", [True, False])
def test_every_sort_key_leads_through_all_pages(cloud: t.Any, made: list[str], key: str, ascending: bool) -> None:
    with cloud.engine.begin() as connection:  # some of them start from a volume
        connection.execute(sa.update(tables.instance).where(tables.instance.c.uuid.in_(made[1::2])).values(image={}))
    with cloud.engine.connect() as connection:
        of_demo = server_listing.instance_row(connection, made[0], None).project_id
        query = server_listing.Query(project_id=of_demo, sort=[(key, ascending)], limit=2)
        listed_uuids: list[str] = []
        while True:
            page = server_listing.load(connection, server_listing.find(connection, query))
            listed_uuids += [record["uuid"] for record in page]
            if len(page) < 2:
                break
            query.marker = listed_uuids[-1]
    assert len(listed_uuids) == 5 and set(listed_uuids) == set(made)


def test_conditions_on_each_database(cloud: t.Any, made: list[str]) -> None:
    def find(**conditions: t.Any) -> int:
        with cloud.engine.connect() as connection:
            return len(server_listing.find(connection, server_listing.Query(**conditions)))

    assert find() == 6
    assert find(name="eb-3") == 1
    assert find(name_matches=lambda name: name == "web-2") == 1
    assert find(tags=lambda tags: "a" in tags, limit=3) == 3
    assert find(flavor="1") == 6 and find(flavor="2") == 0
    assert find(states=[("building", None)]) == 6
    assert find(states=[("building", ("scheduling",))]) == 6
    assert find(states=[("building", None)], not_task_states={"building": ("scheduling",)}) == 0
    assert find(states=[]) == 0
    assert find(equals={"config_drive": False, "power_state": 0, "task_state": "scheduling"}) == 6
    assert find(availability_zone="nova") == 0
    assert find(ip_matches=lambda address: True) == 0
    with pytest.raises(NotFoundError), cloud.engine.connect() as connection:
        server_listing.find(connection, server_listing.Query(marker=str(uuid.uuid4())))
