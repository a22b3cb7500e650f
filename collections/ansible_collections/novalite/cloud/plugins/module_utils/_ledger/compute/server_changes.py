# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes that users make to existing instances: labels, metadata, tags, groups."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NotFoundError, QuotaError
from ..._json import JsonMapping, JsonObject
from ..._model.rows import InstanceRow
from ..._rules import ha_wishes
from ..._rules.ha_wishes import HaWishes
from ..db import clock
from ..db.tables import instance, instance_security_group, security_group
from ..instances import actions
from ..instances.actions import swap
from ..network import dns_names
from ..queries.compute import state_rules
from ..queries.compute.instance_rows import locked_row
from ..queries.compute.state_rules import RULES
from ..queries.identity import quota_records
from ..queries.network.group_records import DEFAULT_GROUP
from ..security.security_groups import ensure_default_group
from ..volumes import ha_disks

Held = t.TypeVar("Held")

MAX_METADATA = 128 * 1024  # characters of all keys and values of one instance, whatever the quotas say


def change(connection: sa.Connection, row: InstanceRow, values: JsonMapping) -> None:
    """Write `values` (columns of `instance`) to the instance. Raises NotFoundError if it was deleted meanwhile, and
    ConflictError for a host name that is another's on one of its networks."""
    if not swap(connection, row.uuid, {**values, "updated_at": clock.seconds(connection)}):
        raise NotFoundError(f"Instance {row.uuid} could not be found.")
    if "hostname" in values and values["hostname"] != row.hostname:
        dns_names.claim(connection, [row.uuid], chosen=[row.uuid])


def change_metadata(
    connection: sa.Connection,
    row: InstanceRow,
    items: t.Mapping[str, str],
    *,
    replace: bool = False,
    remove: t.Collection[str] = (),
    by_admin: bool = False,
) -> dict[str, str]:
    """Add `items` to the instance's metadata, or put them in its place, take `remove` out; returns what it is then.
    Raises StateError for a locked instance, QuotaError for more than the project's quota allows."""
    state_rules.check(connection, RULES["change_metadata"], [row], by_admin=by_admin)
    before = _held(connection, row, instance.c.metadata)
    after = {**({} if replace else before), **items}
    after = {key: value for key, value in after.items() if key not in remove}
    limit = quota_records.quota_limits(connection, row.project_id)["metadata_items"]
    if len(after) > len(before) and 0 <= limit < len(after):
        raise QuotaError(f"Maximum number of metadata items exceeds {limit}")
    if sum(len(key) + len(value) for key, value in after.items()) > MAX_METADATA:
        raise QuotaError(f"The metadata of an instance has at most {MAX_METADATA} characters")
    if after != before:
        change(connection, row, {"metadata": after})
    return after


def change_tags(
    connection: sa.Connection,
    row: InstanceRow,
    update: t.Callable[[frozenset[str]], t.Collection[str]],
    *,
    by_admin: bool = False,
) -> list[str]:
    """Make of the instance's tags what `update` makes of them; returns them, sorted. Raises StateError."""
    state_rules.check(connection, RULES["change_tags"], [row], by_admin=by_admin)
    before = _held(connection, row, instance.c.tags)
    after = sorted(update(frozenset(before)))
    if after != before:
        change(connection, row, {"tags": after})
    return after


def ha_of(connection: sa.Connection, uuid: str) -> JsonObject:
    """Return what is to become of the instance when its host dies: `ha`, `ha_priority` and `ha_rebuild`."""
    columns = [instance.c[field] for field in ha_wishes.FIELDS]
    return dict(connection.execute(sa.select(*columns).where(instance.c.uuid == uuid)).mappings().one())


