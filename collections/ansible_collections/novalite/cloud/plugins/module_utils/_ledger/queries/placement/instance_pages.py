# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pages of the list of instances that people look at: searched, narrowed, sorted. Reads only."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
import typing as t

import sqlalchemy as sa

from ...._addressing.pools import to_text
from ...._json import JsonObject
from ...._model.plain_text import natural
from ...._rules import ha_wishes
from ...db import tables
from ...db.tables import fixed_ip, floating_ip, instance, vif
from ...db.tables_addresses import HELD
from ..compute.server_listing import SHOWN_NAME
from ..network.further_ips import further_ips_of_instances
from .silence import with_silence

PAGE = 50  # instances
LAST = 100_000  # the highest number of a page
SORTED_BY = ("created", "name", "state", "flavor", "host", "project")

_LISTED = (
    *("id", "uuid", "name", "display_name", "vm_state", "task_state", "power_state", "host", "created_at", "locked"),
    *("updated_at", "fault", *ha_wishes.FIELDS),
)
_FLAVOR = instance.c.flavor["name"].as_string()
_BEGIN_OF_ADDRESS = re.compile(r"(\d{1,3})\.(?:(\d{1,3})\.)?(?:(\d{1,3})\.)?")


@dataclasses.dataclass(frozen=True)
class Choice:
    """Choice of the instances that a page shows: of the project with the id `project_id` (None: of all), with `text` in
    a name or an address; `status` (a vm_state), `host` and the name `project` narrow the list where they are not
    empty. `text` is looked for in hosts' names, too, if `by_host`."""

    project_id: str | None = None
    text: str = ""
    status: str = ""
    host: str = ""
    project: str = ""
    by_host: bool = False
    sort: str = "created"  # of SORTED_BY
    rising: bool = False
    page: int = 1


class Listing(t.NamedTuple):
    """A page of instances, the number of all that were asked for, and the number of pages that these fill."""

    instances: list[JsonObject]
    total: int
    pages: int


def find(connection: sa.Connection, choice: Choice) -> Listing:
    """Return the page of instances of a choice. Each has what a list shows: names, states, host, flavor's name,
    project's name, fault, its addresses, what is to become of it when its host dies, and `silent_for`."""
    source = instance.join(tables.project, tables.project.c.id == instance.c.project_id)
    conditions = _conditions(connection, choice)
    total = connection.execute(sa.select(sa.func.count()).select_from(source).where(*conditions)).scalar_one()
    columns = (*(instance.c[name] for name in _LISTED), tables.project.c.name.label("project"))
    order, number = _order(connection, choice.sort), instance.c.id
    query = (
        sa.select(*columns, _FLAVOR.label("flavor"))
        .select_from(source)
        .where(*conditions)
        .order_by(order.asc() if choice.rising else order.desc(), number.asc() if choice.rising else number.desc())
        .limit(PAGE)
        .offset((min(max(choice.page, 1), LAST) - 1) * PAGE)
    )
    rows = connection.execute(query).all()
    addresses = _addresses(connection, [row.uuid for row in rows])
    instances = [{**row._mapping, "addresses": addresses[row.uuid]} for row in rows]
    return Listing(with_silence(connection, instances), total, max(1, -(-total // PAGE)))


def _order(connection: sa.Connection, name: str) -> sa.ColumnElement[t.Any]:
    if name == "host":  # hv2 before hv10
        hosts = sorted(connection.execute(sa.select(tables.compute_host.c.name)).scalars(), key=natural)
        places = {host: place for place, host in enumerate(hosts)}
        return sa.case(places, value=instance.c.host, else_=-1) if places else instance.c.host
    return {
        "name": sa.func.lower(SHOWN_NAME),
        "state": instance.c.vm_state,
        "flavor": _FLAVOR,
        "project": tables.project.c.name,
    }.get(name, instance.c.created_at)


def _conditions(connection: sa.Connection, choice: Choice) -> list[sa.ColumnElement[bool]]:
    c = instance.c
    conditions: list[sa.ColumnElement[bool]] = [c.deleted == 0]
    if choice.project_id is not None:
        conditions.append(c.project_id == choice.project_id)
    if choice.status:
        conditions.append(c.vm_state == choice.status)
    if choice.host:
        conditions.append(c.host == choice.host)
    if choice.project:
        conditions.append(tables.project.c.name == choice.project)
    text = choice.text.strip()
    if text:
        names = [SHOWN_NAME, c.name, c.hostname, *([c.host] if choice.by_host else [])]
        matches = [name.icontains(text, autoescape=True) for name in names]
        matches.append(c.uuid.startswith(text.lower(), autoescape=True))
        conditions.append(sa.or_(*matches, *_of_address(text)))
    return conditions


def _of_address(text: str) -> list[sa.ColumnElement[bool]]:
    """Return the condition that an instance has the address `text`, or one that begins so (10.20.)."""
    of_vifs = sa.select(vif.c.instance_uuid)
    begin = _BEGIN_OF_ADDRESS.fullmatch(text)
    if begin:
        numbers = [number for number in begin.groups() if number is not None]
        first = ".".join([*numbers, *["0"] * (4 - len(numbers))])
        last = ".".join([*numbers, *["255"] * (4 - len(numbers))])
    else:
        first = last = text
    try:
        low, high = int(ipaddress.IPv4Address(first)), int(ipaddress.IPv4Address(last))
    except ipaddress.AddressValueError:
        if ":" not in text:
            return []
        return [instance.c.uuid.in_(of_vifs.where(vif.c.ipv6.startswith(text.lower(), autoescape=True)))]
    fixed = of_vifs.join(fixed_ip, HELD).where(fixed_ip.c.ip.between(low, high))
    floating = of_vifs.join(floating_ip, floating_ip.c.vif_id == vif.c.id)
    return [instance.c.uuid.in_(fixed), instance.c.uuid.in_(floating.where(floating_ip.c.address.between(low, high)))]


def _addresses(connection: sa.Connection, uuids: t.Sequence[str]) -> dict[str, list[str]]:
    addresses: dict[str, list[str]] = {uuid: [] for uuid in uuids}
    plugged = (
        sa.select(vif.c.id, vif.c.instance_uuid, vif.c.ipv6, fixed_ip.c.ip)
        .outerjoin(fixed_ip, HELD)
        .where(vif.c.instance_uuid.in_(uuids))
        .order_by(vif.c.instance_uuid, vif.c.position)
    )
    further = further_ips_of_instances(connection, uuids)
    for vif_id, uuid, ipv6, number in connection.execute(plugged):
        addresses[uuid] += [to_text(number), *further.get(vif_id, ())] if number is not None else []
        addresses[uuid] += [ipv6] if ipv6 else []
    return addresses
