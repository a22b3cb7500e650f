# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Operation `server_plan`: the plan of every compute host that instances are on, or that they are to go to."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from .._domain.guest import guest_of, render
from .._launch.plan import Plan, plan_by_host
from . import group_members
from .tables import compute_host, instance, vif


def server_plan(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """`{"changed": False, "hosts": {host: {"build": plan, "keep": plan, "remove": plan}}}`; reads the ledger only.

    `instances` are to be built, `existing` run already (their plan is what they are compared with), `leaving` are to
    be taken away. An instance without a host is in no plan: nothing of it is on any.
    """
    rows = connection.execute(sa.select(compute_host.c.name, compute_host.c.facts))
    facts: dict[str, dict[str, t.Any]] = {row.name: row.facts for row in rows}
    facts.update({one["name"]: one for one in params["compute_hosts"] or []})
    hosts: dict[str, dict[str, Plan]] = {}
    given = {
        kind: [one for one in params[option] or [] if one["host"]]
        for kind, option in (("build", "instances"), ("keep", "existing"), ("remove", "leaving"))
    }
    for kind, placed in given.items():
        for host, plan in plan_by_host(
            placed, facts, lambda one, of_host: render(guest_of(one, of_host, state_dir=params["state_dir"]))
        ).items():
            hosts.setdefault(host, {})[kind] = plan
    for host, plans in hosts.items():
        for kind, option in (("build", "instances"), ("remove", "leaving")):
            if kind in plans:
                # a bridge goes with the last instance that used it on this host, also when that one's build failed
                networks = _networks_of(params[option], host)
                staying = _networks_in_use(connection, host, plans[kind]["uuids"])
                plans[kind]["last_bridges"] = [
                    bridge for bridge in plans[kind]["bridges"] if not networks[bridge["name"]] & staying
                ]
    group_members.complete(connection, hosts, given)
    return {"changed": False, "hosts": hosts}


def _networks_of(instances: t.Iterable[t.Mapping[str, t.Any]], host: str) -> dict[str, set[int]]:
    """Ids of the networks on each bridge that those of `instances` use that are on `host`."""
    bridges: dict[str, set[int]] = {}
    for one in instances:
        if one["host"] == host:
            for nic in one["nics"]:
                bridges.setdefault(nic["network"]["bridge"], set()).add(nic["network"]["id"])
    return bridges


def _networks_in_use(connection: sa.Connection, host: str, leaving: t.Sequence[str]) -> set[int]:
    """Ids of the networks on which `host` keeps other instances than the `leaving` ones (UUIDs)."""
    rows = connection.execute(
        sa.select(vif.c.network_id, instance.c.uuid)
        .join_from(vif, instance, vif.c.instance_uuid == instance.c.uuid)
        .where(instance.c.host == host, instance.c.deleted == 0)
    )
    gone = set(leaving)
    return {network_id for network_id, uuid in rows if uuid not in gone}
