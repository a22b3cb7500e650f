# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""The statements that take addresses out of a pool. SQL as text: SQLite and PostgreSQL each have their own way here."""

from __future__ import annotations

import json
import typing as t

import sqlalchemy as sa

from .._addressing import pools
from .._errors import ConflictError, NovaliteError
from .tables import fixed_ip, instance, vif

# The owners travel as one JSON array, so that a statement is the same for one and for a thousand of them.
#
# SQLite would read `owner IS NULL` from the unique index, all free addresses of a /16, hence the index by name; and it
# would compare every address with every owner in a join (40 ms for 1000), hence the owner by its position.
_CLAIM_SQLITE = """
WITH free AS (
    SELECT ip, released_at FROM fixed_ip INDEXED BY ix_fixed_ip_free
    WHERE network_id = :network_id AND owner IS NULL AND reserved IS NULL
    ORDER BY released_at, ip LIMIT :count
),
numbered AS (SELECT ip, ROW_NUMBER() OVER (ORDER BY released_at, ip) - 1 AS position FROM free)
UPDATE fixed_ip SET owner = json_extract(:owners, '$[' || numbered.position || ']')
FROM numbered
WHERE fixed_ip.network_id = :network_id AND fixed_ip.ip = numbered.ip AND fixed_ip.owner IS NULL
RETURNING owner, ip, released_at
"""
# A plain `UPDATE ... WHERE ip IN (SELECT ... LIMIT n FOR UPDATE SKIP LOCKED)` may run its subquery again and take more
# than n; a CTE is run once.
_CLAIM_POSTGRESQL = """
WITH free AS (
    SELECT ip, released_at FROM fixed_ip
    WHERE network_id = :network_id AND owner IS NULL AND reserved IS NULL
    ORDER BY released_at, ip LIMIT :count {lock}
),
numbered AS (SELECT ip, ROW_NUMBER() OVER (ORDER BY released_at, ip) AS position FROM free)
UPDATE fixed_ip SET owner = wanted.owner
FROM numbered
JOIN json_array_elements_text(CAST(:owners AS json)) WITH ORDINALITY AS wanted(owner, position) USING (position)
WHERE fixed_ip.network_id = :network_id AND fixed_ip.ip = numbered.ip AND fixed_ip.owner IS NULL
RETURNING fixed_ip.owner, fixed_ip.ip, fixed_ip.released_at
"""
# On PostgreSQL, addresses that other transactions are about to take are passed over first, and waited for when the
# rest is too little. SQLite has one writer at a time.
_CLAIMS = {
    "sqlite": [sa.text(_CLAIM_SQLITE)],
    "postgresql": [
        sa.text(_CLAIM_POSTGRESQL.format(lock=lock)) for lock in ("FOR UPDATE SKIP LOCKED", "FOR UPDATE", "FOR UPDATE")
    ],
}
# An owner may have left several addresses behind; it gets the one that it gave back last. The owners stand in it twice:
# where a row changed meanwhile, PostgreSQL looks again at the conditions of the UPDATE, not at those above it.
_CLAIM_AGAIN = """
WITH theirs AS (
    SELECT ip, ROW_NUMBER() OVER (PARTITION BY last_owner ORDER BY released_at DESC, ip) AS position
    FROM fixed_ip {index}
    WHERE network_id = :network_id AND owner IS NULL AND reserved IS NULL AND last_owner IS NOT NULL
    AND last_owner IN ({owners})
)
UPDATE fixed_ip SET owner = last_owner
WHERE network_id = :network_id AND owner IS NULL AND reserved IS NULL
AND last_owner IN ({owners})
AND ip IN (SELECT ip FROM theirs WHERE position = 1)
RETURNING owner, ip
"""
_CLAIMS_AGAIN = {
    "sqlite": sa.text(
        _CLAIM_AGAIN.format(
            index="INDEXED BY ix_fixed_ip_last_owner", owners="SELECT value FROM json_each(:owners)"
        )
    ),
    "postgresql": sa.text(
        _CLAIM_AGAIN.format(index="", owners="SELECT json_array_elements_text(CAST(:owners AS json))")
    ),
}
# PostgreSQL also holds the rows: a host's own address cannot be given back while an instance that needs it gets its one
_HELD = {
    "sqlite": sa.text(
        "SELECT owner, ip FROM fixed_ip "
        "WHERE network_id = :network_id AND owner IN (SELECT value FROM json_each(:owners))"
    ),
    "postgresql": sa.text(
        "SELECT owner, ip FROM fixed_ip WHERE network_id = :network_id "
        "AND owner IN (SELECT json_array_elements_text(CAST(:owners AS json))) FOR SHARE OF fixed_ip"
    ),
}


