# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on flavors, aggregates, server groups and compute hosts: what they decide."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, HostInUseError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import (
    aggregates,
    compute_hosts,
    flavors,
    server_groups,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.flavor_records import (
    NewFlavor,
    access_of,
    flavors_seen,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement import hypervisor_records
from tests.support.calls import USER, a_call
from tests.support.rows import DEMO, OTHER, a_host, add_project, an_instance, insert
from tests.unit._ledger.conftest import on_sqlite

pytestmark = on_sqlite
PRIVATE = "compute:flavors:private"


@pytest.fixture
def connection(ledger: sa.Engine) -> t.Iterator[sa.Connection]:
    with transaction(ledger) as connection:
        add_project(connection, "other", OTHER)
        yield connection


def a_new_flavor(flavorid: str | None = None, name: str = "tiny", is_public: bool = True) -> NewFlavor:
    return {
        "flavorid": flavorid,
        "name": name,
        "vcpus": 1,
        "memory_mb": 64,
        "root_gb": 1,
        "ephemeral_gb": 0,
        "swap_mb": 0,
        "is_public": is_public,
        "description": None,
    }


def test_flavors_are_made_once_by_name_and_id(connection: sa.Connection) -> None:
    call = a_call(connection, PRIVATE)
    first = flavors.create(call, a_new_flavor())
    assert len(first["flavorid"]) == 36  # a UUID
    for again in (a_new_flavor(), a_new_flavor(first["flavorid"], "other")):
        with pytest.raises(ConflictError, match="already exists"):
            flavors.create(call, again)
    assert flavors.describe(call, first, "small")["description"] == "small"
    shared = {"hw:cpu_policy": "shared"}
    assert flavors.write_specs(call, first, lambda before: {**before, **shared})["extra_specs"] == shared
    flavors.delete(call, first)
    assert flavors_seen(connection, private=True) == []


def test_only_private_flavors_are_given_to_projects_and_once(connection: sa.Connection) -> None:
    call = a_call(connection, PRIVATE)
    public = flavors.create(call, a_new_flavor())
    private = flavors.create(call, a_new_flavor(name="private", is_public=False))
    for change in (flavors.grant, flavors.revoke):
        with pytest.raises(ConflictError, match="public flavor"):
            change(call, public, OTHER)
    flavors.grant(call, private, OTHER)
    with pytest.raises(ConflictError, match="already exists"):
        flavors.grant(call, private, OTHER)
    with pytest.raises(NotFoundError, match="not a valid project"):
        flavors.grant(call, private, "nosuch")
    assert access_of(connection, private["id"]) == [OTHER]
    flavors.revoke(call, private, OTHER)
    with pytest.raises(NotFoundError, match="access not found"):
        flavors.revoke(call, private, OTHER)


def test_aggregates_that_hosts_are_in_stay(connection: sa.Connection) -> None:
    insert(connection, tables.compute_host, **a_host("hv1"))
    call = a_call(connection)
    row = aggregates.create(call, "racks", "z1")
    with pytest.raises(ConflictError, match="already exists"):
        aggregates.create(call, "racks", None)
    row = aggregates.add_host(call, row, "hv1")
    assert (row.zone, row.hosts) == ("z1", ["hv1"])
    with pytest.raises(ConflictError, match="already has host"):
        aggregates.add_host(call, row, "hv1")
    with pytest.raises(aggregates.NotEmptyError):
        aggregates.delete(call, row)
    with pytest.raises(NotFoundError, match="has no host"):
        aggregates.remove_host(call, row, "hv2")
    aggregates.delete(call, aggregates.remove_host(call, row, "hv1"))
    assert hypervisor_records.aggregates(connection) == []


def test_an_aggregate_changes_what_is_asked_for_alone(connection: sa.Connection) -> None:
    call = a_call(connection)
    aggregates.create(call, "taken", None)
    row = aggregates.set_metadata(call, aggregates.create(call, "racks", "z1"), {"a": "1", "b": "2"})
    with pytest.raises(ConflictError, match="already exists"):
        aggregates.update(call, row, name="taken")
    row = aggregates.update(call, row, name="rows")
    assert (row.name, row.zone, row.metadata) == ("rows", "z1", {"a": "1", "b": "2"})
    row = aggregates.set_metadata(call, row, {"a": None, "c": "3"}, zone="")
    assert (row.zone, row.metadata) == (None, {"b": "2", "c": "3"})


def test_a_server_group_is_the_callers_projects(connection: sa.Connection) -> None:
    row = server_groups.create(a_call(connection, project_id=OTHER), "apart", "anti-affinity", max_server_per_host=2)
    assert (row.project_id, row.user_id, row.max_server_per_host) == (OTHER, USER, 2)
    with pytest.raises(ConflictError, match="names are unique"):
        server_groups.create(a_call(connection, project_id=OTHER), "apart", "affinity")
    assert server_groups.create(a_call(connection, project_id=DEMO), "apart", "affinity").project_id == DEMO


def test_a_host_is_switched_and_stays_while_servers_are_on_it(connection: sa.Connection) -> None:
    insert(connection, tables.compute_host, **a_host("hv1"))
    server = insert(connection, tables.instance, **an_instance(host="hv1"))
    call = a_call(connection)
    (switched,) = compute_hosts.switch(call, ["hv1"], False, "broken")["compute_hosts"]
    assert switched == {"name": "hv1", "enabled": False, "disabled_reason": "broken"}
    with pytest.raises(HostInUseError):
        compute_hosts.delete(call, "hv1")
    connection.execute(sa.delete(tables.instance).where(tables.instance.c.id == server))
    assert compute_hosts.delete(call, "hv1") is not None
    assert compute_hosts.delete(call, "hv1") is None
