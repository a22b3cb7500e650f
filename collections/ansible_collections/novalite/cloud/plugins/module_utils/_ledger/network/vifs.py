# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Interfaces in the ledger, each with a MAC address of its own."""

from __future__ import annotations

import functools
import importlib
import typing as t

import sqlalchemy as sa

from ..._addressing import placeholders
from ..._addressing.macs import MAC_PREFIX, new_mac
from ..._errors import ConflictError
from ..._json import JsonObject
from ..db.tables import network, vif
from ..identity.new_ids import is_rehearsal

MAC_ATTEMPTS = 5


@functools.cache
def _insert_vif(dialect: str) -> sa.Executable:
    """Return the statement in this dialect, "sqlite" or "postgresql". Each has ON CONFLICT in a module of its own;
    importing the one that is not used would cost every launch 0.05 s."""
    insert = importlib.import_module(f"sqlalchemy.dialects.{dialect}").insert
    return t.cast("sa.Executable", insert(vif).on_conflict_do_nothing(index_elements=["mac"]).returning(vif.c.id))


def insert_vifs(connection: sa.Connection, nics: list[JsonObject], mac_prefix: str = MAC_PREFIX) -> None:
    """Insert these interfaces, each with a MAC that no other interface has.

    The constraint decides; MACs are random, so that a collision costs another try, and no sequence tells a tenant
    how many interfaces there are. Raises ConflictError after five tries.
    """
    if not nics:
        return
    if is_rehearsal(connection):
        mac_prefix = placeholders.MAC_PREFIX
    waiting = nics
    for _attempt in range(MAC_ATTEMPTS):
        macs = _new_macs(len(waiting), mac_prefix)
        values = [{**nic, "mac": mac} for nic, mac in zip(waiting, macs)]
        # what has a MAC that is taken is passed over; an error would end the transaction on PostgreSQL
        insert = _insert_vif(connection.dialect.name)
        written = set(connection.execute(insert, values).scalars())
        waiting = [nic for nic in waiting if nic["id"] not in written]
        if not waiting:
            _follow_networks(connection, [nic["id"] for nic in nics])
            return
    raise ConflictError(f"found no free MAC addresses in {MAC_ATTEMPTS} tries: run again")


def _follow_networks(connection: sa.Connection, numbers: t.Collection[str]) -> None:
    """Switch the port security of these new interfaces off, as far as their networks say so."""
    without = sa.select(network.c.id).where(network.c.port_security_enabled.is_(False))
    new = sa.and_(vif.c.id.in_(list(numbers)), vif.c.network_id.in_(without))
    connection.execute(sa.update(vif).where(new).values(port_security_enabled=False))


def _new_macs(count: int, prefix: str) -> list[str]:
    macs: set[str] = set()
    while len(macs) < count:
        macs.update(new_mac(prefix) for _missing in range(count - len(macs)))
    return sorted(macs)
