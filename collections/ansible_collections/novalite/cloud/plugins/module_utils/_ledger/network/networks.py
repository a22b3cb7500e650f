# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Operation `network`: networks, and the pool of fixed IPs that each of them has."""

from __future__ import annotations

import ipaddress
import re
import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..._rules import pools
from ..._rules.records import Changes, checked_names, given
from ..db import tables
from ..db.engine import inserted_id
from ..identity.quotas import check_quota
from ..queries.lookups import project_by_name
from .floating_pools import check_handed_out_once
from .pool_claims import pool_lock

FIRST_BRIDGE = 100  # Nova's br100
NULLABLE = ("gateway", "cidr_v6", "gateway_v6", "bridge_interface")  # texts; an empty one takes the value away
PLAIN = (
    "manager",
    "bridge",
    "vlan",
    "vni",
    "dhcp",
    "domain",
    "mtu",
    "lease_seconds",
    "quarantine_seconds",
    "isolated",
    "snat",
    "ipv6_mode",
)
DEFAULTS: t.Mapping[str, t.Any] = {  # others follow from the manager
    "cidr_v6": None,
    "gateway": None,
    "gateway_v6": None,
    "bridge_interface": None,
    "vlan": None,
    "vni": None,
    "dns": [],
    "ntp": [],
    "domain": "novalocal",
    "mtu": None,
    "lease_seconds": 86400,
    "quarantine_seconds": 600,
    "ipv6_mode": "eui64",
}
COLUMNS = ("manager", "cidr", "bridge", "dhcp", "isolated", "snat", *DEFAULTS)
# running guests, and what the hypervisors have for them, hang on these
FIXED_WHEN_USED = (
    "cidr",
    "cidr_v6",
    "manager",
    "bridge",
    "bridge_interface",
    "vlan",
    "vni",
    "isolated",
    "ipv6_mode",
)

Network = dict[str, t.Any]  # COLUMNS, and "reserved": the user's reserved addresses, as ranges


def network(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Make, change or remove `params["networks"]`, public ones or those of the project named `params["project"]`.

    What is not given stays as it is; a new network needs its cidr, and has its pool filled. No two networks overlap,
    whoever owns them (as in Nova): a host could not tell their guests apart. Isolated ones may, for on each host they
    have a namespace of their own. Raises NovaliteError for settings that cannot work, ConflictError for what is taken
    or in use, QuotaError.
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
    for item, name in zip(params["networks"], names):
        before = there.get(name)
        after = _wanted(connection, item, before)
        if not changes.note(name, before, after):
            continue
        check_others(connection, after, ids.get(name, 0), name)
        values = {column: after[column] for column in COLUMNS}
        if before is None:
            new = sa.insert(table).values(uuid=str(uuid.uuid4()), owner=owner, name=name, **values)
            fill_pool(connection, inserted_id(connection.execute(new)), after)
        else:
            _check_unused_where_fixed(connection, ids[name], name, before, after)
            connection.execute(sa.update(table).where(table.c.id == ids[name]).values(**values))
            if after["cidr"] != before["cidr"]:
                connection.execute(sa.delete(tables.fixed_ip).where(tables.fixed_ip.c.network_id == ids[name]))
                fill_pool(connection, ids[name], after)
            else:
                reserve(connection, ids[name], name, after)
    if owner and changes.after:
        used = sa.select(sa.func.count()).select_from(table).where(table.c.owner == owner)
        check_quota(connection, owner, "networks", connection.execute(used).scalar_one())
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
) -> tuple[dict[str, int], dict[str, Network]]:
    table, pool = tables.network, tables.fixed_ip
    rows = connection.execute(sa.select(table).where(table.c.owner == owner, table.c.name.in_(names))).mappings().all()
    ids: dict[str, int] = {row["name"]: row["id"] for row in rows}
    reserved: dict[int, list[int]] = {key: [] for key in ids.values()}
    query = sa.select(pool.c.network_id, pool.c.ip).where(pool.c.reserved == "user", pool.c.network_id.in_(reserved))
    for key, address in connection.execute(query):
        reserved[key].append(address)
    return ids, {
        row["name"]: {
            **{column: row[column] for column in COLUMNS},
            "reserved": pools.ranges(reserved[row["id"]]),
        }
        for row in rows
    }


def _wanted(connection: sa.Connection, item: t.Mapping[str, t.Any], before: Network | None) -> Network:
    what = f"network {item['name']!r}"
    if (before is None or before["cidr"] is None) and item["cidr"] is None:
        raise NovaliteError(f"{what} {'does not exist yet' if before is None else 'has no range yet'}: give its cidr")
    after: Network = {**DEFAULTS, "reserved": [], **(before or {}), **given(item, ("cidr", *PLAIN))}
    after.update({key: text or None for key, text in given(item, NULLABLE).items()})
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
    if len(kept) >= cidr.num_addresses:
        raise NovaliteError(f"{what}: all addresses of {cidr} are reserved: nothing is left for instances")
    after["reserved"] = pools.ranges(address for address, role in kept.items() if role == "user")
    pools.check_settings(what, after)
    return after


