# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on the caller's project's security groups and their rules, which hosts learn."""

from __future__ import annotations

import dataclasses
import typing as t

from ...._errors import ConflictError, DefaultGroupError, NovaliteError
from ...queries.network.group_records import DEFAULT_GROUP
from ...security import group_rules
from ...security.security_groups import ensure_default_group
from ..call import Call
from ..hosts import update_hosts_of_group
from .owners import Named, check_own

TEMPLATES = ("{{", "{%", "{#")  # a name goes through Ansible, which would take these for a template


class RepeatedRuleError(ConflictError):
    """A request asks for the same rule twice."""


@dataclasses.dataclass(frozen=True)
class RuleRequest:
    """A rule as group_rules.add_rule() takes it."""

    protocol: str
    direction: str = "ingress"
    ethertype: str | None = None
    port_min: int | None = None
    port_max: int | None = None
    icmp_type: int | None = None
    icmp_code: int | None = None
    cidr: str | None = None
    remote_group_uuid: str | None = None
    description: str = ""
    protocol_said: str | None = None
    cidr_said: str | None = None


def ensure_default(call: Call) -> None:
    """Make the project's default group, which lets its members in, if there is none."""
    ensure_default_group(call.connection, call.project, open_to_members=True)


def create(call: Call, named: Named, name: str, description: str) -> str:
    """Make a group; return its UUID. Raises DefaultGroupError for the name of the group that each project has, and as
    owners.check_own() and group_rules.create_group()."""
    check_own(call, named)
    _check_name(name)
    if name == DEFAULT_GROUP:
        raise DefaultGroupError("Default security group already exists.")
    return group_rules.create_group(call.connection, call.project, name, description)


def update(call: Call, group_uuid: str, name: str | None, description: str | None) -> None:
    """Change what is not None. Raises as group_rules.update_group(), and NovaliteError for a name."""
    _check_name(name or "")
    group_rules.update_group(call.connection, call.project, group_uuid, name, description)


def delete(call: Call, group_uuid: str, *, naming_rules: bool = True) -> None:
    """Delete a group, with `naming_rules` also the rules of others that name it, as Neutron does. Raises as
    group_rules.delete_group()."""
    for group in group_rules.delete_group(call.connection, call.project, group_uuid, naming_rules):
        update_hosts_of_group(call, group)


def add_rules(call: Call, group_uuid: str, rules: t.Sequence[RuleRequest]) -> list[str]:
    """Add rules to a group; return their ids. Raises RepeatedRuleError, and as group_rules.add_rule()."""
    added: list[str] = []
    for rule in rules:
        try:
            rule_id, group = group_rules.add_rule(call.connection, call.project, group_uuid, dataclasses.asdict(rule))
        except group_rules.RuleExistsError as error:
            if error.rule_id in added:
                raise RepeatedRuleError(str(error)) from None
            raise
        added.append(rule_id)
    if added:
        update_hosts_of_group(call, group)
    return added


def delete_rules(call: Call, rule_ids: t.Iterable[str]) -> None:
    """Delete rules. Raises as group_rules.delete_rule()."""
    groups = [group_rules.delete_rule(call.connection, call.project, rule_id) for rule_id in rule_ids]
    for group in dict.fromkeys(groups):
        update_hosts_of_group(call, group)


def _check_name(name: str) -> None:
    if any(mark in name for mark in TEMPLATES):
        raise NovaliteError(f"Invalid input for name. '{name[:60]}' holds the beginning of a template")
