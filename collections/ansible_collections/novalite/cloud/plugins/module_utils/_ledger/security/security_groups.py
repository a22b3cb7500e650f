# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Security groups: groups of rules. What no ingress rule allows is denied; egress is open, as in Nova, until
a group has an egress rule."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, DefaultGroupError
from ..._rules.rules import EVERYONE
from ..db import tables
from ..db.engine import inserted_id
from ..queries.lookups import security_groups_by_name
from ..queries.network.group_records import DEFAULT_GROUP

DEFAULT_DESCRIPTION = "The default group"


_DEFAULT = sa.select(tables.security_group.c.id).where(
    tables.security_group.c.project_id == sa.bindparam("project_id"), tables.security_group.c.name == DEFAULT_GROUP
)


def ensure_default_group(connection: sa.Connection, project_id: str, *, open_to_members: bool) -> int:
    """Return the id of the project's group `default`, which is made when it is missing. No quota bars it.

    One that is made here lets nobody in, as Nova's, or with `open_to_members` its own members, as Neutron's and EC2's:
    by ordinary rules, which its owner may delete. One that is there already keeps its rules.
    """
    number = connection.execute(_DEFAULT, {"project_id": project_id}).scalar()
    if number is not None:
        return number
    try:
        with connection.begin_nested():
            number = insert_group(connection, project_id, DEFAULT_GROUP, DEFAULT_DESCRIPTION)
    except sa.exc.IntegrityError:  # PostgreSQL only: another first request of this project made it just now
        return int(connection.execute(_DEFAULT, {"project_id": project_id}).scalar_one())
    if open_to_members:
        rule = {"group_id": number, "remote_group_id": number, "direction": "ingress", "protocol": "any"}
        rules = [{"id": str(uuid.uuid4()), "ethertype": family, **rule} for family in EVERYONE]
        connection.execute(sa.insert(tables.security_group_rule), rules)
    return number


def insert_group(connection: sa.Connection, project_id: str, name: str, description: str) -> int:
    values = {"uuid": str(uuid.uuid4()), "project_id": project_id, "name": name, "description": description}
    return inserted_id(connection.execute(sa.insert(tables.security_group).values(**values)))


def rules_query() -> sa.Select[t.Any]:
    rules = tables.security_group_rule
    own, remote = tables.security_group.alias("own"), tables.security_group.alias("remote")
    plain = ("id", "group_id", "direction", "ethertype", "protocol", "port_min", "port_max", "cidr")
    names = (own.c.name.label("group"), remote.c.name.label("remote_group"))
    return (
        sa.select(*(rules.c[column] for column in plain), *names)
        .join(own, own.c.id == rules.c.group_id)
        .outerjoin(remote, remote.c.id == rules.c.remote_group_id)
    )


def remove_groups(connection: sa.Connection, project_id: str, names: t.Sequence[str]) -> None:
    if DEFAULT_GROUP in names:
        raise DefaultGroupError("the security group 'default' cannot be removed: give it `rules: []` to empty it")
    rows = security_groups_by_name(connection, names, project_id)
    ids = [row["id"] for row in rows]
    if not ids:
        return
    group, rules, uses = tables.security_group, tables.security_group_rule, tables.instance_security_group
    instance = tables.instance
    used = connection.execute(
        sa.select(group.c.name, instance.c.name)
        .select_from(uses)
        .join(group, group.c.id == uses.c.group_id)
        .join(instance, instance.c.id == uses.c.instance_id)
        .where(uses.c.group_id.in_(ids), instance.c.deleted == 0)
        .order_by(group.c.name, instance.c.name)
    ).first()
    if used is not None:
        raise ConflictError(f"security group {used[0]!r} is in use by the instance {used[1]!r}: remove that first")
    reserved = tables.tables_networking.port_security_group
    held = connection.execute(
        sa.select(group.c.name, reserved.c.vif_id)
        .join(group, group.c.id == reserved.c.group_id)
        .where(reserved.c.group_id.in_(ids))
        .order_by(group.c.name, reserved.c.vif_id)
    ).first()
    if held is not None:
        raise ConflictError(f"security group {held[0]!r} is in use by the port {held[1]}: remove that first")
    named = (
        connection.execute(rules_query().where(rules.c.remote_group_id.in_(ids), rules.c.group_id.not_in(ids)))
        .mappings()
        .first()
    )
    if named is not None:
        raise ConflictError(
            f"security group {named['remote_group']!r} is named by a rule of {named['group']!r}: remove that rule first"
        )
    # what is left are deleted instances, and rules among the groups that go
    connection.execute(sa.delete(uses).where(uses.c.group_id.in_(ids)))
    connection.execute(sa.delete(rules).where(rules.c.group_id.in_(ids)))
    connection.execute(sa.delete(group).where(group.c.id.in_(ids)))
