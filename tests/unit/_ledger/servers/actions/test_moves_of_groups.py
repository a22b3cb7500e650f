# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Server groups whose members move: a member counts on each host that it may be on at the end, and one whose host is
dead keeps no other from leaving there."""

from __future__ import annotations

import collections
import random
import time
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_images import replica
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import OPEN, migration
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.reserve import losses
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from tests.unit._ledger.servers.test_server_groups import make, schedule
from tests.unit._ledger.servers.test_server_migration import ask, carried, row, well

HOSTS = ("hv1", "hv2", "hv3")
STEPS, HISTORIES = 20, 5

pytestmark = pytest.mark.usefixtures("no_domains")


@pytest.fixture(autouse=True)
def _hosts_are_up(cloud: t.Any) -> None:
    cloud.write(sa.update(tables.compute_host).values(last_seen_at=int(time.time())))


def recorded(cloud: t.Any, name: str) -> str:
    """Return the UUID of a new member of the group `db` that waits for its host."""
    wishes = {"flavor": "m1.nano", "image": "ami-tiny", "hints": {"group": "db"}}
    return str(cloud.server({"name": name, **wishes})["to_build"][0]["uuid"])


def placed(cloud: t.Any, uuid: str, *hosts: str) -> str | None:
    """Return the host, among `hosts` or all, that a new member gets; None where it gets none, and fails."""
    with transaction(cloud.engine) as connection:
        instances = instances_by(connection, uuids=[uuid])
    schedule(cloud, [dict(instance) for instance in instances], **({"limit_to": list(hosts)} if hosts else {}))
    host = row(cloud, uuid).host
    if host is not None:
        cloud.state({"uuids": [uuid], "state": "active", "host": host})
    return t.cast("str | None", host)


def running(cloud: t.Any, name: str, host: str) -> str:
    uuid = recorded(cloud, name)
    assert placed(cloud, uuid, host) == host
    return uuid


def confirm(cloud: t.Any, name: str, source: str) -> None:
    moves = ask(cloud, "confirmResize", name)["moves"]
    ended = ask(cloud, "confirmResize", state="end", moves=moves, parts=["from_host"], outcomes=well(source))
    assert ended["errors"] == []


@pytest.mark.both_databases
@pytest.mark.parametrize(("source", "dest"), [("hv1", "hv2"), ("hv2", "hv1")])
def test_a_member_that_moves_keeps_others_from_both_of_its_hosts(cloud: t.Any, source: str, dest: str) -> None:
    make(cloud, "db", "anti-affinity")
    running(cloud, "a", source)
    begun = ask(cloud, "resize", "a", flavor="m1.tiny", host=dest)
    for name, host in (("b", source), ("c", dest)):
        assert placed(cloud, recorded(cloud, name), host) is None
    carried(cloud, "resize", begun, (source, dest))
    assert placed(cloud, recorded(cloud, "d"), source, dest) is None
    confirm(cloud, "a", source)
    assert placed(cloud, recorded(cloud, "e"), source, dest) == source


@pytest.mark.parametrize(("source", "dest"), [("hv1", "hv2"), ("hv2", "hv1")])
@pytest.mark.parametrize("policy", ["affinity", "soft-affinity"])
def test_who_joins_a_member_that_moves_goes_where_that_one_goes(
    cloud: t.Any, policy: str, source: str, dest: str
) -> None:
    make(cloud, "db", policy)
    running(cloud, "a", source)
    ask(cloud, "resize", "a", flavor="m1.tiny", host=dest)
    assert placed(cloud, recorded(cloud, "b"), source, dest) == dest


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_members_are_apart_at_the_end_of_any_moves(cloud: t.Any, seed: int) -> None:
    rng = random.Random(seed)
    make(cloud, "db", "anti-affinity")
    names = [f"db-{number}" for number in range(4)]
    for _step in range(STEPS):
        name, host = rng.choice(names), rng.choice(HOSTS)
        (there,) = cloud.rows(
            sa.select(tables.instance).where(tables.instance.c.name == name, tables.instance.c.deleted == 0)
        ) or [None]
        try:
            if there is None or there.vm_state == "error":
                placed(cloud, recorded(cloud, name))
            elif there.vm_state == "resized":
                of_it = (migration.c.status.in_(OPEN), migration.c.instance_uuid == there.uuid)
                (move,) = cloud.rows(sa.select(migration).where(*of_it))
                if rng.random() < 0.5:
                    confirm(cloud, name, move.source_host)
                else:
                    back = (move.dest_host, move.source_host)
                    carried(cloud, "revertResize", ask(cloud, "revertResize", name), back)
            else:
                carried(cloud, "migrate", ask(cloud, "migrate", name, host=host), (there.host, host))
        except NovaliteError:
            pass  # there is no such way: the group, or its own host
        i = tables.instance.c
        hosts = cloud.rows(sa.select(i.host).where(i.host.is_not(None), i.deleted == 0))
        counts = collections.Counter(each.host for each in hosts)
        assert max(counts.values(), default=0) <= 1, f"seed {seed}: {counts}"


def _dies(cloud: t.Any, host: str) -> None:
    cloud.change_host(host, up=False)


@pytest.mark.both_databases
def test_members_that_are_together_leave_a_dead_host_together(cloud: t.Any) -> None:
    make(cloud, "db", "affinity")
    uuids = [running(cloud, name, "hv1") for name in ("a", "b", "c")]
    with transaction(cloud.engine) as connection:
        (loss,) = losses(connection)
    assert loss["stranded"] == []  # so it was promised
    _dies(cloud, "hv1")
    moves = ask(cloud, "evacuate", "a", "b", "c")["moves"]
    assert [move["uuid"] for move in moves] == uuids
    assert len({move["to_host"] for move in moves}) == 1


def test_a_member_leaves_a_dead_host_for_none_where_another_one_is(cloud: t.Any) -> None:
    make(cloud, "db", "anti-affinity")
    for name, host in (("a", "hv1"), ("b", "hv2")):
        running(cloud, name, host)
    _dies(cloud, "hv1")
    (move,) = ask(cloud, "evacuate", "a")["moves"]
    assert move["to_host"] == "hv3"


def test_members_that_are_together_have_copies_together(cloud: t.Any) -> None:
    make(cloud, "db", "affinity")
    for name in ("a", "b", "c"):
        running(cloud, name, "hv1")
        cloud.task("server_replica", state="present", servers=[name], every="5m")
    (host,) = {copy.host for copy in cloud.rows(sa.select(replica.c.host))}
    # once their host gets no copies any more they go elsewhere, one after another and together
    (other,) = set(HOSTS) - {"hv1", host}
    for name in ("b", "c", "a"):
        cloud.task("server_replica", state="present", servers=[name], every="5m", host=other)
    assert {copy.host for copy in cloud.rows(sa.select(replica.c.host))} == {other}
