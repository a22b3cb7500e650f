# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Security groups by id and rules one by one, as clients of the Network API handle them.

They expect what is a matter of course in a group to be rules of it: a new group has two that let everything out, one
for each address family, and whoever deletes both lets nothing out. In the ledger a group without egress rules lets
everything out. So such a group is shown with the two rules, under ids that follow from its own; they become records as
soon as something else is said about egress, and a group that shall let nothing out has one that leads to NOBODY.
"""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping
from ..._rules.listed_nouns import NOBODY, WRITTEN_COLUMNS, open_egress
from ..._rules.records import check_text, checked_names
from ..._rules.rules import identity, normalised
from ..db.tables import instance, instance_security_group, security_group, security_group_rule
from ..identity.quotas import check_quota
from ..queries.counts import is_any, owned
from ..queries.lookups import lock_project, of_project, security_groups_by_name
from ..queries.network.group_records import DEFAULT_GROUP, GROUPS, RULES, Record, groups_of
from .security_groups import insert_group, remove_groups


class RuleExistsError(ConflictError):
    """A group has a rule, `rule_id`, that is the same."""

    def __init__(self, rule_id: str) -> None:
        super().__init__(f"Security group rule already exists. Rule id is {rule_id}.")
        self.rule_id = rule_id


LOAD: dict[str, sa.Select[t.Any]] = {
    "security_groups": GROUPS.where(of_project(security_group.c.project_id)),
    "security_group_rules": RULES.where(of_project(security_group.c.project_id)),
}


def create_group(connection: sa.Connection, project_id: str, name: str, description: str) -> str:
    """Make a group; returns its UUID. Raises ConflictError for a name that the project has, QuotaError."""
    (name,) = checked_names("security group", [{"name": name}], spaces=True)
    check_text("description", description)
    lock_project(connection, project_id)
    _check_free(connection, project_id, name)
    number = add_group(connection, project_id, name, description)
    return str(connection.execute(sa.select(security_group.c.uuid).where(security_group.c.id == number)).scalar_one())


def add_group(connection: sa.Connection, project_id: str, name: str, description: str) -> int:
    """Record a group whose name is checked and free; returns its number. Raises QuotaError."""
    number = insert_group(connection, project_id, name, description)
    check_quota(connection, project_id, "security_groups", owned(connection, project_id, "security_groups"))
    return number


def update_group(
    connection: sa.Connection, project_id: str, group_uuid: str, name: str | None, description: str | None
) -> None:
    """Change what is not None. Raises NotFoundError, ConflictError for a name that is taken or the default group's."""
    lock_project(connection, project_id)
    group = _group(connection, project_id, group_uuid)
    values = {}
    if name is not None and name != group.name:
        (values["name"],) = checked_names("security group", [{"name": name}], spaces=True)
        if DEFAULT_GROUP in (group.name, name):
            raise ConflictError("the security group 'default' keeps its name, and no other may take it")
        _check_free(connection, project_id, name)
    if description is not None:
        values["description"] = check_text("description", description)
    if values:
        connection.execute(sa.update(security_group).where(security_group.c.id == group.id).values(**values))


def delete_group(connection: sa.Connection, project_id: str, group_uuid: str, naming_rules: bool = False) -> list[int]:
    """Delete a group; returns the numbers of the groups that lost rules which named it, with `naming_rules`.

    Raises NotFoundError, and ConflictError for the default group, for one that an instance is in, and without
    `naming_rules` for one that another group's rules name.
    """
    lock_project(connection, project_id)
    row = _group(connection, project_id, group_uuid)
    losing = []
    if naming_rules and row.name != DEFAULT_GROUP:
        for group in groups_of(connection, project_id):
            for rule in group["rules"]:
                if rule["remote_group_uuid"] == group_uuid != group["uuid"]:
                    losing.append(delete_rule(connection, project_id, rule["id"]))
    remove_groups(connection, project_id, [row.name])
    return list(dict.fromkeys(losing))


