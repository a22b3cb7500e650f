# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ranges and floating IPs are held against the places where compute hosts live, as far as these have said so."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._addressing import places
from ..._addressing.places import Bounds, Place, Use
from ..._errors import ConflictError
from ..db.tables import compute_host


def refuse_ranges(connection: sa.Connection, name: str, uses: t.Sequence[Use], naming: bool = True) -> None:
    """Raise ConflictError for a use of the network `name` that would cut a host off; who is no administrator is not
    told which (`naming`)."""
    for host, here, shared in _hosts(connection) if uses else ():
        for use in uses:
            place = places.conflict(use, here, shared)
            if place is None:
                continue
            remedy = "take another range, or make the network isolated"
            if place.device in use.links:
                remedy = "reserve it in the network"
            where = f"compute host '{host}' lives there, by {place.text}" if naming else "compute hosts live there"
            raise ConflictError(f"network {name!r}: {use.cidr} is not free: {where}; {remedy}")


def refuse_floating(connection: sa.Connection, pool: str, addresses: t.Sequence[Bounds], interface: str) -> None:
    """Raise ConflictError for floating IPs of the `pool`, on this interface of hosts, that a host lives by."""
    for host, here, shared in _hosts(connection):
        place = places.conflict_of_addresses(addresses, interface, here, shared)
        if place is not None:
            raise ConflictError(
                f"floating pool {pool!r}: compute host '{host}' lives by {place.text}; leave it out of the addresses"
            )


def _hosts(connection: sa.Connection) -> t.Iterator[tuple[str, tuple[Place, ...], t.Sequence[str]]]:
    """Yield each host with its places, and the routes of which networks may have a part."""
    query = sa.select(compute_host.c.name, compute_host.c.facts).order_by(compute_host.c.name)
    for name, facts in connection.execute(query):
        yield name, places.parse(facts.get("places")), facts.get("shared_routes") or ()
