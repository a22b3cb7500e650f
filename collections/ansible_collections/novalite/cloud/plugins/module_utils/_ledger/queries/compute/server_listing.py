# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances as the APIs show them: which ones, in what order, with as little read as that takes.

views.py reads all that a launch needs of an instance; here are a thousand instances a page, and neither rules nor
images in full.
"""

from __future__ import annotations

import dataclasses
import types
import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._json import JsonMapping, JsonObject
from ...._model import listed_servers
from ...._model.instance import Image
from ...._model.listed_servers import BATCH
from ...db.tables import (
    compute_host,
    fixed_ip,
    flavor,
    floating_ip,
    instance,
    instance_security_group,
    network,
    security_group,
    server_group_member,
    vif,
)
from ...db.tables_addresses import HELD
from ...db.tables_volumes import volume_attachment
from ..network.further_ips import OF_INSTANCES
from ..placement import zones

Record = JsonObject
Matches = t.Callable[[str], bool]

# Columns that are long, or the guest's alone
_UNREAD = {
    *("flavor", "image", "rescue_image", "disk_image", "cdroms", "public_key", "attempts"),
    *("user_data", "files", "password_hash", "password_optional"),
}
_FIELDS = tuple(column.name for column in instance.c if column.name not in _UNREAD)
SHOWN_NAME = sa.func.coalesce(instance.c.display_name, instance.c.name)
_COLUMNS = (
    *(instance.c[name] for name in _FIELDS),
    # as text: the same few flavors come again and again, and each is parsed once
    sa.cast(instance.c.flavor, sa.Text).label("flavor_text"),
    instance.c.image["id"].as_string().label("image_id"),
)

# What lists can be sorted by; a null sorts as the value beside it.
SORT_KEYS: dict[str, sa.ColumnElement[t.Any]] = {
    "display_name": SHOWN_NAME,
    "display_description": sa.func.coalesce(instance.c.description, ""),
    "image_ref": sa.func.coalesce(instance.c.image["id"].as_string(), ""),
    "instance_type_id": instance.c.flavor["name"].as_string(),
    **{name: instance.c[name] for name in ("id", "uuid", "hostname", "project_id", "vm_state", "power_state")},
    **{name: instance.c[name] for name in ("created_at", "updated_at")},
    **{name: sa.func.coalesce(instance.c[name], 0) for name in ("launched_at", "terminated_at")},
    **{name: sa.func.coalesce(instance.c[name], "") for name in ("task_state", "host", "availability_zone")},
    **{name: sa.func.coalesce(instance.c[name], "") for name in ("key_name", "user_id")},
    **{name: sa.cast(instance.c[name], sa.Integer) for name in ("config_drive", "locked")},
}
# Conditions "column is value" that a query may hold
EQUALS = frozenset(
    [
        *("uuid", "host", "hostname", "key_name", "user_id", "reservation_id"),
        *("vm_state", "task_state", "power_state", "config_drive", "locked"),
    ]
)


LEAST = 100  # rows that are read at a time, where few are asked for


@dataclasses.dataclass(frozen=True)
class NameBegins:
    """A condition that the database knows: a name that begins with `text`, or (`whole`) is it, or has `pattern` in it
    as it stands."""

    text: str
    whole: bool
    pattern: str

    def condition(self, dialect: str, name: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
        begins = name == self.text if self.whole else sa.func.substr(name, 1, len(self.text)) == self.text
        return sa.or_(begins, _contains(dialect, name, self.pattern))


@dataclasses.dataclass
class Query:
    """Conditions on the instances of a list; None is no condition."""

    project_id: str | None = None
    deleted: bool | None = False  # None: both
    equals: dict[str, t.Any] = dataclasses.field(default_factory=dict)  # by names in EQUALS
    states: list[tuple[str, tuple[str | None, ...] | None]] | None = None  # (vm_state, task states or any)
    not_task_states: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)  # by vm_state
    flavor: str | None = None  # flavorid
    image: str | None = None
    availability_zone: str | None = None
    since: int | None = None  # seconds since the epoch
    before: int | None = None
    name: str | None = None  # a part of it
    name_begins: NameBegins | None = None  # what name_matches takes for certain, or all that it would
    name_matches: Matches | None = None
    ip_matches: Matches | None = None
    ip6_matches: Matches | None = None
    tags: t.Callable[[set[str]], bool] | None = None
    sort: list[tuple[str, bool]] = dataclasses.field(default_factory=list)  # (of SORT_KEYS, ascending)
    limit: int | None = None
    marker: str | None = None

    @property
    def order(self) -> list[tuple[str, bool]]:
        """The whole order, in which no two are alike."""
        return [*self.sort, ("id", self.sort[-1][1] if self.sort else False)]

    @property
    def in_python(self) -> bool:
        """Tell whether the conditions take more than the database."""
        return any((self.name_matches, self.ip_matches, self.ip6_matches, self.tags))


def ordered(dialect: str, query: Query) -> sa.Select[t.Any]:
    """The query for the numbers of all that `query` asks a database of this dialect for, in its order."""
    order = (SORT_KEYS[key].asc() if up else SORT_KEYS[key].desc() for key, up in query.order)
    return sa.select(instance.c.id).where(*_conditions(dialect, query)).order_by(*order)


def find(connection: sa.Connection, query: Query) -> list[int]:
    """The numbers of the instances that `query` asks for, in its order. Raises NotFoundError for its marker."""
    select = ordered(connection.dialect.name, query)
    if query.availability_zone is not None:
        select = select.where(_in_zone(connection, query.availability_zone))
    if query.marker is not None:
        select = select.where(_after(connection, query))
    if not query.in_python:
        if query.limit is not None:
            select = select.limit(query.limit)
        return list(connection.execute(select).scalars())
    by_address = query.ip_matches is not None or query.ip6_matches is not None
    # no more columns than conditions look at: names are in the index of the order
    columns = [instance.c.id, SHOWN_NAME.label("shown")]
    columns += [instance.c.tags] if query.tags is not None else []
    columns += [instance.c.uuid] if by_address else []
    size = BATCH if query.limit is None else min(max(query.limit, LEAST), BATCH)
    ids: list[int] = []
    with connection.execute(select.with_only_columns(*columns).execution_options(yield_per=size)) as result:
        for rows in result.partitions():
            rows = [
                row
                for row in rows
                if (query.name_matches is None or query.name_matches(row.shown))
                and (query.tags is None or query.tags(set(row.tags)))
            ]
            ids += [row.id for row in (_with_addresses(connection, query, rows) if by_address else rows)]
            if query.limit is not None and len(ids) >= query.limit:
                break  # what comes behind the page is not read
    return ids[: query.limit]


def load(connection: sa.Connection, ids: t.Sequence[int], user_data: bool = False) -> list[Record]:
    """The records of these instances, in this order. With `user_data` they have that, too: base64, 64 KiB at most."""
    return listed_servers.records(_reader(connection, {"servers": _WITH_USER_DATA} if user_data else {}), ids)


def _reader(
    connection: sa.Connection, instead: t.Mapping[str, sa.Select[t.Any]] = types.MappingProxyType({})
) -> listed_servers.Read:
    """Return what reads by LOAD's statements, or others `instead`."""

    def read(name: str, values: JsonMapping) -> t.Iterable[t.Any]:
        return connection.execute(instead.get(name, LOAD[name]), dict(values)).mappings()

    return read


