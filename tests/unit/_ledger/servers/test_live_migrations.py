# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Migrations of guests that run: how one ends that was cut off, and which hosts there are for them."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from tests.unit._ledger.servers.test_server_migration import ask, carried, check_sums, claims, row, server, status, well

pytestmark = pytest.mark.usefixtures("two_hosts", "no_domains")


@pytest.mark.parametrize(
    ("source", "dest", "host", "of_move"),
    [
        ("running", "missing", "hv1", "error"),
        ("missing", "running", "hv2", "completed"),
        ("missing", "shutoff", "hv2", "completed"),
        ("shutoff", "missing", "hv1", "error"),
        ("running", "paused", "hv1", "running"),
    ],
)
def test_of_a_live_migration_that_was_cut_off_the_hosts_know_the_end(
    cloud: t.Any, source: str, dest: str, host: str, of_move: str
) -> None:
    uuid = server(cloud)
    ask(cloud, "live-migration", "web")
    with transaction(cloud.engine) as connection:
        server_actions.finish(connection, "live-migration", [uuid], error="its worker died")
    assert (row(cloud, uuid).task_state, status(cloud), set(claims(cloud, uuid))) == (None, "running", {"hv1", "hv2"})
    check_sums(cloud)
    with pytest.raises(ConflictError, match=r"cut off: run playbooks/reconcile\.yml"):
        ask(cloud, "migrate", "web")
    asked = ask(cloud, "live-migration", state="interrupted")["hosts"]
    assert {host_name: asked[host_name]["domains"][0]["uuid"] for host_name in asked} == {"hv1": uuid, "hv2": uuid}
    states = {"hv1": source, "hv2": dest}
    said = [{"host": host_name, "domains": [{"uuid": uuid, "state": state}]} for host_name, state in states.items()]
    assert ask(cloud, "live-migration", state="resolve", outcomes=said[:1])["errors"] != []
    ask(cloud, "live-migration", state="resolve", outcomes=said)
    assert (row(cloud, uuid).host, status(cloud)) == (host, of_move)
    assert set(claims(cloud, uuid)) == ({"hv1", "hv2"} if of_move == "running" else {host})
    check_sums(cloud)


def test_only_a_word_about_the_guest_itself_says_that_it_has_left(cloud: t.Any) -> None:
    uuid = server(cloud)
    begun = ask(cloud, "live-migration", "web")
    silent = ask(cloud, "live-migration", state="end", moves=begun["moves"], parts=["from_host"], outcomes=well("hv1"))
    assert (silent["lost"][0]["known"], status(cloud), row(cloud, uuid).host) == (False, "running", "hv1")
    assert set(claims(cloud, uuid)) == {"hv1", "hv2"}


def test_a_live_migration_is_over_when_it_is_over(cloud: t.Any) -> None:
    uuid = server(cloud)
    begun = ask(cloud, "live-migration", {"name": "web", "host": "hv2"})
    carried(cloud, "live-migration", begun)
    now = row(cloud, uuid)
    assert (now.host, now.vm_state, now.task_state, status(cloud)) == ("hv2", "active", None, "completed")
    assert set(claims(cloud, uuid)) == {"hv2"}
    check_sums(cloud)
    assert ask(cloud, "live-migration", {"name": "web", "host": "hv2"})["changed"] is False


def test_a_guest_that_runs_moves_among_hosts_with_its_state_directory(cloud: t.Any) -> None:
    c = tables.compute_host.c
    server(cloud)
    cloud.write(sa.update(tables.compute_host).where(c.name == "hv2").values(state_dir="/srv/nv"))
    with pytest.raises(
        NovaliteError, match="host hv2 keeps instances in /srv/nv, hv1 in /var/lib/novalite: a guest that"
    ):
        ask(cloud, "live-migration", {"name": "web", "host": "hv2"})
    cloud.write(sa.update(tables.compute_host).where(c.name == "hv3").values(enabled=True))
    begun = ask(cloud, "live-migration", "web", check_mode=True)
    assert [move["to_host"] for move in begun["moves"]] == ["hv3"]
    cloud.write(sa.update(tables.compute_host).where(c.name == "hv3").values(state_dir="/data"))
    with pytest.raises(NovaliteError, match="no other host keeps instances in /var/lib/novalite as hv1 does"):
        ask(cloud, "live-migration", "web")
    begun = ask(cloud, "migrate", {"name": "web", "host": "hv2"})
    directories = {host: plan["state_dir"] for host, plan in begun["hosts"].items()}
    assert directories == {"hv1": "/var/lib/novalite", "hv2": "/srv/nv"}


def test_a_guest_that_runs_moves_among_hosts_that_give_it_the_same_cpu(cloud: t.Any) -> None:
    c = tables.compute_host.c
    server(cloud)
    westmere = {"cpu_mode": "custom", "cpu_models": ["Westmere"]}
    for name in ("hv2", "hv3"):
        changed = {**cloud.rows(sa.select(c.facts).where(c.name == name))[0].facts, **westmere}
        cloud.write(sa.update(tables.compute_host).where(c.name == name).values(enabled=True, facts=changed))
    with pytest.raises(NovaliteError, match="host hv2 gives its guests the CPU custom Westmere, hv1 none: a guest"):
        ask(cloud, "live-migration", {"name": "web", "host": "hv2"})
    with pytest.raises(NovaliteError, match="no other host gives its guests the CPU none as hv1 does"):
        ask(cloud, "live-migration", "web")
    assert ask(cloud, "migrate", {"name": "web", "host": "hv2"})["moves"]
