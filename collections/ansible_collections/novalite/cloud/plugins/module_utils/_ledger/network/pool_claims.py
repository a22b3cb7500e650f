# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The statements that take addresses out of a pool. SQL as text: SQLite and PostgreSQL each have their own way here."""

from __future__ import annotations

import functools
import itertools
import json
import sqlite3
import typing as t

import netaddr
import sqlalchemy as sa

from ..._addressing import pools
from ..._errors import AddressInUseError, ConflictError, NovaliteError, PoolExhaustedError
from ..db.tables import fixed_ip, instance, vif
from ..db.tables_addresses import OF_HOST

Claim = tuple[str, int, int]  # owner, address, when that was last released

# The owners travel as one JSON array, so that a statement is the same for one and for a thousand of them.
#
# What the owners have, and what they had and nobody has now. SQLite is told to go from owner to owner, and by which
# index: left alone, it may read all free addresses of a /16, or all that were ever released.
_HELD_SQLITE = """
SELECT held.owner, held.ip, NULL FROM json_each(:owners) AS wanted CROSS JOIN fixed_ip AS held
WHERE held.network_id = :network_id AND held.owner = wanted.value
UNION ALL
SELECT had.last_owner, had.ip, had.released_at
FROM json_each(:owners) AS wanted CROSS JOIN fixed_ip AS had INDEXED BY ix_fixed_ip_last_owner
WHERE had.network_id = :network_id AND had.owner IS NULL AND had.last_owner IS NOT NULL AND had.reserved IS NULL
AND had.last_owner = wanted.value
"""
# PostgreSQL also holds the rows of what they have: a host's own address cannot be given back while an instance that
# needs it gets its one. And its planner, which knows little of rows that were released lately, would compare each of
# them with each owner: a second for a thousand. ORDER BY and LIMIT keep it from making a join of the LATERAL.
_HELD_POSTGRESQL = sa.text("""
WITH wanted AS (SELECT json_array_elements_text(CAST(:owners AS json)) AS owner),
held AS (
    SELECT owner, ip FROM fixed_ip WHERE network_id = :network_id AND owner IN (SELECT owner FROM wanted)
    FOR SHARE OF fixed_ip
)
SELECT owner, ip, NULL AS released_at FROM held
UNION ALL
SELECT had.last_owner, had.ip, had.released_at FROM wanted CROSS JOIN LATERAL (
    SELECT last_owner, ip, released_at FROM fixed_ip
    WHERE network_id = :network_id AND owner IS NULL AND last_owner IS NOT NULL AND reserved IS NULL
    AND last_owner = wanted.owner
    ORDER BY released_at DESC, ip DESC LIMIT 1
) AS had
""")

# On SQLite one statement for everything is slower than this one and then an UPDATE for each address: it cannot join
# with a list of values by an index. The transaction has the ledger for itself, so nothing comes between the two. The
# index is named for the same reason as above.
_FREE_SQLITE = """
SELECT ip, released_at FROM fixed_ip INDEXED BY ix_fixed_ip_free
WHERE network_id = :network_id AND owner IS NULL AND reserved IS NULL {bounds}
ORDER BY released_at, ip LIMIT :count
"""
_TAKE_SQLITE = "UPDATE fixed_ip SET owner = ? WHERE network_id = ? AND ip = ? AND owner IS NULL AND reserved IS NULL"
# A plain `UPDATE ... WHERE ip IN (SELECT ... LIMIT n FOR UPDATE SKIP LOCKED)` may run its subquery again and take more
# than n; a CTE is run once.
_CLAIM_POSTGRESQL = """
WITH free AS (
    SELECT ip, released_at FROM fixed_ip
    WHERE network_id = :network_id AND owner IS NULL AND reserved IS NULL {bounds}
    ORDER BY released_at, ip LIMIT :count {lock}
),
numbered AS (SELECT ip, ROW_NUMBER() OVER (ORDER BY released_at, ip) AS position FROM free)
UPDATE fixed_ip SET owner = wanted.owner
FROM numbered
JOIN json_array_elements_text(CAST(:owners AS json)) WITH ORDINALITY AS wanted(owner, position) USING (position)
WHERE fixed_ip.network_id = :network_id AND fixed_ip.ip = numbered.ip AND fixed_ip.owner IS NULL
RETURNING fixed_ip.owner, fixed_ip.ip, fixed_ip.released_at
"""
_LOCKS = ("FOR UPDATE SKIP LOCKED", "FOR UPDATE", "FOR UPDATE")
_BOUNDS = "AND ip BETWEEN :first AND :last"  # in a network of several ranges
_AGAIN = sa.text(
    "UPDATE fixed_ip SET owner = :owner "
    # whoever took it meanwhile and gave it back is its last owner now
    "WHERE network_id = :network_id AND ip = :ip AND owner IS NULL AND reserved IS NULL AND last_owner = :owner"
)