def pool_lock(connection: sa.Connection) -> None:
    """Let no other transaction make or change networks or floating pools until the end of this one.

    That two ranges do not overlap is no constraint that a database could decide. Whoever takes addresses, or reads,
    does not wait for this. On SQLite transactions exclude each other anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("LOCK TABLE network IN SHARE ROW EXCLUSIVE MODE"))


def held_by(connection: sa.Connection, network_id: int, owners: t.Sequence[str]) -> dict[str, int]:
    """The address that each of these owners has in the network, and keeps until the end of this transaction.

    Owners without one are left out.
    """
    rows = connection.execute(
        _HELD[connection.dialect.name], {"network_id": network_id, "owners": json.dumps(list(owners))}
    )
    return {row.owner: row.ip for row in rows}


def claim_again(connection: sa.Connection, network_id: int, owners: t.Sequence[str]) -> dict[str, int]:
    """Take, for each owner that had an address of this network and gave it back, that one, if it is still free.

    Whether it is in quarantine is no matter: what a guest may still do with the address, it may. Owners without such
    an address are left out.
    """
    if not owners:
        return {}
    rows = connection.execute(
        _CLAIMS_AGAIN[connection.dialect.name], {"network_id": network_id, "owners": json.dumps(list(owners))}
    )
    return {row.owner: row.ip for row in rows}


def claim_free(connection: sa.Connection, network: t.Any, owners: t.Sequence[str]) -> list[tuple[str, int, int]]:
    """Take an address for each owner, those first that were free for longest; one statement for all of them.

    Returns (owner, address, when it was last released). Raises NovaliteError when the pool has too few.
    """
    taken: list[tuple[str, int, int]] = []
    missing = list(owners)
    for statement in _CLAIMS[connection.dialect.name]:
        if not missing:
            break
        rows = connection.execute(
            statement, {"network_id": network.id, "owners": json.dumps(missing), "count": len(missing)}
        )
        taken.extend((row.owner, row.ip, row.released_at) for row in rows)
        served = {owner for owner, _ip, _released_at in taken}
        missing = [owner for owner in owners if owner not in served]
    if missing:
        raise NovaliteError(
            f"network '{network.name}' ({network.cidr}) has no free address left: {len(owners)} needed, "
            f"{len(taken)} free; delete instances, or use another network"
        )
    return taken


def claim_one(connection: sa.Connection, network: t.Any, owner: str, number: int) -> None:
    """Take the address `number` for `owner`, in or out of quarantine. The write decides whether it was free.

    Raises NovaliteError when it is outside of the network or reserved, ConflictError when it is in use.
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
    raise ConflictError(
        f"address {address} in {where} is in use by {_who(connection, row.owner, owner)}: choose another, or none"
    )


def _who(connection: sa.Connection, holder: str | None, asking: str) -> str:
    """The holder in words; an instance by name only to its own project."""
    kind, _colon, name = (holder or "").partition(":")
    if kind == "dhcp":
        return f"compute host {name} itself"
    query = sa.select(instance.c.name, instance.c.project_id).join(vif, vif.c.instance_uuid == instance.c.uuid)
    of_holder = connection.execute(query.where(vif.c.id == name)).first()
    of_asking = connection.execute(query.where(vif.c.id == asking.partition(":")[2])).first()
    if of_holder is None or of_asking is None or of_holder.project_id != of_asking.project_id:
        return "another instance"
    return f"instance '{of_holder.name}'"
