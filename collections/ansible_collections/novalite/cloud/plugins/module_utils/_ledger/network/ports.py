# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports that projects make by themselves: an address, a MAC and groups, for a server that is to come or is there.

An interface (vif) that no server has is a port; the one that a server has is one, too. Groups are a server's here and
not an interface's: while a server has a port, the port's groups are the server's.
"""

from __future__ import annotations

import re
import typing as t
import uuid

import sqlalchemy as sa

from ..._addressing import texts
from ..._addressing.macs import MAC_PREFIX
from ..._errors import NotFoundError, NovaliteError
from ..._firewall.rules import MAX_RANGE
from ..._json import Json, JsonMapping, JsonObject
from ..._model.instance import AddressPair
from ..db import clock
from ..db.tables import floating_ip, instance, network, security_group, vif
from ..db.tables_networking import port, port_security_group, resource_tag, router_interface
from ..identity.quotas import check_quota
from ..queries.lookups import lock_project, lock_rows
from ..queries.network.network_records import Network, Port
from ..security.security_groups import ensure_default_group
from . import port_details, port_security
from .addresses import release_addresses
from .port_addresses import change_addresses, renew_ipv6, take_addresses
from .tenant_networks import TenantError
from .vifs import insert_vifs

MAX_PAIRS = 10  # Neutron's max_allowed_address_pair


class Attachable(t.NamedTuple):
    """The network of a port that a server may have."""

    network_id: int
    name: str
    cidr: str


# what is said of a port by itself
_COLUMNS = ("name", "description", "admin_state_up", "device_id", "device_owner")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")


def create_port(connection: sa.Connection, project_id: str, row: Network, attributes: JsonMapping) -> str:
    """Make a port of the project on the network `row`; returns its UUID.

    `attributes`: "mac" (None: a new one), "fixed_ips" (None: one address of each family; else up to five {"subnet_id",
    "ip_address"}), "security_groups" (UUIDs; None: the default group), "allowed_address_pairs", "name", "description",
    "admin_state_up", "device_id", "device_owner", "port_security_enabled" (None: as the network's), "extra_dhcp_opts",
    "binding" (see port_details.py). Raises NotFoundError, QuotaError, ConflictError for an address or a MAC that is
    taken, NovaliteError for what cannot be.
    """
    lock_project(connection, project_id)
    number = str(uuid.uuid4())
    secured = attributes["port_security_enabled"]
    if secured is None:
        secured = row.port_security_enabled
    port_security.check({**attributes, "security_groups": attributes["security_groups"] or ()}, secured)
    groups = _groups(connection, project_id, attributes["security_groups"]) if secured else []
    nic = {"id": number, "instance_uuid": None, "network_id": row.id, "position": None}
    if attributes["mac"] is None:
        insert_vifs(connection, [nic], MAC_PREFIX)
    else:
        _insert_with(connection, nic, attributes["mac"], row)
    pairs = checked_pairs(attributes["allowed_address_pairs"]) if attributes["allowed_address_pairs"] else None
    made = sa.update(vif).where(vif.c.id == number)
    connection.execute(made.values(allowed_address_pairs=pairs, port_security_enabled=secured))
    column_values = {key: attributes[key] for key in _COLUMNS}
    column_values["extra_dhcp_opts"] = port_details.merged_options(None, attributes["extra_dhcp_opts"]) or None
    insert_port(connection, number, project_id, kept=True, binding=attributes["binding"], **column_values)
    _write_groups(connection, number, groups)
    take_addresses(connection, row, number, attributes["fixed_ips"])
    check_quota(connection, project_id, "ports", count(connection, project_id))
    return number


def change_mac(connection: sa.Connection, row: Network, seen: Port, text: str) -> None:
    """Give the port `seen` on the network `row` this MAC, and the IPv6 address that follows from it. Raises TenantError
    for one that somebody has and for a MAC that is taken, NovaliteError for what is not a MAC."""
    mac = checked_mac(text)
    if mac == seen.mac:
        return
    if seen.instance_uuid is not None or seen.router_id is not None:
        raise TenantError(
            "PortBound",
            f"Unable to complete operation on port {seen.id}, port is already bound, port type: bridge, old_mac "
            f"{seen.mac}, new_mac {mac}.",
        )
    _refuse_taken(connection, mac, row)
    connection.execute(sa.update(vif).where(vif.c.id == seen.id).values(mac=mac))
    if seen.ipv6 is not None:
        renew_ipv6(connection, row, seen.id)


def insert_port(connection: sa.Connection, number: str, project_id: str, kept: bool, **column_values: Json) -> None:
    """Record what was said of an interface by itself; one that is `kept` outlives its server."""
    now = clock.seconds(connection)
    values = {"vif_id": number, "project_id": project_id, "kept": kept, "created_at": now, "updated_at": now}
    connection.execute(sa.insert(port).values({**values, **column_values}))


def count(connection: sa.Connection, project_id: str) -> int:
    """The ports that the project made by themselves."""
    mine = sa.select(sa.func.count()).select_from(port).where(port.c.project_id == project_id, port.c.kept.is_(True))
    return int(connection.execute(mine).scalar_one())


def update_port(connection: sa.Connection, project_id: str, row: Network, seen: Port, changes: JsonMapping) -> bool:
    """Make the `changes` of the port `seen` (as network_records shows it) on the network `row`; returns whether the
    host of the port's server, if it has one, is to be told.

    Groups only of a port that no server has: those of the others are their server's. Raises what change_addresses()
    does.
    """
    number = seen.id
    secured = changes.get("port_security_enabled", seen.port_security_enabled)
    port_security.check(changes, secured, seen.groups_in_force, seen.allowed_address_pairs)
    of_vif: JsonObject = {} if secured == seen.port_security_enabled else {"port_security_enabled": secured}
    of_server = ("device_id", "device_owner") if seen.instance_uuid is not None else ()
    column_values = {key: changes[key] for key in (*_COLUMNS, "binding") if key in changes and key not in of_server}
    options = port_details.merged_options(seen.extra_dhcp_opts, changes.get("extra_dhcp_opts"))
    for_host = options != (seen.extra_dhcp_opts or [])
    if for_host:
        column_values["extra_dhcp_opts"] = options or None
    if seen.instance_uuid is not None:  # first, as whatever changes a server's interfaces
        lock_rows(connection, instance.c.uuid == seen.instance_uuid, by=instance.c.id)
    lock_rows(connection, vif.c.id == number, by=vif.c.id)
    if connection.execute(sa.select(port.c.vif_id).where(port.c.vif_id == number)).first() is None:
        insert_port(connection, number, project_id, kept=False, **column_values)
    else:
        connection.execute(
            sa.update(port).where(port.c.vif_id == number).values(updated_at=clock.seconds(connection), **column_values)
        )
    if "allowed_address_pairs" in changes:
        pairs = checked_pairs(changes["allowed_address_pairs"] or []) or None
        if pairs != (seen.allowed_address_pairs or None):
            of_vif["allowed_address_pairs"] = pairs
    if of_vif:
        connection.execute(sa.update(vif).where(vif.c.id == number).values(**of_vif))
    if "security_groups" in changes and seen.instance_uuid is None:
        connection.execute(sa.delete(port_security_group).where(port_security_group.c.vif_id == number))
        _write_groups(connection, number, _groups(connection, project_id, changes["security_groups"]))
    if "fixed_ips" in changes:
        for_host |= change_addresses(connection, row, seen, changes["fixed_ips"] or [])
    return bool(of_vif) or for_host


def drop(connection: sa.Connection, numbers: t.Collection[str]) -> None:
    """Remove these interfaces, which nobody has, and give back their addresses."""
    release_addresses(connection, numbers)
    connection.execute(sa.delete(resource_tag).where(resource_tag.c.resource_id.in_(list(numbers))))
    led = sa.update(floating_ip).where(floating_ip.c.vif_id.in_(list(numbers)))
    connection.execute(led.values(vif_id=None, further_ip=None))
    connection.execute(sa.delete(vif).where(vif.c.id.in_(list(numbers))))


def attachable(connection: sa.Connection, project_id: str, number: str) -> Attachable:
    """The network of the interface `number`, if a server may have that.

    Raises NotFoundError for one that is not the project's, TenantError for one that somebody has, NovaliteError for one
    that is down, or on a network without an IPv4 subnet.
    """
    port_row = connection.execute(
        sa.select(
            vif.c.network_id,
            vif.c.instance_uuid,
            port.c.admin_state_up,
            port.c.binding,
            network.c.name,
            network.c.cidr,
            network.c.uuid,
            router_interface.c.router_id,
        )
        .select_from(
            vif.join(port, port.c.vif_id == vif.c.id)
            .join(network, network.c.id == vif.c.network_id)
            .outerjoin(router_interface, router_interface.c.vif_id == vif.c.id)
        )
        .where(vif.c.id == number, port.c.project_id == project_id)
    ).first()
    if port_row is None:
        other = sa.select(vif.c.id).join(instance, instance.c.uuid == vif.c.instance_uuid)
        if connection.execute(other.where(vif.c.id == number, instance.c.project_id == project_id)).first():
            raise TenantError("PortInUse", f"Port {number} is still in use.")
        raise NotFoundError(f"Port id {number} could not be found.")
    if port_row.instance_uuid is not None or port_row.router_id is not None:
        raise TenantError("PortInUse", f"Port {number} is still in use.")
    if not port_row.admin_state_up:
        raise NovaliteError(f"Port {number} is administratively down: set admin_state_up first.")
    if (port_row.binding or {}).get("vnic_type"):
        raise NovaliteError(
            f"Port {number} is {port_row.binding['vnic_type']}: hosts here bind ports of the type normal."
        )
    if port_row.cidr is None:
        raise NovaliteError(f"Network {port_row.uuid} requires a subnet in order to boot instances on.")
    return Attachable(port_row.network_id, port_row.name, port_row.cidr)


def group_ids_of(connection: sa.Connection, numbers: t.Collection[str]) -> list[int]:
    """The groups of these ports by their own."""
    link = port_security_group
    query = sa.select(link.c.group_id).where(link.c.vif_id.in_(list(numbers))).distinct().order_by(link.c.group_id)
    return list(connection.execute(query).scalars())


def checked_pairs(listed: t.Sequence[AddressPair]) -> list[AddressPair]:
    """Allowed address pairs as the ledger keeps them. Raises NovaliteError."""
    if len(listed) > MAX_PAIRS:
        raise NovaliteError(f"Number of allowed address pairs exceeds the maximum of {MAX_PAIRS}.")
    pairs: list[AddressPair] = []
    for requested_pair in listed:
        try:
            # as Neutron, which keeps 10.0.0.9/24 as it is written; what it allows is the range around it
            parsed = texts.parse_network(requested_pair["ip_address"], strict=False)
            if parsed.size > MAX_RANGE:
                raise ValueError(f"{parsed} has more than {MAX_RANGE} addresses")
            cidr = str(parsed)
        except ValueError as error:
            raise NovaliteError(f"Invalid input for allowed_address_pairs. Reason: {str(error)[:100]}") from None
        pair: AddressPair = {
            "ip_address": cidr if "/" in requested_pair["ip_address"] else requested_pair["ip_address"],
            "mac_address": None if (mac := requested_pair.get("mac_address")) is None else checked_mac(mac),
        }
        if pair in pairs:
            raise NovaliteError(f"Request contains duplicate address pair: {pair['ip_address']}")
        pairs.append(pair)
    return pairs


def checked_mac(text: str) -> str:
    """A MAC that an interface may have, in small letters. Raises NovaliteError."""
    mac = text.lower().replace("-", ":")
    if not _MAC.fullmatch(mac) or int(mac[:2], 16) & 1 or mac == "00:00:00:00:00:00":
        raise NovaliteError(f"Invalid input for mac_address. Reason: '{text[:40]}' is not a valid MAC address.")
    return mac


def _insert_with(connection: sa.Connection, nic: JsonMapping, text: str, row: Network) -> None:
    mac = checked_mac(text)
    _refuse_taken(connection, mac, row)
    connection.execute(sa.insert(vif).values(mac=mac, **nic))


def _refuse_taken(connection: sa.Connection, mac: str, row: Network) -> None:
    if connection.execute(sa.select(vif.c.id).where(vif.c.mac == mac)).first() is not None:
        raise TenantError(
            "MacAddressInUse", f"Unable to complete operation for network {row.uuid}. The mac address {mac} is in use."
        )


def _groups(connection: sa.Connection, project_id: str, group_uuids: t.Sequence[str] | None) -> list[int]:
    if group_uuids is None:
        return [ensure_default_group(connection, project_id, open_to_members=True)]
    requested_uuids = [group_uuid.lower() for group_uuid in dict.fromkeys(group_uuids)]
    rows = connection.execute(
        sa.select(security_group.c.uuid, security_group.c.id).where(
            security_group.c.project_id == project_id, security_group.c.uuid.in_(requested_uuids)
        )
    )
    id_by_uuid = {row.uuid: row.id for row in rows}
    for group_uuid in requested_uuids:
        if group_uuid not in id_by_uuid:
            raise NotFoundError(f"Security group {group_uuid} does not exist")
    return sorted(id_by_uuid.values())


def _write_groups(connection: sa.Connection, number: str, groups: t.Sequence[int]) -> None:
    if groups:
        connection.execute(sa.insert(port_security_group), [{"vif_id": number, "group_id": group} for group in groups])
