# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""What allowed address pairs allow: never the address of another project's port.

Who may send from an address is that guest for its neighbours and for the metadata service. A pair may be there before
the address is given to somebody else, so this is asked whenever a host is told, and not only when a pair is made.
"""

from __future__ import annotations

import ipaddress
import typing as t

import sqlalchemy as sa

from ..db.tables import fixed_ip, instance, vif
from ..db.tables_networking import port

Pair = t.Mapping[str, t.Any]  # "ip_address" (an address or a range), "mac_address"

_OWNER = sa.func.coalesce(instance.c.project_id, port.c.project_id)
_PORTS = vif.outerjoin(instance, instance.c.uuid == vif.c.instance_uuid).outerjoin(port, port.c.vif_id == vif.c.id)


def without_others(
    connection: sa.Connection, project_id: str, network_id: int, pairs: t.Sequence[Pair] | None
) -> list[Pair]:
    """Return the pairs of a port of the project on the network, without the addresses of other projects' ports."""
    allowed: list[Pair] = []
    for pair in pairs or ():
        try:
            around = ipaddress.ip_network(pair["ip_address"])
        except ValueError:
            continue  # of before pairs were checked: it allows nothing
        taken = _of_others(connection, project_id, network_id, around)
        if taken:
            allowed += [{**pair, "ip_address": str(address)} for address in around if address not in taken]
        else:
            allowed.append(pair)
    return allowed


def _of_others(
    connection: sa.Connection,
    project_id: str,
    network_id: int,
    around: ipaddress.IPv4Network | ipaddress.IPv6Network,
) -> set[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    others = sa.and_(vif.c.network_id == network_id, _OWNER.is_distinct_from(project_id))
    if around.version == 6:
        query = sa.select(vif.c.ipv6).select_from(_PORTS).where(others, vif.c.ipv6.is_not(None))
        addresses = map(ipaddress.ip_address, connection.execute(query).scalars())
        return {address for address in addresses if address in around}
    held = sa.and_(fixed_ip.c.network_id == vif.c.network_id, fixed_ip.c.owner == "vif:" + vif.c.id)
    between = fixed_ip.c.ip.between(int(around[0]), int(around[-1]))
    query = sa.select(fixed_ip.c.ip).select_from(_PORTS.join(fixed_ip, held)).where(others, between)
    return {ipaddress.IPv4Address(number) for number in connection.execute(query).scalars()}