def groups_of(connection: sa.Connection, uuid: str) -> list[str]:
    """The ids of the server groups that the instance is in: one, or none."""
    member = server_group_member
    return list(connection.execute(sa.select(member.c.group_id).where(member.c.instance_uuid == uuid)).scalars())


def instance_row(connection: sa.Connection, uuid: str, project_id: str | None, deleted: bool = False) -> t.Any:
    """The row of the instance `uuid`, if it is of `project_id` (None: of any). Raises NotFoundError."""
    row = connection.execute(_INSTANCE_ROW, {"uuid": uuid}).first()
    if row is None or (project_id is not None and row.project_id != project_id) or (row.deleted and not deleted):
        raise NotFoundError(f"Instance {uuid} could not be found.")
    return row


_IDS: sa.BindParameter[t.Any] = sa.bindparam("ids", expanding=True)
_LOAD = sa.select(*_COLUMNS).where(instance.c.id.in_(_IDS))
_WITH_USER_DATA = _LOAD.add_columns(instance.c.user_data)
_INSTANCE_ROW = sa.select(*(instance.c[name] for name in _FIELDS)).where(instance.c.uuid == sa.bindparam("uuid"))
_LOAD_VOLUMES = (
    sa.select(
        *(volume_attachment.c[name] for name in ("instance_uuid", "volume_id", "boot_index", "delete_on_termination"))
    )
    .where(volume_attachment.c.instance_uuid.in_(sa.bindparam("uuids", expanding=True)))
    .order_by(volume_attachment.c.instance_uuid, volume_attachment.c.device)
)
_LOAD_GROUPS = (
    sa.select(instance_security_group.c.instance_id, security_group.c.name)
    .join(security_group, security_group.c.id == instance_security_group.c.group_id)
    .where(instance_security_group.c.instance_id.in_(_IDS))
    .order_by(security_group.c.id)
)
_LOAD_HOSTS = sa.select(*(compute_host.c[name] for name in ("name", "zone", "aggregates", "up", "enabled"))).where(
    compute_host.c.name.in_(sa.bindparam("names", expanding=True))
)
_LOAD_NICS = (
    sa.select(
        *(vif.c[name] for name in ("instance_uuid", "id", "mac", "ipv6", "status")),
        fixed_ip.c.ip,
        sa.func.coalesce(network.c.display_name, network.c.name).label("network"),
        network.c.uuid.label("network_uuid"),
    )
    .select_from(vif.join(network, network.c.id == vif.c.network_id).outerjoin(fixed_ip, HELD))
    .where(vif.c.instance_uuid.in_(sa.bindparam("uuids", expanding=True)))
    .order_by(vif.c.instance_uuid, vif.c.position)
)
_LOAD_FLOATING = (
    sa.select(floating_ip.c.vif_id, floating_ip.c.address, floating_ip.c.further_ip)
    .join(vif, vif.c.id == floating_ip.c.vif_id)
    .where(vif.c.instance_uuid.in_(sa.bindparam("uuids", expanding=True)))
    .order_by(floating_ip.c.address)
)


