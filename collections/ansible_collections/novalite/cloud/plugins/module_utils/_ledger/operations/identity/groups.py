# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on groups of users and their members, for every door."""

from __future__ import annotations

import typing as t

from ...._errors import NotFoundError
from ...identity import groups
from ...queries.identity import user_records
from ...queries.identity.user_records import Group
from ..call import Call
from .attributes import MOST, Attributes, keep_domain, merged
from .domains import place_for


class GroupRequest(t.TypedDict, total=False):
    """Values of a group. `extra` are changes, in which None removes an attribute; a domain is named where the group
    is made in another than the caller's."""

    name: str
    description: str
    extra: Attributes
    domain_id: str | None


def create(call: Call, request: GroupRequest) -> Group:
    """Make a group. Raises NotFoundError for a domain that is not there, ConflictError for a name that is taken."""
    place = place_for(call, request.get("domain_id"))
    return groups.create_group(call.connection, {**request, **_extra(request, {}), "domain_id": place})


def update(call: Call, group_id: str, request: GroupRequest) -> Group:
    """Change a group. Raises NotFoundError, ConflictError for a name that is taken, NovaliteError for another
    domain."""
    before = user_records.find_group(call.connection, group_id)
    keep_domain(before["domain_id"], request.get("domain_id", before["domain_id"]))
    return groups.update_group(call.connection, group_id, {**request, **_extra(request, before["extra"])})


def delete(call: Call, group_id: str) -> None:
    """Remove a group with its roles. Raises NotFoundError."""
    groups.delete_group(call.connection, group_id)


def add_member(call: Call, group_id: str, user_id: str) -> None:
    """Put a user into a group, unless it is there already. Raises NotFoundError."""
    _check_both(call, group_id, user_id)
    groups.add_member(call.connection, group_id, user_id)


def remove_member(call: Call, group_id: str, user_id: str) -> None:
    """Take a user out of a group. Raises NotFoundError, for a user who is not in it as well."""
    _check_both(call, group_id, user_id)
    if not groups.remove_member(call.connection, group_id, user_id):
        raise NotFoundError(f"Could not find user in the group: {user_id[:64]}.")


def _check_both(call: Call, group_id: str, user_id: str) -> None:
    user_records.find_group(call.connection, group_id)
    user_records.find_user(call.connection, user_id)


def _extra(request: GroupRequest, before: Attributes) -> GroupRequest:
    return {"extra": merged(before, request["extra"], MOST)} if "extra" in request else {}
