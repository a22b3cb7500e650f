# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs in a ledger that was restored from an older copy: what was perhaps done since is not done again."""

from __future__ import annotations

import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import behind, tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job, job_instance
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.instances import actions
from tests.support.cloud import Cloud
from tests.unit._ledger.servers.actions.test_rebuild import kept, rebuild

COPIED = 100  # seconds before now


def uuid_of(cloud: Cloud, name: str) -> str:
    i = tables.instance.c
    (row,) = cloud.rows(sa.select(i.uuid).where(i.name == name, i.deleted == 0))
    return str(row.uuid)


def asked_before_the_copy(cloud: Cloud, kind: str, *uuids: str, state: str = "queued", **variables: t.Any) -> str:
    """Return the id of a job of `kind` that has not ended; its action was begun on each of the instances."""
    number, then = str(uuid.uuid4()), int(time.time()) - COPIED
    cloud.insert(
        job,
        id=number,
        kind=kind,
        variables=variables,
        state=state,
        timeout_seconds=900,
        created_at=then,
        request_id="r",
    )
    with transaction(cloud.engine) as connection:
        if kind in server_actions.NAMES:
            actions.start(connection, kind, {each: {} for each in uuids}, "r", then)
        for each in uuids:
            connection.execute(sa.insert(job_instance).values(job_id=number, instance_uuid=each))
    return number


def restore(cloud: Cloud, *overtaken: str) -> None:
    """Make the ledger older than what hosts know of these instances, and of no others."""
    now, i = int(time.time()), tables.instance
    cloud.write(
        sa.update(i).values(updated_at=now + 1),  # what hosts kept before is not newer
        sa.update(i).where(i.c.uuid.in_(overtaken)).values(updated_at=now - 10 * COPIED),
    )
    with transaction(cloud.engine) as connection:
        behind.begin(connection, "restored from /backup/novalite.ledger", int(time.time()))


def states(cloud: Cloud) -> dict[str, str]:
    return {row.id: row.state for row in cloud.rows(sa.select(job.c.id, job.c.state))}


@pytest.mark.both_databases
def test_what_a_host_knows_better_is_not_done_again(full: Cloud) -> None:
    web, other = uuid_of(full, "web-1"), uuid_of(full, "web-2")
    hosts, kinds = kept(full), sorted(server_actions.NAMES)
    waiting = [asked_before_the_copy(full, kind, web) for kind in kinds]
    running = [asked_before_the_copy(full, kind, web, state="running") for kind in kinds]
    of_other = [asked_before_the_copy(full, kind, other) for kind in kinds]
    restore(full, web)
    result = rebuild(full, hosts)
    known = {
        **dict.fromkeys(waiting, "cancelled"),
        **dict.fromkeys(running, "running"),
        **dict.fromkeys(of_other, "queued"),
    }
    assert states(full) == known
    # of what ran, its worker gives it an end
    assert {row.id for row in full.rows(sa.select(job.c.id).where(job.c.cancel_requested))} == {*waiting, *running}
    log = tables.instance_action.c
    open_actions = full.rows(sa.select(log.instance_uuid).where(log.request_id == "r", log.finished_at.is_(None)))
    assert {row.instance_uuid for row in open_actions} == {other}
    for number in waiting + running:
        assert sum(f"job {number} " in line for line in result["lost"]) == 1


def test_what_finds_things_by_their_ids_goes_on(full: Cloud) -> None:
    web = uuid_of(full, "web-1")
    hosts = kept(full)
    waiting = [asked_before_the_copy(full, kind, web) for kind in ("launch", "terminate")]
    restore(full, web)
    rebuild(full, hosts)
    assert states(full) == dict.fromkeys(waiting, "queued")


def test_former_data_of_volumes_are_not_brought_back_again(full: Cloud) -> None:
    hosts = kept(full)
    volumes = [str(uuid.uuid4())]
    waiting = [asked_before_the_copy(full, kind, volumes=volumes) for kind in ("volume_revert", "volume_restore")]
    restore(full)
    rebuild(full, hosts)
    assert states(full) == dict.fromkeys(waiting, "cancelled")


def test_a_ledger_that_is_up_to_date_keeps_its_jobs(full: Cloud) -> None:
    hosts = kept(full)
    asked_before_the_copy(full, "rebuild", uuid_of(full, "web-1"))
    asked_before_the_copy(full, "volume_revert", volumes=[str(uuid.uuid4())])
    rebuild(full, hosts)
    assert list(states(full).values()) == ["queued", "queued"]