# What listed_servers reads. The command `novalite` has them as texts, too: operations/looks.py
LOAD: dict[str, sa.Select[t.Any]] = {
    "servers": _LOAD,
    "volumes": _LOAD_VOLUMES,
    "groups": _LOAD_GROUPS,
    "hosts": _LOAD_HOSTS,
    "zones_of_hosts": zones.OF_HOSTS,
    "nics": _LOAD_NICS,
    "floating_ips": _LOAD_FLOATING,
    "further_ips": OF_INSTANCES,
    "flavors": sa.select(flavor.c.name, flavor.c.flavorid, flavor.c.id).where(
        flavor.c.name.in_(sa.bindparam("names", expanding=True))
    ),
}


def _conditions(dialect: str, query: Query) -> list[sa.ColumnElement[bool]]:
    c = instance.c
    conditions: list[sa.ColumnElement[bool]] = [
        c[name].is_(None) if value is None else c[name] == value for name, value in query.equals.items()
    ]
    if query.project_id is not None:
        conditions.append(c.project_id == query.project_id)
    if query.deleted is not None:
        conditions.append(c.deleted != 0 if query.deleted else c.deleted == 0)
    if query.states is not None:
        conditions.append(sa.or_(sa.false(), *(_in_state(query, *state) for state in query.states)))
    if query.flavor is not None:
        named = sa.select(flavor.c.name).where(
            sa.func.coalesce(flavor.c.flavorid, sa.cast(flavor.c.id, sa.String)) == query.flavor
        )
        conditions.append(c.flavor["name"].as_string().in_(named))
    if query.image is not None:
        conditions.append(c.image["id"].as_string() == query.image)
    if query.since is not None:
        conditions.append(c.updated_at >= query.since)
    if query.before is not None:
        conditions.append(c.updated_at <= query.before)
    if query.name is not None:
        conditions.append(_contains(dialect, SHOWN_NAME, query.name))
    if query.name_begins is not None:
        conditions.append(query.name_begins.condition(dialect, SHOWN_NAME))
    return conditions


