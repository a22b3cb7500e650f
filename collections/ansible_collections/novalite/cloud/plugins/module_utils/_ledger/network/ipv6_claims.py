# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The IPv6 addresses of interfaces: made, not taken from a pool; that each is there once, a constraint decides."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._addressing.ipv6 import stable_privacy
from ..._addressing.macs import eui64
from ..._errors import ConflictError
from ..._json import JsonMapping
from ..db.secrets import derived_key
from ..db.tables import vif
from ..queries.network.network_records import Network

RETRIES = 3  # RFC 7217's IDGEN_RETRIES


def take_ipv6(
    connection: sa.Connection, networks: t.Mapping[int, Network], nics: t.Sequence[JsonMapping]
) -> dict[str, str]:
    """The IPv6 address of each of these interfaces, by id; those on networks without IPv6 are left out.

    An interface that has one keeps it. Others get the one that the network's ipv6_mode makes of their MAC (EUI-64), or
    of their id and the ledger's secret (RFC 7217). It is recorded with the interface where that has a row: in check
    mode, new ones have none. `networks` are rows by id. Raises ConflictError when an address is taken.
    """
    ipv6_nics = [nic for nic in nics if networks[nic["network"]["id"]].cidr_v6 is not None]
    made = {nic["id"]: nic["ipv6"] for nic in ipv6_nics if nic.get("ipv6")}
    missing = [nic for nic in ipv6_nics if nic["id"] not in made]
    stable = any(networks[nic["network"]["id"]].ipv6_mode != "eui64" for nic in missing)
    key = derived_key(connection, "ipv6") if stable else b""
    for attempt in range(RETRIES + 1):
        if not missing:
            break
        tried = {nic["id"]: _address(networks[nic["network"]["id"]], nic, key, attempt) for nic in missing}
        made.update(_recorded(connection, networks, missing, tried))
        missing = [nic for nic in missing if nic["id"] not in made]
        for nic in missing:
            network = networks[nic["network"]["id"]]
            if network.ipv6_mode == "eui64" or attempt == RETRIES:
                raise ConflictError(
                    f"IPv6 address {tried[nic['id']]} in network '{network.name}', which interface {nic['id']} "
                    f"({nic['mac']}) would get, is taken: remove the instance and launch it again"
                )
    return made


def _address(network: Network, nic: JsonMapping, key: bytes, attempt: int) -> str:
    cidr = network.cidr_v6 or ""  # take_ipv6() has left out those without
    if network.ipv6_mode == "eui64":
        return eui64(cidr, nic["mac"])
    return stable_privacy(cidr, nic["id"], network.uuid, key, attempt)


def _recorded(
    connection: sa.Connection,
    networks: t.Mapping[int, Network],
    nics: t.Sequence[JsonMapping],
    tried: t.Mapping[str, str],
) -> dict[str, str]:
    """Record those of the addresses `tried` that their interfaces get, and return them. Raises ConflictError."""
    rows = connection.execute(
        sa.select(vif.c.network_id, vif.c.ipv6, vif.c.id).where(
            vif.c.network_id.in_(sorted({nic["network"]["id"] for nic in nics})),
            vif.c.ipv6.in_(sorted(set(tried.values()))),
        )
    )
    taken: dict[tuple[int, str | None], str] = {(network_id, address): owner for network_id, address, owner in rows}
    taken.update({(number, row.gateway_v6): "gateway" for number, row in networks.items()})
    mine: dict[str, str] = {}
    for nic in nics:
        if taken.setdefault((nic["network"]["id"], tried[nic["id"]]), nic["id"]) == nic["id"]:
            mine[nic["id"]] = tried[nic["id"]]
    written = [{"nic": nic, "address": address} for nic, address in mine.items()]
    if not written:
        return {}
    write = sa.update(vif).where(vif.c.id == sa.bindparam("nic")).values(ipv6=sa.bindparam("address"))
    try:
        with connection.begin_nested():
            connection.execute(write, written)
    except sa.exc.IntegrityError as error:  # PostgreSQL only: there, others write at the same time
        raise ConflictError("another run took one of the same IPv6 addresses just now: run again") from error
    return mine