def numbered(connection: sa.Connection, what: str, wanted: Network) -> None:
    """Give `wanted` the VLAN, VNI and bridge that it lacks: the first ones that no network has."""
    columns = (tables.network.c.bridge, tables.network.c.vlan, tables.network.c.vni)
    rows = connection.execute(sa.select(*columns)).all()
    # a number keeps its bridge for itself, whatever its own is called
    bridges = {row.bridge for row in rows} | {f"br{number}" for row in rows for number in row[1:] if number is not None}
    manager = wanted["manager"]
    kind = pools.NUMBERED[manager][0] if manager in pools.NUMBERED else None
    if kind is not None and wanted[kind] is None:
        taken = {getattr(row, kind) for row in rows}
        if "bridge" not in wanted:
            taken.update(int(name[2:]) for name in bridges if re.fullmatch(r"br[1-9][0-9]{0,8}", name))
        wanted[kind] = pools.free_number(what, manager, taken)
    if "bridge" not in wanted:
        wanted["bridge"] = f"br{wanted[kind]}" if kind is not None else _free_bridge(bridges)


def _free_bridge(taken: t.Collection[str]) -> str:
    number = FIRST_BRIDGE
    while f"br{number}" in taken:
        number += 1
    return f"br{number}"


def check_others(connection: sa.Connection, wanted: Network, own_id: int, name: str) -> None:
    """Raise ConflictError for a range, bridge, VLAN or VNI that another network has."""
    table = tables.network
    keys = ("bridge", "vlan", "vni")
    columns = (table.c.name, table.c.cidr, table.c.cidr_v6, table.c.isolated, *(table.c[key] for key in keys))
    for other in connection.execute(sa.select(*columns).where(table.c.id != own_id).order_by(table.c.id)):
        for key in ("cidr", "cidr_v6"):
            ours, theirs = wanted[key], getattr(other, key)
            if ours is None or theirs is None or wanted["isolated"] or other.isolated:
                continue
            if pools.overlap(ours, theirs):
                raise ConflictError(
                    f"network {name!r}: {key} {ours} overlaps {theirs} of the network {other.name!r}: "
                    "take another range, or make one of the two isolated"
                )
        for key in keys:
            if wanted[key] is not None and wanted[key] == getattr(other, key):
                raise ConflictError(f"network {name!r}: {key} {wanted[key]} belongs to the network {other.name!r}")


def fill_pool(connection: sa.Connection, network_id: int, record: Network) -> None:
    """Make the rows of a pool."""
    cidr = ipaddress.IPv4Network(record["cidr"])
    kept = pools.roles(cidr, record["gateway"], pools.parse_ranges("network: reserved", record["reserved"], cidr))
    first = int(cidr.network_address)
    connection.execute(
        sa.insert(tables.fixed_ip),
        [
            {"network_id": network_id, "ip": address, "reserved": kept.get(address)}
            for address in range(first, first + cidr.num_addresses)
        ],
    )
    if connection.dialect.name == "postgresql":
        # Its planner knows nothing yet of these rows, takes the wrong index and sorts all that are free: 40 ms for an
        # address of a /16 instead of 1 ms, until autovacuum comes by
        connection.execute(sa.text("ANALYZE fixed_ip"))


def reserve(connection: sa.Connection, network_id: int, name: str, record: Network) -> None:
    """Bring what is reserved in an existing pool in line with `record`. Raises ConflictError for an address in use."""
    pool = tables.fixed_ip
    cidr = ipaddress.IPv4Network(record["cidr"])
    kept = pools.roles(cidr, record["gateway"], pools.parse_ranges("network: reserved", record["reserved"], cidr))
    mine = pool.c.network_id == network_id
    query = sa.select(pool.c.ip, pool.c.reserved).where(mine, pool.c.reserved.is_not(None))
    there: dict[int, str] = {row.ip: row.reserved for row in connection.execute(query)}
    changed = [address for address in {*there, *kept} if there.get(address) != kept.get(address)]
    if not changed:
        return
    # the guard, not a SELECT before it, decides: another transaction may be handing the address out right now
    write = (
        sa.update(pool)
        .where(mine, pool.c.ip == sa.bindparam("address"), pool.c.owner.is_(None))
        .values(reserved=sa.bindparam("role"))
    )
    for address in sorted(changed):
        done = connection.execute(write, {"address": address, "role": kept.get(address)})
        if done.rowcount != 1:
            raise ConflictError(
                f"network {name!r}: {ipaddress.IPv4Address(address)} is in use: it can be reserved when it is free"
            )


def _user(connection: sa.Connection, network_id: int) -> str | None:
    """Some instance (or address) that uses the network; a host's own DHCP address is no use of it."""
    vif, instance, pool = tables.vif, tables.instance, tables.fixed_ip
    named = connection.execute(
        sa.select(instance.c.name)
        .join(vif, vif.c.instance_uuid == instance.c.uuid)
        .where(vif.c.network_id == network_id, instance.c.deleted == 0)
        .order_by(instance.c.id)
    ).scalars().first()
    if named is not None:
        return f"the instance {named!r}"
    taken = connection.execute(
        sa.select(pool.c.ip).where(pool.c.network_id == network_id, pool.c.owner.like("vif:%")).order_by(pool.c.ip)
    ).scalars().first()
    return None if taken is None else f"the address {ipaddress.IPv4Address(taken)}, which was handed out"


def _check_unused_where_fixed(
    connection: sa.Connection, network_id: int, name: str, before: Network, after: Network
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
    # interfaces of deleted instances; the pool goes with the network
    connection.execute(sa.delete(tables.vif).where(tables.vif.c.network_id == network_id))
    connection.execute(sa.delete(tables.network).where(tables.network.c.id == network_id))