def change_ha(
    connection: sa.Connection,
    uuid: str,
    wishes: HaWishes,
    *,
    request_id: str | None = None,
    user_id: str | None = None,
    by_admin: bool = False,
) -> tuple[JsonObject, JsonObject]:
    """Change what is to become of the instance when its host dies; what `wishes` leaves open stays. Returns what held
    before and what holds now, as ha_of(). Raises NotFoundError, StateError, and NovaliteError for what its disks cannot
    keep."""
    row = locked_row(connection, uuid)
    state_rules.check(connection, RULES["change_ha"], [row], by_admin=by_admin)
    before = ha_of(connection, uuid)
    after = ha_wishes.resolved(wishes, HaWishes(**before))
    if after == before:
        return before, after
    change(connection, row, {**after, "ha_reason": None})  # the watch judges anew whether it can be healed
    ha_disks.check(connection, [uuid])
    now = clock.seconds(connection)
    signature = {"user_id": user_id, "project_id": row.project_id}
    actions.start(connection, "change_ha", {uuid: after}, request_id, now, **signature)
    actions.finish(connection, "change_ha", [(uuid, None, None)], now=now)
    return before, after


def _held(connection: sa.Connection, row: InstanceRow, column: sa.Column[Held]) -> Held:
    """The column's value, which no other transaction changes before this one ends."""
    locked_row = connection.execute(
        sa.select(column).where(instance.c.id == row.id, instance.c.deleted == 0).with_for_update(key_share=True)
    ).first()
    if locked_row is None:
        raise NotFoundError(f"Instance {row.uuid} could not be found.")
    return locked_row[0]


def security_group_of(connection: sa.Connection, project_id: str, name: str) -> t.Any:
    """`id` and `uuid` of the project's security group of this name or UUID. Raises NotFoundError."""
    query = (
        sa.select(security_group.c.id, security_group.c.uuid)
        .where(security_group.c.project_id == project_id)
        .where(sa.or_(security_group.c.name == name, security_group.c.uuid == name))
        # a name may look like another group's UUID, which counts then
        .order_by(sa.case((security_group.c.uuid == name, 0), else_=1))
    )
    row = connection.execute(query).first()
    if row is None and name == DEFAULT_GROUP:
        ensure_default_group(connection, project_id, open_to_members=True)
        row = connection.execute(query).first()
    if row is None:
        raise NotFoundError(f"Security group {name} not found for project {project_id}.")
    return row


def change_group(connection: sa.Connection, row: InstanceRow, name: str, *, joins: bool, by_admin: bool = False) -> str:
    """Put the instance into a group of its project, or take it out; return the group's UUID. Raises StateError for a
    server that is locked or adopted, and NotFoundError for a group that there is not, or that it is not in."""
    row = locked_row(connection, row.uuid)
    state_rules.check(connection, RULES["change_security_groups"], [row], by_admin=by_admin)
    group = security_group_of(connection, row.project_id, name)
    if joins:
        join_group(connection, row, group.id)
    elif not leave_group(connection, row, group.id):
        raise NotFoundError(f"Security group {name} not associated with the instance {row.uuid}")
    return str(group.uuid)


def groups_of(connection: sa.Connection, uuid: str) -> set[str]:
    """Return the UUIDs of the instance's groups, which nobody else changes before this transaction ends."""
    row = locked_row(connection, uuid)
    link = instance_security_group.c
    query = sa.select(security_group.c.uuid).join(instance_security_group, link.group_id == security_group.c.id)
    return set(connection.execute(query.where(link.instance_id == row.id)).scalars())


def join_group(connection: sa.Connection, row: InstanceRow, group_id: int) -> bool:
    """Put the instance into the security group; returns whether it was not in it before."""
    link = instance_security_group
    there = sa.select(link.c.group_id).where(link.c.instance_id == row.id, link.c.group_id == group_id)
    if connection.execute(there).first() is not None:
        return False
    connection.execute(sa.insert(link).values(instance_id=row.id, group_id=group_id))
    return True


def leave_group(connection: sa.Connection, row: InstanceRow, group_id: int) -> bool:
    """Take the instance out of the security group; returns whether it was in it."""
    link = instance_security_group
    gone = connection.execute(sa.delete(link).where(link.c.instance_id == row.id, link.c.group_id == group_id))
    return bool(gone.rowcount)
