# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Operations `reachability` and `security_group_info`: what the ledger's security groups mean."""

from __future__ import annotations

import ipaddress
import typing as t

import sqlalchemy as sa

from ..._firewall import reach
from ..._graph import security_groups
from ..db.tables import instance, instance_security_group, project, security_group, security_group_rule
from ..queries import group_members, lookups
from ..queries.views import instances_by

_RULE = ("id", "direction", "ethertype", "protocol", "port_min", "port_max", "cidr", "remote_group_id")


def reachability(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """May `source` talk to `destination` (names of instances, or addresses)? Every pair of addresses is answered.

    Raises NotFoundError for a name that is no instance's.
    """
    owner = lookups.project_by_name(connection, params["project"])["id"]
    ends = [_end(connection, owner, params[which]) for which in ("source", "destination")]
    named = {rule["remote_group_id"] for end in ends for group in end.groups or () for rule in group["rules"]} - {None}
    names = connection.execute(
        sa.select(security_group.c.id, security_group.c.name).where(security_group.c.id.in_(sorted(named)))
    )
    members = group_members.members_of(connection, named, {})
    remotes = {number: reach.Remote(name, members[number]) for number, name in names}
    talk = reach.Talk(params["protocol"], params["port"], params["icmp_code"])
    found = reach.answers(ends[0], ends[1], talk, remotes)
    lines = [one["line"] for one in found]
    if not found:
        lines = [f"{ends[0].name} and {ends[1].name} have no addresses of one family"]
    return {
        "changed": False,
        "allowed": any(one["allowed"] for one in found),
        "answers": found,
        "msg": lines,
    }


def security_group_info(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The groups of a project, or of all, with rules and members; with `picture` also as a graph."""
    query = (
        sa.select(security_group, project.c.name.label("project"))
        .join(project, project.c.id == security_group.c.project_id)
        .order_by(project.c.name, security_group.c.name)
    )
    if not params["all_projects"]:
        owner = lookups.project_by_name(connection, params["project"])["id"]
        query = query.where(security_group.c.project_id == owner)
    groups: dict[int, dict[str, t.Any]] = {
        row.id: {"id": row.id, "uuid": row.uuid, "name": row.name, "project": row.project,
                 "description": row.description, "rules": [], "servers": []}
        for row in connection.execute(query)
    }
    rules, link = security_group_rule, instance_security_group
    for row in connection.execute(sa.select(rules).where(rules.c.group_id.in_(sorted(groups))).order_by(rules.c.id)):
        groups[row.group_id]["rules"].append({field: getattr(row, field) for field in _RULE})
    names = connection.execute(
        sa.select(link.c.group_id, instance.c.name)
        .join(instance, instance.c.id == link.c.instance_id)
        .where(link.c.group_id.in_(sorted(groups)), instance.c.deleted == 0)
        .order_by(instance.c.id)
    )
    for group_id, name in names:
        groups[group_id]["servers"].append(name)
    result: dict[str, t.Any] = {"changed": False, "security_groups": list(groups.values())}
    if params["picture"]:
        result["dot"] = security_groups.dot(groups.values())
    return result


def _end(connection: sa.Connection, project_id: str, name: str) -> reach.End:
    """An instance by its name or one of its addresses; otherwise an address that is nobody's."""
    try:
        address = str(ipaddress.ip_address(name))
    except ValueError:
        found = instances_by(connection, names=[name], project_id=project_id)
        if not found:
            mine = sa.and_(instance.c.project_id == project_id, instance.c.deleted == 0)
            others = connection.execute(sa.select(instance.c.name).where(mine).order_by(instance.c.name)).scalars()
            raise lookups.unknown("server", name, others) from None
        return _instance_end(found[0])
    for one in instances_by(connection, project_id=project_id):
        end = _instance_end(one, address)
        if end.addresses:
            return end
    return reach.End(address, (reach.Address(address),))


def _instance_end(one: t.Mapping[str, t.Any], only: str | None = None) -> reach.End:
    addresses = tuple(
        reach.Address(address, nic["network"]["id"], nic["network"]["bridge"] if nic["network"]["isolated"] else "")
        for nic in one["nics"]
        for address in (nic["ip"], nic["ipv6"])
        if address and only in (None, address)
    )
    return reach.End(one["name"], addresses, one["security_groups"])
