# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans for hosts' firewalls, from the ledger alone, as the module `firewall` takes them."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance, not_adopted
from ..._plan.firewall import firewall_plan
from ..._plan.host_plan import Plan
from ..db.ledger_identity import ledger_id
from ..db.tables import compute_host, instance, instance_security_group
from ..queries.compute.views import instances_by
from ..queries.network import group_members


def plan_for_groups(connection: sa.Connection, groups: t.Collection[int]) -> dict[str, Plan]:
    """Return the plans of hosts after a change of `groups`, of their rules or of their members: hosts that carry a
    member, and those that carry an instance whose rules name one of the groups. Others are in no plan."""
    facts = facts_of_hosts(connection)
    link = instance_security_group
    uuids = connection.execute(
        sa.select(instance.c.uuid)
        .join(link, link.c.instance_id == instance.c.id)
        .where(link.c.group_id.in_(sorted(groups)), instance.c.deleted == 0, instance.c.host.is_not(None))
        .distinct()
    ).scalars()
    return _plan(connection, not_adopted(instances_by(connection, uuids=list(uuids))), groups, facts)


def plan_for_instances(connection: sa.Connection, uuids: t.Iterable[str], groups: t.Collection[int]) -> dict[str, Plan]:
    """Return the plans of hosts after a change of the addresses of these instances, which are in `groups`."""
    placed = [server for server in not_adopted(instances_by(connection, uuids=uuids)) if server["host"]]
    return _plan(connection, placed, groups, facts_of_hosts(connection))


def plan_for_members(connection: sa.Connection, uuids: t.Iterable[str], groups: t.Collection[int]) -> dict[str, Plan]:
    """Return the plans of hosts after these instances joined or left `groups`: other hosts are told of them alone."""
    placed = [server for server in not_adopted(instances_by(connection, uuids=uuids)) if server["host"]]
    own = {server["uuid"]: {group["id"] for group in server["security_groups"]} for server in placed}
    left = [
        {**server, "security_groups": [{"id": group} for group in sorted(set(groups) - own[server["uuid"]])]}
        for server in placed
    ]
    changes = group_members.differences(connection, groups, placed, left)
    return _plan(connection, placed, groups, facts_of_hosts(connection), changes)


def _plan(
    connection: sa.Connection,
    instances: t.Iterable[Instance],
    groups: t.Collection[int],
    facts: t.Mapping[str, JsonMapping],
    changes: t.Mapping[int, Plan] | None = None,
) -> dict[str, Plan]:
    """`changes`: what hosts of no such instance are told of a group, in place of all its members."""
    by_host: dict[str, list[Instance]] = {}
    for server in instances:
        by_host.setdefault(str(server["host"]), []).append(server)
    plans = {host: firewall_plan(members, facts.get(host, {})) for host, members in sorted(by_host.items())}
    naming = group_members.hosts_naming(connection, groups)
    plans_of_others: dict[str, Plan] = {}
    for host in sorted(naming):
        if changes is not None and host not in by_host:
            named = [changes[group] for group in sorted(naming[host])]
            plans_of_others[host] = {**firewall_plan([], {}), "security_groups": named, "ledger": ledger_id(connection)}
            continue
        there = plans.setdefault(host, firewall_plan([], {}))
        known = {group["id"] for group in there["security_groups"]}
        there["security_groups"] += [{"id": group} for group in sorted(naming[host] - known)]
    complete(connection, plans)
    return dict(sorted({**plans, **plans_of_others}.items()))


def complete(connection: sa.Connection, plans: t.Mapping[str, Plan]) -> None:
    """Say in each plan who is in the groups that rules name, or that are given without rules, and whose chains these
    are."""
    groups = [group for plan in plans.values() for group in plan["security_groups"]]
    named = {rule["remote_group_id"] for group in groups for rule in group.get("rules", ())} - {None}
    named |= {group["id"] for group in groups if "rules" not in group}
    members = group_members.members_of(connection, named)
    ledger = ledger_id(connection) if plans else None
    for plan in plans.values():
        plan["security_groups"] = group_members.add_members(plan["security_groups"], members)
        plan["ledger"] = ledger


def facts_of_hosts(connection: sa.Connection) -> dict[str, JsonObject]:
    rows = connection.execute(sa.select(compute_host.c.name, compute_host.c.facts))
    return {row.name: row.facts or {} for row in rows}
