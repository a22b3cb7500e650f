# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Members of security groups, for rules that name a group: every host with such a rule has to know every member.

An address on an isolated network means nothing elsewhere, so members are told by scope: "" for all networks that share
one range of addresses, otherwise the bridge of the isolated one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

import sqlalchemy as sa

from ...._addressing.macs import LINK_LOCAL, eui64
from ...._addressing.pools import to_text
from ...._errors import NovaliteError
from ...._firewall.rules import expanded
from ...._json import JsonObject
from ...._model.instance import addresses_of, is_secured
from ...._plan.host_plan import GroupsPlan, Plan, ServersPlan
from ...._rules.build_states import OFFLOADED
from ...db.tables import fixed_ip, instance, instance_security_group, network, security_group_rule, vif
from ...db.tables_addresses import HELD
from .address_pairs import without_others
from .further_ips import further_ips_where

Instance = t.Mapping[str, t.Any]
Members = dict[str, list[str]]  # scope -> addresses
Scopes = dict[str, set[str]]  # the same
EVERYWHERE = ""


def complete(
    connection: sa.Connection,
    plans: t.Mapping[str, t.Mapping[str, ServersPlan]],
    instances_by_kind: t.Mapping[str, t.Sequence[Instance]],
) -> tuple[dict[str, dict[str, ServersPlan]], dict[str, GroupsPlan]]:
    """Return `plans` (by kind and host) with the groups that rules name, and their members; and a plan for each host
    where somebody's rules name a group that gains or loses a member: it says who joins and who leaves, however many
    members there are, without those groups whose members the host's build brings.

    `instances_by_kind`: the instances by kind of plan. What the ledger does not know yet (in check mode) is taken from
    them.
    """
    joining, leaving = _movements(connection, instances_by_kind)
    changing = {group["id"] for server in (*joining, *leaving) for group in server["security_groups"]}
    elsewhere = hosts_naming(connection, changing)
    named = {
        rule["remote_group_id"]
        for of_hosts in plans.values()
        for plan in of_hosts.values()
        for group in plan.security_groups
        for rule in group["rules"]
    } - {None}
    if not named and not elsewhere:
        return {kind: dict(of_hosts) for kind, of_hosts in plans.items()}, {}
    members = members_of(connection, named, joining, leaving)
    completed = {
        kind: {
            host: dataclasses.replace(plan, security_groups=add_members(plan.security_groups, members))
            for host, plan in of_hosts.items()
        }
        for kind, of_hosts in plans.items()
    }
    changes = differences(connection, set().union(*elsewhere.values()), joining, leaving)
    groups_by_host: dict[str, GroupsPlan] = {}
    for host, groups in elsewhere.items():
        build = completed["build"].get(host)
        brought = {group["id"] for group in build.security_groups if "members" in group} if build else set()
        if groups - brought:
            groups_by_host[host] = GroupsPlan([changes[group] for group in sorted(groups - brought)])
    return completed, groups_by_host


def _movements(
    connection: sa.Connection, instances_by_kind: t.Mapping[str, t.Sequence[Instance]]
) -> tuple[list[Instance], list[Instance]]:
    """The instances that join their groups, and those that leave them. One that moves to another host does neither."""
    going = {server["uuid"]: server for server in instances_by_kind.get("remove", ())}
    coming = {server["uuid"]: server for server in instances_by_kind.get("build", ())}
    by_itself = sorted(going.keys() - coming.keys())
    # once a move is done, what is taken away is only what the host that was left has of it
    there = sa.select(instance.c.uuid, instance.c.host).where(instance.c.uuid.in_(by_itself), instance.c.deleted == 0)
    hosts = {row.uuid: row.host for row in connection.execute(there)} if by_itself else {}
    return (
        [server for uuid, server in coming.items() if uuid not in going],
        [going[uuid] for uuid in by_itself if hosts.get(uuid) in (None, going[uuid]["host"])],
    )


def differences(
    connection: sa.Connection, groups: t.Collection[int], joining: t.Sequence[Instance], leaving: t.Sequence[Instance]
) -> dict[int, Plan]:
    """Return each of these groups as the module `firewall` takes it, with the addresses that it gains and loses."""
    of_these = instance.c.uuid.in_(sorted(server["uuid"] for server in joining))
    gained = members_of(connection, groups if joining else (), joining, leaving, of_these)
    lost = _of_nics(leaving, groups)
    losing = {group for group, scopes in lost.items() if scopes}
    # An address may be one that others of the group may use, too. Who has none of this kind loses it to those only that
    # have some.
    staying: dict[int, Members] = {}
    if any(nic.get("allowed_address_pairs") for server in leaving for nic in server["nics"]):
        staying = members_of(connection, losing, joining, leaving)
    elif losing:
        rows = connection.execute(sa.select(vif.c.instance_uuid).where(vif.c.allowed_address_pairs.is_not(None)))
        uuids = {uuid for uuid in rows.scalars() if uuid is not None}
        staying = members_of(connection, losing if uuids else (), joining, leaving, instance.c.uuid.in_(uuids))
    return {
        group: {
            "id": group,
            "joining": _scoped(gained.get(group, {})),
            "leaving": _scoped(
                {
                    scope: addresses.difference(staying.get(group, {}).get(scope, ()))
                    for scope, addresses in lost[group].items()
                }
            ),
        }
        for group in groups
    }