def add_rule(connection: sa.Connection, project_id: str, group_uuid: str, rule: JsonMapping) -> tuple[str, int]:
    """Add one rule, as rules.normalised() takes it but with `remote_group_uuid`; returns its id and the group's number.

    `protocol_said` and `cidr_said` are kept to be shown, and decide nothing.

    Raises NovaliteError for a rule that makes no sense, NotFoundError for a group that the project does not have,
    RuleExistsError for a rule that is there already, QuotaError.
    """
    lock_project(connection, project_id)
    group = _group(connection, project_id, group_uuid)
    remote = None
    if rule.get("remote_group_uuid") is not None:
        remote = _group(connection, project_id, rule["remote_group_uuid"])
    normalised_rule = normalised({**rule, "remote_group": None if remote is None else remote.name})
    if normalised_rule["cidr"] == NOBODY:
        raise NovaliteError(f"rule: {NOBODY} is nobody's address: name the addresses that may be reached")
    there = _rules(connection, group.id)
    egress = [entry for entry in there if entry["direction"] == "egress"]
    if normalised_rule["direction"] == "egress":
        placeholders = [entry["id"] for entry in egress if entry["cidr"] == NOBODY]
        if not egress:
            there += _record_open_egress(connection, group)
        elif placeholders:
            connection.execute(sa.delete(security_group_rule).where(security_group_rule.c.id.in_(placeholders)))
            there = [entry for entry in there if entry["id"] not in placeholders]
    for entry in there:
        if identity(entry) == identity(normalised_rule):
            raise RuleExistsError(entry["id"])
    row = {
        **normalised_rule,
        "description": check_text("description", rule.get("description") or ""),
        **{column: rule.get(column) for column in WRITTEN_COLUMNS},
        # Network API's clients want back what they said, and null is not 0.0.0.0/0 to them
        "cidr": None if rule.get("cidr") is None else normalised_rule["cidr"],
    }
    ids = {} if remote is None else {remote.name: remote.id}
    _check_rules_quota(connection, project_id, group.name, [row], there)
    (number,) = _record(connection, group.id, [row], ids)
    return number, int(group.id)


def replace_rules(connection: sa.Connection, project_id: str, name: str, items: t.Iterable[JsonMapping]) -> None:
    """Make `items`, as rules.normalised() takes them, all rules of the group; one that stays keeps its id.

    Raises NovaliteError for a rule that makes no sense, NotFoundError for a group that the project does not have,
    QuotaError.
    """
    try:
        desired = {identity(rule): rule for rule in map(normalised, items)}
    except NovaliteError as error:
        raise NovaliteError(f"security group {name!r}: {error}") from error
    named = {rule["remote_group"] for rule in desired.values() if rule["remote_group"] is not None}
    groups = {row["name"]: row for row in security_groups_by_name(connection, [name, *sorted(named)], project_id)}
    there = {identity(rule): rule for rule in _rules(connection, groups[name]["id"])}
    gone = [rule["id"] for key, rule in there.items() if key not in desired]
    if gone:
        connection.execute(sa.delete(security_group_rule).where(security_group_rule.c.id.in_(gone)))
    new = [{**rule} for key, rule in desired.items() if key not in there]
    kept = [rule for key, rule in there.items() if key in desired]
    ids = {each: row["id"] for each, row in groups.items()}
    if _counted(new) > _counted(there.values()) - _counted(kept):
        _check_rules_quota(connection, project_id, name, new, kept)
    _record(connection, groups[name]["id"], new, ids)


def _counted(rules: t.Iterable[JsonMapping]) -> int:
    return sum(rule["cidr"] != NOBODY for rule in rules)


def _check_rules_quota(
    connection: sa.Connection, project_id: str, name: str, new: t.Sequence[JsonMapping], kept: t.Sequence[JsonMapping]
) -> None:
    """Raise QuotaError where the group of this name would have too many with its `new` rules."""
    counted = _counted([*kept, *new])
    check_quota(connection, project_id, "security_group_rules", counted, f"security group {name!r}")


