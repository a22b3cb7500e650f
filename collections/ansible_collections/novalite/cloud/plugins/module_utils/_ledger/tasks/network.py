# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `network`: networks that there are to be, or not, and the pool of fixed IPs that each of them has."""

from __future__ import annotations

import typing as t

import netaddr
import sqlalchemy as sa

from ..._addressing import places
from ..._addressing.places import Use
from ..._addressing.pools import to_text
from ..._errors import ConflictError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules import pools
from ..._rules.noun_options import NETWORK, NETWORK_COLUMNS
from ..._rules.options import option_names
from ..._rules.records import Changes, checked_names, set_values
from ..db import tables
from ..network.networks import (
    COLUMNS,
    NEW,
    Record,
    check_default,
    check_handed_out_once,
    check_others,
    create,
    fill_pool,
    numbered,
    reserve,
)
from ..network.pool_claims import pool_lock
from ..queries.lookups import project_by_name

NULLABLE = tuple(option.name for option in NETWORK if option.nullable)  # texts; an empty one takes the value away
PLAIN = tuple(name for name in NETWORK_COLUMNS if name not in (*NULLABLE, "dns", "ntp"))
OF_SUBNETS = ("cidr", "cidr_v6", "gateway", "gateway_v6", "reserved")  # of networks that projects made
# running guests, and what the hypervisors have for them, hang on these
FIXED_WHEN_USED = option_names(NETWORK, "unused")


