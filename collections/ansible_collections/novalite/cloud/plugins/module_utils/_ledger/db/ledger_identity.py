# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The identity of a ledger: what tells its things on a host from those of another one.

It is made with the ledger, goes wherever the ledger's records go (copy, restore, export) and never changes, since
what the ledger's hosts carry is marked with it (_network/ownership.py).
"""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from .tables import compute_host, instance, ledger_identity, network


def ledger_id(connection: sa.Connection) -> str:
    """Return the ledger's identity, a UUID in lower case with dashes. Raises NovaliteError when it was removed."""
    ledger_uuid = connection.execute(sa.select(ledger_identity.c.uuid)).scalar_one_or_none()
    if ledger_uuid is None:
        raise NovaliteError(
            "the ledger has lost its identity (its table ledger_identity is empty): restore the ledger from a copy"
        )
    return str(ledger_uuid)


def set_ledger_id(connection: sa.Connection, identity: str) -> None:
    """Give an empty ledger, one that is made again from hosts, the identity that is on what these carry.

    Raises NovaliteError for what is no UUID, and ConflictError when the ledger knows hosts, networks or instances
    already: what these have on hosts is marked with the identity that it has.
    """
    try:
        chosen = str(uuid.UUID(identity))
    except ValueError:
        raise NovaliteError(
            f"{identity!r} is not an identity of a ledger: give the UUID that its hosts carry"
        ) from None
    if chosen == ledger_id(connection):
        return
    for table in (instance, network, compute_host):
        if connection.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).scalar() is not None:
            raise ConflictError(
                f"the ledger has records ({table.name}) whose things on hosts carry its identity "
                f"{ledger_id(connection)}: only an empty ledger can become {chosen}"
            )
    connection.execute(sa.update(ledger_identity).values(uuid=chosen))