def _record(
    connection: sa.Connection, group_id: int, new: t.Sequence[JsonMapping], ids: t.Mapping[str, int]
) -> list[str]:
    """Record `new` rules of the group; returns their ids. `ids` are those of the groups that they name."""
    rows = [
        {
            **{column: value for column, value in rule.items() if column != "remote_group"},
            "id": str(uuid.uuid4()),
            "group_id": group_id,
            "remote_group_id": ids.get(rule["remote_group"] or ""),
        }
        for rule in new
    ]
    if rows:
        connection.execute(sa.insert(security_group_rule), rows)
    return [row["id"] for row in rows]


def delete_rule(connection: sa.Connection, project_id: str, rule_id: str) -> int:
    """Delete one rule; returns the number of its group. Raises NotFoundError."""
    lock_project(connection, project_id)
    matches = [
        (group, rule) for group in groups_of(connection, project_id) for rule in group["rules"] if rule["id"] == rule_id
    ]
    if not matches:
        raise NotFoundError(f"Security group rule {rule_id} does not exist")
    ((group, rule),) = matches
    table = security_group_rule
    if rule["direction"] == "egress":
        row = _group(connection, project_id, group["uuid"])
        if not any(entry["direction"] == "egress" for entry in _rules(connection, row.id)):
            _record_open_egress(connection, row)
        left = [entry for entry in group["rules"] if entry["direction"] == "egress" and entry["id"] != rule_id]
        if not left:
            nobody = {**rule, "id": str(uuid.uuid4()), "ethertype": "IPv4", "protocol": "any", "cidr": NOBODY}
            nobody.update(port_min=None, port_max=None, remote_group_id=None)
            connection.execute(sa.insert(table).values(**{column.name: nobody[column.name] for column in table.c}))
    connection.execute(sa.delete(table).where(table.c.id == rule_id))
    return int(group["id"])


def instances_concerned(connection: sa.Connection, group: int) -> bool:
    """Tell whether a change of this group's rules concerns a host: an instance on one is in it."""
    link = instance_security_group.c
    placed = sa.and_(instance.c.deleted == 0, instance.c.host.is_not(None))
    return is_any(connection, link.group_id == group, link.instance_id == instance.c.id, placed)


def uuid_of(connection: sa.Connection, group: int) -> str:
    """Return the UUID of the group with this number."""
    return str(connection.execute(sa.select(security_group.c.uuid).where(security_group.c.id == group)).scalar_one())


def _group(connection: sa.Connection, project_id: str, group_uuid: str) -> t.Any:
    mine = sa.and_(security_group.c.project_id == project_id, security_group.c.uuid == group_uuid)
    row = connection.execute(sa.select(security_group).where(mine)).first()
    if row is None:
        raise NotFoundError(f"Security group {group_uuid} does not exist")
    return row


def _check_free(connection: sa.Connection, project_id: str, name: str) -> None:
    if is_any(connection, security_group.c.project_id == project_id, security_group.c.name == name):
        raise ConflictError(f"the project has a security group {name!r} already: names are unique here")


def _rules(connection: sa.Connection, group: int) -> list[Record]:
    """The records of a group's rules, each with the name `remote_group` by which rules are compared."""
    remote = security_group.alias("remote")
    query = (
        sa.select(security_group_rule, remote.c.name.label("remote_group"))
        .outerjoin(remote, remote.c.id == security_group_rule.c.remote_group_id)
        .where(security_group_rule.c.group_id == group)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def _record_open_egress(connection: sa.Connection, group: t.Any) -> list[Record]:
    rules = open_egress(group._mapping)
    columns = [column.name for column in security_group_rule.c]
    connection.execute(sa.insert(security_group_rule), [{column: rule[column] for column in columns} for rule in rules])
    return [{**rule, "remote_group": None} for rule in rules]