def network(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Make, change or remove `params["networks"]`, public ones or those of the project named `params["project"]`.

    What is not given stays as it is; a new network needs its cidr, and has its pool filled. No two networks overlap,
    whoever owns them (as in Nova): a host could not tell their guests apart. Isolated ones may, for on each host they
    have a namespace of their own. Raises NovaliteError for settings that cannot work, ConflictError for what is taken
    or in use, and for a second default network, QuotaError.
    """
    owner = ""
    if params["project"] is not None:
        owner = project_by_name(connection, params["project"], lock=True)["id"]
    pool_lock(connection)
    names = checked_names("network", params["networks"])
    table = tables.network
    ids, there = _networks(connection, owner, names)
    changes = Changes()
    if params["state"] == "absent":
        for name in names:
            if name in there:
                changes.note(name, there[name], None)
                _remove(connection, ids[name], name)
        return changes.result("networks", [])
    # the one that becomes the default comes when the former is not any more
    for item, name in sorted(zip(params["networks"], names), key=lambda pair: bool(pair[0]["is_default"])):
        before = there.get(name)
        if name in ids:
            _check_ranges_of_project(connection, ids[name], item)
        after = _desired_network(connection, item, before)
        if not changes.note(name, before, after):
            continue
        uses = _uses(after)
        if before is None:
            create(connection, owner, name, after, uses)
        else:
            same = before["cidr"] is not None and uses == _uses(before)
            check_others(connection, after, ids[name], name, () if same else uses)
            values = {column: after[column] for column in COLUMNS}
            _check_unused_where_fixed(connection, ids[name], name, before, after)
            if after["is_default"]:
                check_default(connection, ids[name])
            connection.execute(sa.update(table).where(table.c.id == ids[name]).values(**values))
            if after["cidr"] != before["cidr"]:
                connection.execute(sa.delete(tables.fixed_ip).where(tables.fixed_ip.c.network_id == ids[name]))
                fill_pool(connection, ids[name], after)
            elif any(after[key] != before[key] for key in ("gateway", "reserved")):
                reserve(connection, ids[name], name, after)
    if changes.after:
        check_handed_out_once(connection)
    ids, now = _networks(connection, owner, names)
    query = sa.select(table.c.id, table.c.uuid).where(table.c.id.in_(list(ids.values())))
    uuids = {row.id: row.uuid for row in connection.execute(query)}
    return changes.result(
        "networks", [{"id": ids[name], "uuid": uuids[ids[name]], "name": name, **now[name]} for name in names]
    )


def _networks(
    connection: sa.Connection, owner: str, names: t.Sequence[str]
) -> tuple[dict[str, int], dict[str, Record]]:
    table, pool = tables.network, tables.fixed_ip
    rows = connection.execute(sa.select(table).where(table.c.owner == owner, table.c.name.in_(names))).mappings().all()
    ids: dict[str, int] = {row["name"]: row["id"] for row in rows}
    reserved: dict[int, list[int]] = {key: [] for key in ids.values()}
    query = sa.select(pool.c.network_id, pool.c.ip).where(pool.c.reserved == "user", pool.c.network_id.in_(reserved))
    ranges = {row["id"]: netaddr.IPNetwork(row["cidr"]) for row in rows if row["cidr"] is not None}
    for key, address in connection.execute(query):
        if key in ranges and ranges[key].first <= address <= ranges[key].last:  # projects' networks have further ones
            reserved[key].append(address)
    return ids, {
        row["name"]: {**{column: row[column] for column in COLUMNS}, "reserved": pools.ranges(reserved[row["id"]])}
        for row in rows
    }


def _desired_network(connection: sa.Connection, item: JsonMapping, before: Record | None) -> Record:
    what = f"network {item['name']!r}"
    if (before is None or before["cidr"] is None) and item["cidr"] is None:
        raise NovaliteError(f"{what} {'does not exist yet' if before is None else 'has no range yet'}: give its cidr")
    after: Record = {**NEW, **(before or {}), **set_values(item, PLAIN)}
    after.update({key: text or None for key, text in set_values(item, NULLABLE).items()})
    after.update(pools.manager_defaults(pools.manager_of(item, before), item, before))
    cidr = pools.parse_cidr(what, after["cidr"])
    after["cidr"] = str(cidr)
    if after["gateway"] is not None:
        after["gateway"] = str(pools.parse_gateway(what, after["gateway"], cidr))
    cidr_v6 = None if after["cidr_v6"] is None else pools.parse_cidr_v6(what, after["cidr_v6"])
    after["cidr_v6"] = None if cidr_v6 is None else str(cidr_v6)
    if after["gateway_v6"] is not None:
        after["gateway_v6"] = str(pools.parse_gateway_v6(what, after["gateway_v6"], cidr_v6))
    for kind in ("dns", "ntp"):
        if item[kind] is not None:
            after[kind] = pools.parse_servers(f"{what}: {kind}", item[kind])
    numbered(connection, what, after)
    listed = after["reserved"] if item["reserved"] is None else item["reserved"]
    kept = pools.roles(cidr, after["gateway"], pools.parse_ranges(f"{what}: reserved", listed, cidr))
    if len(kept) >= cidr.size:
        raise NovaliteError(f"{what}: all addresses of {cidr} are reserved: nothing is left for instances")
    after["reserved"] = pools.ranges(address for address, role in kept.items() if role == "user")
    pools.check_settings(what, after)
    return after


def _uses(record: Record) -> list[Use]:
    """Return what hosts have to do for the network, and which addresses it hands out."""
    cidr = netaddr.IPNetwork(record["cidr"])
    kept = pools.roles(cidr, record["gateway"], pools.parse_ranges("network: reserved", record["reserved"], cidr))
    free = pools.bounds(address for address in range(cidr.first, cidr.last + 1) if address not in kept)
    return places.uses(record, tuple(free))


def _check_ranges_of_project(connection: sa.Connection, network_id: int, item: JsonMapping) -> None:
    """Raise NovaliteError for addresses of a network that its project made: there subnets say them."""
    table = tables.network
    of_project = sa.select(table.c.cidr).where(table.c.id == network_id, table.c.tenant.is_(True))
    row = connection.execute(of_project).first()
    options = [key for key in OF_SUBNETS if item[key] is not None]
    if row is None or not (options or row.cidr is None):
        return
    remedy = f"leave {options[0]} out, and change them there" if options else "make one first"
    raise NovaliteError(
        f"network {item['name']!r}: its project made it, and gives it addresses as subnets by the Network API: {remedy}"
    )


def _user(connection: sa.Connection, network_id: int) -> str | None:
    """Some instance (or address) that uses the network; a host's own DHCP address is no use of it."""
    vif, instance, pool = tables.vif, tables.instance, tables.fixed_ip
    named = connection.execute(
        sa.select(instance.c.name)
        .join(vif, vif.c.instance_uuid == instance.c.uuid)
        .where(vif.c.network_id == network_id, instance.c.deleted == 0)
        .order_by(instance.c.id)
    ).scalar()
    if named is not None:
        return f"the instance {named!r}"
    held = sa.and_(pool.c.network_id == network_id, pool.c.owner.like("vif:%"))
    taken = connection.execute(sa.select(pool.c.ip).where(held).order_by(pool.c.ip)).scalar()
    return None if taken is None else f"the address {to_text(taken)}, which was handed out"


def _check_unused_where_fixed(
    connection: sa.Connection, network_id: int, name: str, before: Record, after: Record
) -> None:
    changed = [key for key in FIXED_WHEN_USED if before[key] != after[key]]
    user = _user(connection, network_id) if changed else None
    if user is not None:
        key = changed[0]
        raise ConflictError(
            f"network {name!r}: {key} cannot change from {before[key]} to {after[key]} while {user} uses it: "
            "make another network, or remove the instances first"
        )


def _remove(connection: sa.Connection, network_id: int, name: str) -> None:
    user = _user(connection, network_id)
    if user is not None:
        raise ConflictError(f"network {name!r} is in use by {user}: remove the instances first")
    # of a port without an address, as of a router's interface, no address tells
    ports = sa.select(sa.func.min(tables.vif.c.id)).where(
        tables.vif.c.network_id == network_id, tables.vif.c.instance_uuid.is_(None)
    )
    if (port := connection.execute(ports).scalar()) is not None:
        raise ConflictError(f"network {name!r} is in use by the port {port}: remove it, or the router's interface")
    # interfaces of deleted instances; the pool goes with the network
    connection.execute(sa.delete(tables.vif).where(tables.vif.c.network_id == network_id))
    connection.execute(sa.delete(tables.network).where(tables.network.c.id == network_id))