class HasPool(t.Protocol):
    """A network, as far as it takes to find its addresses and to speak of it."""

    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def cidr(self) -> str | None: ...


def pool_lock(connection: sa.Connection) -> None:
    """Let no other transaction make or change networks or floating pools until the end of this one.

    That two ranges do not overlap is no constraint that a database could decide. Whoever takes addresses, or reads,
    does not wait for this. On SQLite transactions exclude each other anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("LOCK TABLE network IN SHARE ROW EXCLUSIVE MODE"))


def within(cidr: str) -> sa.ColumnElement[bool]:
    """Return the condition of a pool's rows with addresses of this range."""
    around = netaddr.IPNetwork(cidr)
    return fixed_ip.c.ip.between(around.first, around.last)


def held_by(
    connection: sa.Connection, network_id: int, owners: t.Sequence[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return each owner's address in the network, kept until the end of this transaction; and the one that it had.

    The second are addresses that owners gave back and that are free now; of several, the one it had last. Owners with
    neither are in neither.
    """
    params = {"network_id": network_id, "owners": json.dumps(list(owners))}
    rows: t.Iterable[tuple[str, int, int | None]]
    if connection.dialect.name == "sqlite":
        rows = _sqlite(connection).execute(_HELD_SQLITE, params).fetchall()
    else:
        rows = map(tuple, connection.execute(_HELD_POSTGRESQL, params))
    held: dict[str, int] = {}
    had: dict[str, tuple[int, int]] = {}
    for owner, ip, released_at in rows:
        if released_at is None:
            held[owner] = ip
        else:
            had[owner] = max(had.get(owner, (0, 0)), (released_at, ip))
    return held, {owner: ip for owner, (_released_at, ip) in had.items()}


def claim_again(connection: sa.Connection, network_id: int, had: t.Mapping[str, int]) -> dict[str, int]:
    """Give owners the addresses that they had, as far as those are still free, and return these.

    Whether one is in quarantine is no matter: what a guest may still do with the address, it may.
    """
    again: dict[str, int] = {}
    for owner, ip in had.items():
        taken = connection.execute(_AGAIN, {"network_id": network_id, "owner": owner, "ip": ip})
        if taken.rowcount == 1:
            again[owner] = ip
    return again


def claim_free(
    connection: sa.Connection, network: HasPool, owners: t.Sequence[str], ranges: t.Sequence[str] = ()
) -> list[Claim]:
    """Take an address for each owner, those first that were free for longest: of the first of these `ranges` of the
    network that has one, or of all that it has.

    Raises NovaliteError when there are too few.
    """
    if not owners:
        return []
    take = _claim_sqlite if connection.dialect.name == "sqlite" else _claim_postgresql
    taken = take(connection, network.id, owners, [_bounds(cidr) for cidr in ranges] or [{}])
    if len(taken) < len(owners):
        raise PoolExhaustedError(
            f"network '{network.name}' ({', '.join(ranges) or network.cidr}) has no free address left: {len(owners)} "
            f"needed, {len(taken)} free; delete instances, or use another network"
        )
    return taken


Bounds = dict[str, int]  # "first" and "last" address; empty: all


def _bounds(cidr: str) -> Bounds:
    around = netaddr.IPNetwork(cidr)
    return {"first": around.first, "last": around.last}


def _sqlite(connection: sa.Connection) -> sqlite3.Connection:
    """The driver's own connection, within the same transaction: SQLAlchemy takes ten times as long for a statement."""
    return t.cast(sqlite3.Connection, connection.connection.driver_connection)


def _claim_sqlite(
    connection: sa.Connection, network_id: int, owners: t.Sequence[str], ranges: t.Sequence[Bounds]
) -> list[Claim]:
    driver = _sqlite(connection)
    free: list[tuple[int, int]] = []
    for bounds in ranges:
        statement = _FREE_SQLITE.format(bounds=_BOUNDS if bounds else "")
        values = {"network_id": network_id, "count": len(owners) - len(free), **bounds}
        free += driver.execute(statement, values).fetchall()
    taken = [(owner, ip, released_at) for owner, (ip, released_at) in zip(owners, free)]
    if len(taken) == len(owners):
        done = driver.executemany(_TAKE_SQLITE, [(owner, network_id, ip) for owner, ip, _released_at in taken])
        if done.rowcount != len(taken):  # only in a transaction that did not begin with the write lock
            raise ConflictError("another run took addresses of the same network meanwhile: run again")
    return taken


def _claim_postgresql(
    connection: sa.Connection, network_id: int, owners: t.Sequence[str], ranges: t.Sequence[Bounds]
) -> list[Claim]:
    taken: list[Claim] = []
    missing = list(owners)
    for bounds, lock in itertools.product(ranges, _LOCKS):
        if not missing:
            break
        values = {"network_id": network_id, "owners": json.dumps(missing), "count": len(missing), **bounds}
        rows = connection.execute(_claim_text(lock, bool(bounds)), values)
        taken.extend((row.owner, row.ip, row.released_at) for row in rows)
        served = {owner for owner, _ip, _released_at in taken}
        missing = [owner for owner in owners if owner not in served]
    return taken


@functools.cache
def _claim_text(lock: str, bounded: bool) -> sa.TextClause:
    """Addresses that other transactions are about to take are passed over first, and waited for when the rest is too
    little."""
    return sa.text(_CLAIM_POSTGRESQL.format(lock=lock, bounds=_BOUNDS if bounded else ""))


def claim_one(connection: sa.Connection, network: HasPool, owner: str, number: int) -> None:
    """Take the address `number` for `owner`, in or out of quarantine. The write decides whether it was free.

    Raises NovaliteError when it is outside of the network or reserved, AddressInUseError when it is in use.
    """
    claimed = connection.execute(
        sa.update(fixed_ip)
        .where(
            fixed_ip.c.network_id == network.id,
            fixed_ip.c.ip == number,
            fixed_ip.c.owner.is_(None),
            fixed_ip.c.reserved.is_(None),
        )
        .values(owner=owner)
    )
    if claimed.rowcount == 1:
        return
    address, where = pools.to_text(number), f"network '{network.name}' ({network.cidr})"
    row = connection.execute(
        sa.select(fixed_ip.c.owner, fixed_ip.c.reserved).where(
            fixed_ip.c.network_id == network.id, fixed_ip.c.ip == number
        )
    ).first()
    if row is None:
        raise NovaliteError(f"address {address} is outside of {where}: choose one inside, or none")
    if row.reserved is not None:
        raise NovaliteError(f"address {address} is reserved in {where} ({row.reserved}): choose another, or none")
    raise AddressInUseError(
        f"address {address} in {where} is in use by {_who(connection, row.owner, owner)}: choose another, or none"
    )


def _who(connection: sa.Connection, holder: str | None, asking: str) -> str:
    """The holder in words; an instance by name only to its own project."""
    kind, colon, name = (holder or "").partition(":")
    if kind + colon == OF_HOST:
        return f"compute host {name.partition('/')[0]} itself"
    query = sa.select(instance.c.name, instance.c.project_id).join(vif, vif.c.instance_uuid == instance.c.uuid)
    of_holder = connection.execute(query.where(vif.c.id == name)).first()
    of_asking = connection.execute(query.where(vif.c.id == asking.partition(":")[2])).first()
    if of_holder is None or of_asking is None or of_holder.project_id != of_asking.project_id:
        return "another instance"
    return f"instance '{of_holder.name}'"
