# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of allowed address pairs: never the address of another project's port, nor one of a host.

Who may send from an address is that guest for its neighbours and for the metadata service; a host is its guests' router
and name server. A pair may be there before the address is given to somebody else, so this is asked whenever a host is
told, and not only when a pair is made.
"""

from __future__ import annotations

import typing as t

import netaddr
import sqlalchemy as sa

from ...._addressing.ipv6 import host_ipv6
from ...._addressing.macs import LINK_LOCAL, eui64
from ...._addressing.texts import parse_network
from ...._firewall.rules import MAX_RANGE
from ...._model.instance import AddressPair
from ...db.tables import fixed_ip, instance, network, vif
from ...db.tables_addresses import HOLDER, OF_HOST
from ...db.tables_networking import port

_OWNER = sa.func.coalesce(instance.c.project_id, port.c.project_id)
_IS_HOSTS = fixed_ip.c.owner.startswith(OF_HOST)
_PORTS = vif.outerjoin(instance, instance.c.uuid == vif.c.instance_uuid).outerjoin(port, port.c.vif_id == vif.c.id)


def without_others(
    connection: sa.Connection, project_id: str, network_id: int, pairs: t.Sequence[AddressPair] | None
) -> list[AddressPair]:
    """Return the pairs of a project's port on the network, without addresses of other projects' ports and of hosts."""
    allowed: list[AddressPair] = []
    for pair in pairs or ():
        try:
            around = parse_network(pair["ip_address"], strict=False).cidr
        except ValueError:
            continue  # of before pairs were checked: it allows nothing
        if around.size > MAX_RANGE:
            continue  # likewise
        taken = _of_others(connection, project_id, network_id, around)
        if taken:
            allowed += [{**pair, "ip_address": str(address)} for address in around if address not in taken]
        else:
            allowed.append({**pair, "ip_address": str(around) if "/" in pair["ip_address"] else pair["ip_address"]})
    return allowed


def _of_others(
    connection: sa.Connection, project_id: str, network_id: int, around: netaddr.IPNetwork
) -> set[netaddr.IPAddress]:
    others = sa.and_(vif.c.network_id == network_id, _OWNER.is_distinct_from(project_id))
    if around.version == 6:
        rows = connection.execute(sa.select(vif.c.ipv6, vif.c.mac).select_from(_PORTS).where(others)).all()
        texts = [text for row in rows for text in (row.ipv6, eui64(LINK_LOCAL, row.mac)) if text]
        addresses = map(netaddr.IPAddress, [*texts, *_of_hosts(connection, network_id)])
        return {address for address in addresses if address in around}
    held = sa.and_(fixed_ip.c.network_id == vif.c.network_id, vif.c.id == HOLDER)
    between = fixed_ip.c.ip.between(around.first, around.last)
    query = sa.select(fixed_ip.c.ip).select_from(_PORTS.join(fixed_ip, held)).where(others, between)
    of_hosts = sa.select(fixed_ip.c.ip).where(_IS_HOSTS, fixed_ip.c.network_id == network_id, between)
    return {netaddr.IPAddress(number, 4) for number in connection.execute(query.union(of_hosts)).scalars()}


def _of_hosts(connection: sa.Connection, network_id: int) -> t.Iterator[str]:
    """The IPv6 addresses of the hosts on the network, which follow from their IPv4 ones."""
    of_network = fixed_ip.join(network, network.c.id == fixed_ip.c.network_id)
    query = sa.select(fixed_ip.c.ip, network.c.cidr_v6).select_from(of_network)
    for row in connection.execute(query.where(_IS_HOSTS, network.c.id == network_id)):
        for prefix in (LINK_LOCAL, row.cidr_v6) if row.cidr_v6 else (LINK_LOCAL,):
            yield host_ipv6(prefix, str(netaddr.IPAddress(row.ip, 4)))
