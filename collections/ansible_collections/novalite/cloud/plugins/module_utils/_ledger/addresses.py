# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Fixed IPs: one row for each address of a network's pool, taken and given back by guarded writes.

Nova's lifecycle without its race (`fixed_ip_associate` lacked `instance_uuid IS NULL`): free, then owned, then free
again with the time of its release. Who had an address gets it again; otherwise the one that was free for longest goes
out first, so that one which a guest may still hold (a lease, an ARP cache) is the last choice.
"""

from __future__ import annotations

import time
import typing as t

import sqlalchemy as sa

from .._addressing import pools
from .._errors import ConflictError, NotFoundError, NovaliteError
from .ipv6_claims import take_ipv6
from .pool_claims import claim_again, claim_free, claim_one, held_by
from .tables import fixed_ip as pool_table
from .tables import instance, network, vif

CLAIM_ATTEMPTS = 3

Instance = t.Mapping[str, t.Any]


def fixed_ip(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Operation of the module `fixed_ip`: addresses for all interfaces of these instances, or for none.

    An interface that has an address keeps it; one that names one (`ip`, `requested_ip`) gets that one; one that had one
    gets it again; the others get what was free for longest. On a network with DHCP, or without a gateway, each compute
    host gets an address of its own (Nova's multi_host), returned as `dhcp_server`. IPv6 addresses are made as the
    network says. Returns `instances` with their interfaces filled in, `changed`, and as `warnings` what was taken out
    of quarantine.

    Raises NovaliteError when a pool has too few addresses left, and three different errors for an address that was
    asked for: outside of the network, reserved, in use.
    """
    instances, now = params["instances"], int(time.time())
    wanted = _wanted(instances)
    networks = _networks(connection, wanted)
    warnings: list[str] = []
    taken: set[str] = set()
    addresses: dict[tuple[int, str], int] = {}
    for network_id in sorted(wanted):
        of_network = _own_addresses(networks[network_id], instances) | wanted[network_id]
        owned, new = _claim(connection, networks[network_id], of_network, now, warnings)
        addresses.update({(network_id, owner): ip for owner, ip in owned.items()})
        taken.update(f"{network_id}/{owner}" for owner in new)
    ipv6 = take_ipv6(connection, networks, [nic for one in instances for nic in one["nics"]])
    filled = [_filled(one, addresses, ipv6) for one in instances]

    before: dict[str, t.Any] = {}
    after: dict[str, t.Any] = {}
    for one in filled:
        for nic in one["nics"]:
            if f"{nic['network']['id']}/vif:{nic['id']}" in taken:
                before.setdefault(one["name"], {})[nic["network"]["name"]] = None
                after.setdefault(one["name"], {})[nic["network"]["name"]] = nic["ip"]
    result: dict[str, t.Any] = {
        "changed": bool(taken),
        "instances": filled,
        "msg": f"{len(taken)} addresses taken" if taken else "every interface has its address",
    }
    if warnings:
        result["warnings"] = warnings
    if taken:
        result["diff"] = {"before": before, "after": after}
    return result


def _wanted(instances: t.Sequence[Instance]) -> dict[int, dict[str, str | None]]:
    """Per network: the interfaces as owners, and the address that each names."""
    wanted: dict[int, dict[str, str | None]] = {}
    for one in instances:
        for nic in one["nics"]:
            owners = wanted.setdefault(nic["network"]["id"], {})
            owners[f"vif:{nic['id']}"] = nic.get("ip") or nic.get("requested_ip")
    return wanted


def _networks(connection: sa.Connection, wanted: t.Mapping[int, t.Any]) -> dict[int, t.Any]:
    rows = connection.execute(sa.select(network).where(network.c.id.in_(sorted(wanted))))
    found = {row.id: row for row in rows}
    for network_id in wanted:
        if network_id not in found:
            raise NotFoundError(f"the ledger has no network with the id {network_id}: it was deleted meanwhile")
    return found


def _host_serves(row: t.Any) -> bool:
    """Whether each compute host needs an address of its own in this network: it answers DHCP there, or routes."""
    return bool(row.dhcp or row.gateway is None or (row.cidr_v6 is not None and row.gateway_v6 is None))


def _own_addresses(row: t.Any, instances: t.Sequence[Instance]) -> dict[str, str | None]:
    owners: dict[str, str | None] = {}
    if not _host_serves(row):
        return owners
    for one in instances:
        if any(nic["network"]["id"] == row.id for nic in one["nics"]):
            if not one.get("host"):
                raise NovaliteError(f"'{one['name']}' has no compute host yet: run the scheduler before fixed_ip")
            owners[f"dhcp:{one['host']}"] = None
    return owners


