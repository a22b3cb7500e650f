# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Operation `firewall_plan`: what the module `firewall` is given on every host, from the ledger alone."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._plan import host_plan
from ..._plan.host_plan import Plan
from ..db.ledger_identity import ledger_id
from ..db.tables import compute_host, instance, instance_security_group
from ..queries import group_members, lookups
from ..queries.adopted import not_adopted
from ..queries.views import instances_by

Instance = t.Mapping[str, t.Any]


def firewall_plan(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """`{"changed": False, "hosts": {host: plan}}`, plan as `firewall` takes it: all that `params["hosts"]`
    (None: every compute host that has ever reported) shall have, also where that is nothing.

    Raises NotFoundError for an unknown host.
    """
    names = params.get("hosts")
    facts = _facts(connection)
    if names is None:
        names = sorted(facts)
    else:
        lookups.check_compute_hosts(connection, names)
    by_host: dict[str, list[Instance]] = {name: [] for name in names}
    # One that is on its way in or out has its chains as long as it is on the host: a guest without is open.
    for one in not_adopted(instances_by(connection, hosts=names)):
        by_host[one["host"]].append(one)
    plans = {host: host_plan.firewall_plan(members, facts.get(host, {})) for host, members in by_host.items()}
    _add_members(connection, plans)
    _add_ledger(connection, plans)
    return {"changed": False, "hosts": plans}


def plan_for_groups(connection: sa.Connection, groups: t.Collection[int]) -> dict[str, Plan]:
    """What hosts have to be told after a change of `groups`, of their rules or of who is in them: those that carry a
    member, and those that carry somebody whose rules name one of the groups. Others are in no plan."""
    facts = _facts(connection)
    link = instance_security_group
    uuids = connection.execute(
        sa.select(instance.c.uuid)
        .join(link, link.c.instance_id == instance.c.id)
        .where(link.c.group_id.in_(sorted(groups)), instance.c.deleted == 0, instance.c.host.is_not(None))
        .distinct()
    ).scalars()
    return _plan(connection, not_adopted(instances_by(connection, uuids=list(uuids))), groups, facts)


def plan_for_instances(
    connection: sa.Connection, uuids: t.Iterable[str], groups: t.Collection[int]
) -> dict[str, Plan]:
    """What hosts have to be told after these instances joined or left `groups`."""
    placed = [one for one in not_adopted(instances_by(connection, uuids=uuids)) if one["host"]]
    return _plan(connection, placed, groups, _facts(connection))


def _plan(
    connection: sa.Connection,
    instances: t.Iterable[Instance],
    groups: t.Collection[int],
    facts: t.Mapping[str, t.Mapping[str, t.Any]],
) -> dict[str, Plan]:
    by_host: dict[str, list[Instance]] = {}
    for one in instances:
        by_host.setdefault(one["host"], []).append(one)
    plans = {host: host_plan.firewall_plan(members, facts.get(host, {})) for host, members in sorted(by_host.items())}
    naming = group_members.hosts_naming(connection, groups)
    for host in sorted(naming):
        there = plans.setdefault(host, host_plan.firewall_plan([], {}))
        known = {group["id"] for group in there["security_groups"]}
        there["security_groups"] += [{"id": group} for group in sorted(naming[host] - known)]
    _add_members(connection, plans)
    _add_ledger(connection, plans)
    return plans


def _add_ledger(connection: sa.Connection, plans: t.Mapping[str, Plan]) -> None:
    """Say in each plan which ledger's chains these are."""
    if plans:
        ledger = ledger_id(connection)
        for one in plans.values():
            one["ledger"] = ledger


def _add_members(connection: sa.Connection, plans: t.Mapping[str, Plan]) -> None:
    """Who is in the groups that rules name, or that are given without rules."""
    groups = [group for one in plans.values() for group in one["security_groups"]]
    named = {rule["remote_group_id"] for group in groups for rule in group.get("rules", ())} - {None}
    members = group_members.members_of(connection, named | {one["id"] for one in groups if "rules" not in one}, {})
    for one in plans.values():
        one["security_groups"] = group_members.add_members(one["security_groups"], members)


def _facts(connection: sa.Connection) -> dict[str, dict[str, t.Any]]:
    rows = connection.execute(sa.select(compute_host.c.name, compute_host.c.facts))
    return {row.name: row.facts or {} for row in rows}