def _scoped(scopes: t.Mapping[str, t.Collection[str]]) -> list[JsonObject]:
    return [{"bridge": scope, "addresses": sorted(scopes[scope])} for scope in sorted(scopes) if scopes[scope]]


def _of_nics(servers: t.Iterable[Instance], groups: t.Collection[int]) -> dict[int, Scopes]:
    """Group -> the addresses that these instances have in it."""
    by_group: dict[int, Scopes] = {group: {} for group in groups}
    for server in servers:
        for group in server["security_groups"]:
            for nic in filter(is_secured, server["nics"]) if group["id"] in by_group else ():
                scope = nic["network"]["bridge"] if nic["network"].get("isolated") else EVERYWHERE
                by_group[group["id"]].setdefault(scope, set()).update(
                    _addresses(nic["mac"], addresses_of(nic), nic.get("allowed_address_pairs"))
                )
    return by_group


def members_of(
    connection: sa.Connection,
    groups: t.Collection[int],
    joining: t.Sequence[Instance] = (),
    leaving: t.Sequence[Instance] = (),
    *conditions: sa.ColumnElement[bool],
) -> dict[int, Members]:
    """Group -> the addresses of its instances, also those that several instances may use; of an interface whose port
    security is off, none. `conditions`: of which of them, those that are `joining` aside."""
    if not groups:
        return {}
    link = instance_security_group
    gone = {server["uuid"] for server in leaving}
    scopes_by_group = _of_nics(joining, groups)
    rows = connection.execute(
        sa.select(
            link.c.group_id,
            instance.c.uuid,
            vif.c.id.label("vif_id"),
            vif.c.mac,
            vif.c.ipv6,
            vif.c.allowed_address_pairs,
            fixed_ip.c.ip,
            instance.c.project_id,
            vif.c.network_id,
            network.c.isolated,
            network.c.bridge,
        )
        .select_from(
            link.join(instance, instance.c.id == link.c.instance_id)
            .join(vif, vif.c.instance_uuid == instance.c.uuid)
            .join(network, network.c.id == vif.c.network_id)
            .outerjoin(fixed_ip, HELD)
        )
        .where(
            link.c.group_id.in_(sorted(groups)),
            instance.c.deleted == 0,
            vif.c.port_security_enabled.is_(True),
            *conditions,
            # one that is shelved keeps its addresses, and sends nothing from them
            sa.or_(instance.c.vm_state != OFFLOADED, instance.c.host.is_not(None)),
        )
    )
    in_groups = sa.select(link.c.instance_id).where(link.c.group_id.in_(sorted(groups)))
    # one condition is enough, and by both SQLite would read the groups
    further = further_ips_where(connection, *(conditions or [instance.c.id.in_(in_groups)]), instance.c.deleted == 0)
    for row in rows.all():
        if row.uuid not in gone:
            own = [*([] if row.ip is None else [to_text(row.ip)]), *further.get(row.vif_id, ())]
            scope = row.bridge if row.isolated else EVERYWHERE
            scopes_by_group[row.group_id].setdefault(scope, set()).update(
                _addresses(
                    row.mac,
                    [*own, *([row.ipv6] if row.ipv6 else [])],
                    without_others(connection, row.project_id, row.network_id, row.allowed_address_pairs),
                )
            )
    return {
        group: {scope: sorted(addresses) for scope, addresses in sorted(scopes.items())}
        for group, scopes in scopes_by_group.items()
    }


def with_members(group: Plan, members: t.Mapping[int, Members]) -> Plan:
    """A group as the module `firewall` takes it, with its members where they are known."""
    if group["id"] not in members:
        return group
    scopes = members[group["id"]]
    scoped = [{"bridge": scope, "addresses": scopes[scope]} for scope in scopes if scope != EVERYWHERE]
    return {**group, "members": scopes.get(EVERYWHERE, []), **({"scoped_members": scoped} if scoped else {})}


def _addresses(mac: str, own: t.Iterable[str], pairs: t.Iterable[t.Mapping[str, t.Any]] | None) -> set[str]:
    addresses = {*own, eui64(LINK_LOCAL, mac)}
    for pair in pairs or ():
        # A range may be all there is: whoever may send from it must not become everybody.
        with contextlib.suppress(NovaliteError):
            addresses.update(expanded(pair["ip_address"]))
    return addresses


def hosts_naming(connection: sa.Connection, groups: t.Collection[int]) -> dict[str, set[int]]:
    """Host -> those of `groups` that rules of groups of its instances name."""
    rules, link = security_group_rule, instance_security_group
    groups_by_host: dict[str, set[int]] = {}
    if not groups:
        return groups_by_host
    rows = connection.execute(
        sa.select(instance.c.host, rules.c.remote_group_id)
        .join(link, link.c.instance_id == instance.c.id)
        .join(rules, rules.c.group_id == link.c.group_id)
        .where(rules.c.remote_group_id.in_(sorted(groups)), instance.c.deleted == 0, instance.c.host.is_not(None))
        .distinct()
    )
    for host, group in rows:
        groups_by_host.setdefault(host, set()).add(group)
    return groups_by_host


def add_members(groups: t.Sequence[Plan], members: t.Mapping[int, Members]) -> list[Plan]:
    """The groups with their members, and those that their rules name."""
    there = {group["id"] for group in groups}
    named = {rule["remote_group_id"] for group in groups for rule in group.get("rules", ())} - {None}
    return [
        with_members(group, members) for group in (*groups, *({"id": group_id} for group_id in sorted(named - there)))
    ]