def _claim(
    connection: sa.Connection, row: t.Any, owners: t.Mapping[str, str | None], now: int, warnings: list[str]
) -> tuple[dict[str, int], list[str]]:
    """(address of each owner, owners that had none before) in one network."""
    for _attempt in range(CLAIM_ATTEMPTS):
        try:
            with connection.begin_nested():
                return _claim_once(connection, row, owners, now, warnings)
        except sa.exc.IntegrityError:  # another run took an address for the same owner: a host's own, mostly
            continue
    raise ConflictError(f"other runs take addresses in network '{row.name}' for the same owners: run again")


def _claim_once(
    connection: sa.Connection, row: t.Any, owners: t.Mapping[str, str | None], now: int, warnings: list[str]
) -> tuple[dict[str, int], list[str]]:
    owned = held_by(connection, row.id, list(owners))
    missing = [owner for owner in owners if owner not in owned]
    for owner, address in owners.items():
        if address is None:
            continue
        number = pools.to_int(address)
        if owner not in owned:
            claim_one(connection, row, owner, number)
            owned[owner] = number
        elif owned[owner] != number:
            raise ConflictError(
                f"interface {owner[4:]} has {pools.to_text(owned[owner])} in network '{row.name}' and cannot get "
                f"{address} as well: release the one first"
            )
    owned.update(claim_again(connection, row.id, [owner for owner in missing if owner not in owned]))
    rest = [owner for owner in missing if owner not in owned]
    for owner, number, released_at in claim_free(connection, row, rest):
        owned[owner] = number
        if released_at > now - row.quarantine_seconds:
            warnings.append(
                f"network '{row.name}': {pools.to_text(number)} was released {now - released_at} s ago, within its "
                f"quarantine of {row.quarantine_seconds} s, for no other address is free"
            )
    return owned, missing


def _filled(
    one: Instance, addresses: t.Mapping[tuple[int, str], int], ipv6: t.Mapping[str, str]
) -> dict[str, t.Any]:
    nics = []
    for nic in one["nics"]:
        network_id = nic["network"]["id"]
        server = addresses.get((network_id, f"dhcp:{one.get('host')}"))
        nics.append(
            {
                **nic,
                "ip": pools.to_text(addresses[network_id, f"vif:{nic['id']}"]),
                "ipv6": ipv6.get(nic["id"]),
                "dhcp_server": None if server is None else pools.to_text(server),
            }
        )
    return {**one, "nics": nics}


def release_addresses(connection: sa.Connection, vif_ids: t.Iterable[str], now: int | None = None) -> int:
    """Give back the addresses of these network interfaces and return how many there were.

    `now` (seconds since the epoch; default: the clock) starts their quarantine. Works whether or not the rows of
    the interfaces are still there; an interface without an address is no error.
    """
    owners = sorted({f"vif:{vif_id}" for vif_id in vif_ids})
    if not owners:
        return 0
    released = connection.execute(
        sa.update(pool_table)
        # naming the networks lets the unique key (network, owner) find the rows instead of reading whole pools
        .where(pool_table.c.network_id.in_(sa.select(network.c.id)), pool_table.c.owner.in_(owners))
        .values(
            owner=None,
            last_owner=pool_table.c.owner,
            released_at=int(time.time()) if now is None else now,
        )
    )
    return released.rowcount


def release_host_address(connection: sa.Connection, network_id: int, host: str, now: int | None = None) -> bool:
    """Give back the address of `host` itself in a network (DHCP server, gateway) when no instance there needs it.

    True when it was given back; false when the host had none, or an instance on it still has an address of the
    network. The guard is in the write, so an instance that arrives at the same time keeps its gateway.
    """
    own = sa.and_(pool_table.c.network_id == network_id, pool_table.c.owner == f"dhcp:{host}")
    # On PostgreSQL a statement sees what was committed when it began: whoever uses this address is waited for here, so
    # that the next one sees what they did
    connection.execute(sa.select(pool_table.c.ip).where(own).with_for_update()).all()
    holds = pool_table.alias("holds")
    needed = (
        sa.select(sa.literal(1))
        .select_from(
            vif.join(instance, instance.c.uuid == vif.c.instance_uuid).join(
                holds, sa.and_(holds.c.network_id == vif.c.network_id, holds.c.owner == "vif:" + vif.c.id)
            )
        )
        .where(vif.c.network_id == network_id, instance.c.host == host)
        .exists()
    )
    released = connection.execute(
        sa.update(pool_table)
        .where(own, ~needed)
        .values(
            owner=None,
            last_owner=pool_table.c.owner,
            released_at=int(time.time()) if now is None else now,
        )
    )
    return released.rowcount > 0
