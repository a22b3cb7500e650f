# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Fixed IPs: one row for each address of a network's pool, taken and given back by guarded writes.

Nova's lifecycle without its race (`fixed_ip_associate` lacked `instance_uuid IS NULL`): free, then owned, then free
again with the time of its release. The address that was free for longest goes out first, so that one which a guest
may still hold (a lease, an ARP cache) is the last choice.
"""

from __future__ import annotations

import time
import typing as t

import sqlalchemy as sa

from .tables import fixed_ip, instance, network, vif


def release_addresses(connection: sa.Connection, vif_ids: t.Iterable[str], now: int | None = None) -> int:
    """Give back the addresses of these network interfaces and return how many there were.

    `now` (seconds since the epoch; default: the clock) starts their quarantine. Works whether or not the rows of
    the interfaces are still there; an interface without an address is no error.
    """
    owners = sorted({f"vif:{vif_id}" for vif_id in vif_ids})
    if not owners:
        return 0
    released = connection.execute(
        sa.update(fixed_ip)
        # naming the networks lets the unique key (network, owner) find the rows instead of reading whole pools
        .where(fixed_ip.c.network_id.in_(sa.select(network.c.id)), fixed_ip.c.owner.in_(owners))
        .values(owner=None, released_at=int(time.time()) if now is None else now)
    )
    return released.rowcount


def release_host_address(connection: sa.Connection, network_id: int, host: str, now: int | None = None) -> bool:
    """Give back the address of `host` itself in a network (DHCP server, gateway) when no instance there needs it.

    True when it was given back; false when the host had none, or an instance on it still has an address of the
    network. The guard is in the write, so an instance that arrives at the same time keeps its gateway.
    """
    holds = fixed_ip.alias("holds")
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
        sa.update(fixed_ip)
        .where(fixed_ip.c.network_id == network_id, fixed_ip.c.owner == f"dhcp:{host}", ~needed)
        .values(owner=None, released_at=int(time.time()) if now is None else now)
    )
    return released.rowcount > 0