def _in_zone(connection: sa.Connection, zone: str) -> sa.ColumnElement[bool]:
    c = instance.c
    there = sa.select(compute_host.c.name).where(zones.in_zone(connection, zone))
    asked_for = sa.or_(c.availability_zone == zone, c.availability_zone.startswith(f"{zone}:", autoescape=True))
    return sa.or_(c.host.in_(there), sa.and_(c.host.is_(None), asked_for))


def _contains(dialect: str, name: sa.ColumnElement[str], text: str) -> sa.ColumnElement[bool]:
    position = sa.func.instr if dialect == "sqlite" else sa.func.strpos
    return position(name, text) > 0


def _in_state(query: Query, vm_state: str, task_states: tuple[str | None, ...] | None) -> sa.ColumnElement[bool]:
    c = instance.c
    of_vm: sa.ColumnElement[bool] = c.vm_state == vm_state
    if task_states is not None:
        return sa.and_(of_vm, c.task_state.in_([state for state in task_states if state is not None]))
    others = query.not_task_states.get(vm_state)
    if others:
        return sa.and_(of_vm, sa.or_(c.task_state.is_(None), c.task_state.not_in(others)))
    return of_vm


def _after(connection: sa.Connection, query: Query) -> sa.ColumnElement[bool]:
    """Return the condition of rows behind the marker: less or more in the first key in which they differ."""
    columns = [SORT_KEYS[key].label(f"key{number}") for number, (key, _up) in enumerate(query.order)]
    where = [instance.c.uuid == query.marker]
    if query.project_id is not None:
        where.append(instance.c.project_id == query.project_id)
    marker = connection.execute(sa.select(*columns).where(*where)).first()
    if marker is None:
        raise NotFoundError(f"marker [{query.marker}] not found")
    return behind([(SORT_KEYS[key], up) for key, up in query.order], marker)


def behind(order: t.Sequence[tuple[sa.ColumnElement[t.Any], bool]], place: t.Sequence[t.Any]) -> sa.ColumnElement[bool]:
    """Return the condition of rows that are behind those values of an order's columns (each with: ascending)."""
    further: list[sa.ColumnElement[bool]] = []
    for number, (column, up) in enumerate(order):
        same = [order[before][0] == place[before] for before in range(number)]
        further.append(sa.and_(*same, column > place[number] if up else column < place[number]))
    # the index of the order leads to where the page begins by a bound, and not by alternatives
    first, up = order[0]
    return sa.and_(first >= place[0] if up else first <= place[0], sa.or_(*further))


def _with_addresses(connection: sa.Connection, query: Query, rows: list[t.Any]) -> list[t.Any]:
    """Return the `rows` whose addresses match."""
    kept = []
    nics = listed_servers.nics_of(_reader(connection), [row.uuid for row in rows])
    for row in rows:
        of_one = nics.get(row.uuid, [])
        v4 = [address for nic in of_one for address in (*nic["ips"], *nic["floating_ips"])]
        v6 = [nic["ipv6"] for nic in of_one if nic["ipv6"] is not None]
        # both given: either will do, as in Nova
        conditions = [(query.ip_matches, v4), (query.ip6_matches, v6)]
        if any(matches is not None and any(map(matches, addresses)) for matches, addresses in conditions):
            kept.append(row)
    return kept


def user_data_of(connection: sa.Connection, number: int) -> str | None:
    """Return the user data (base64) of the instance with this number."""
    return connection.execute(sa.select(instance.c.user_data).where(instance.c.id == number)).scalar_one()


def labels_of(connection: sa.Connection, uuid: str) -> t.Any:
    """Return a row of display_name, description, locked and locked_reason of the instance."""
    columns = (instance.c.display_name, instance.c.description, instance.c.locked, instance.c.locked_reason)
    return connection.execute(sa.select(*columns).where(instance.c.uuid == uuid)).one()


def image_of(connection: sa.Connection, uuid: str) -> Image:
    """The instance's copy of its image."""
    return t.cast(Image, connection.execute(sa.select(instance.c.image).where(instance.c.uuid == uuid)).scalar_one())
