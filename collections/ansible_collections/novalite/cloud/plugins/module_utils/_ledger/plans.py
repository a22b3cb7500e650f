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
from .tables import compute_host, instance, vif


def server_plan(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """`{"changed": False, "hosts": {host: {"build": plan, "keep": plan, "remove": plan}}}`; reads the ledger only.

    `instances` are to be built, `existing` run already (their plan is what they are compared with), `leaving` are to
    be taken away. An instance without a host is in no plan: nothing of it is on any.

    What only the guests may know is read here, for those to be built, and is in no other result. `secret` is set when
    there is any: then nobody is shown the plans.
    """
    told = _guest_records(connection, [one["uuid"] for one in params["instances"] or []])
    recorded = connection.execute(sa.select(compute_host.c.name, compute_host.c.facts))
    facts = {row.name: row.facts for row in recorded}
    facts.update({one["name"]: one for one in params["compute_hosts"] or []})
    hosts: dict[str, dict[str, Plan]] = {}
    for kind, option in (("build", "instances"), ("keep", "existing"), ("remove", "leaving")):
        placed = [one for one in params[option] or [] if one["host"]]
        if kind == "build":
            placed = [{**one, "guest": told.get(one["uuid"], {})} for one in placed]
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
    return {"changed": False, "hosts": hosts, "secret": any(any(record.values()) for record in told.values())}


def _guest_records(connection: sa.Connection, uuids: t.Collection[str]) -> dict[str, dict[str, t.Any]]:
    """User data (base64), files and the password's hash of these instances."""
    rows = connection.execute(
        sa.select(instance.c.uuid, instance.c.user_data, instance.c.files, instance.c.password_hash).where(
            instance.c.uuid.in_(uuids)
        )
    )
    return {
        row.uuid: {"user_data": row.user_data, "files": row.files, "password_hash": row.password_hash} for row in rows
    }


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
