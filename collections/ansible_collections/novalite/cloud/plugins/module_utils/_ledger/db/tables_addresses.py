# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's tables of networks, interfaces and their addresses; part of tables.py's metadata."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from .schema import numbered, partial_index, table

# What the owner of a fixed IP begins with: an interface, by its id, or a compute host itself, by its name. The host has
# it to answer DHCP there, or to route.
OF_VIF, OF_HOST = "vif:", "dhcp:"
# The owner of an address that some host has, and of which no record tells whose it is: it is nobody's to take, until
# ledger_rebuild.yml finds it on no host, or its owner.
SEEN = "seen:"


def host_owner(host: str, position: int = 0) -> str:
    """Return the owner that the host is in its network's subnet with this `position` (tables_networking.subnet)."""
    return f"{OF_HOST}{host}/{position}" if position else OF_HOST + host


network = numbered(
    "network",
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("owner", sa.String(32), nullable=False, server_default=""),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("cidr", sa.String(18)),  # null: it has no IPv4 subnet yet
    sa.Column("cidr_v6", sa.String(43)),
    sa.Column("gateway", sa.String(15)),  # null: each host's own DHCP server address routes (Nova's multi_host)
    sa.Column("gateway_v6", sa.String(39)),
    sa.Column("bridge", sa.String(15), nullable=False, unique=True),
    sa.Column("bridge_interface", sa.String(15)),  # the host's port into the shared layer 2; null: host-local
    sa.Column("vlan", sa.Integer, unique=True),
    sa.Column("dhcp", sa.Boolean, nullable=False),
    sa.Column("dns", sa.JSON, nullable=False),  # list of addresses
    sa.Column("domain", sa.String(255), nullable=False, server_default="novalocal"),
    sa.Column("mtu", sa.Integer),
    sa.Column("lease_seconds", sa.Integer, nullable=False, server_default="86400"),
    sa.Column("quarantine_seconds", sa.Integer, nullable=False, server_default="600"),
    sa.Column("manager", sa.String(16), nullable=False, server_default="flat_dhcp"),  # flat flat_dhcp vlan vxlan
    sa.Column("vni", sa.Integer),  # VXLAN network identifier
    sa.Column("isolated", sa.Boolean, nullable=False, server_default=sa.false()),  # own namespace on each host
    sa.Column("snat", sa.Boolean, nullable=False, server_default=sa.false()),  # out under the host's address
    sa.Column("ntp", sa.JSON, nullable=False, server_default="[]"),  # list of addresses
    sa.Column("ipv6_mode", sa.String(16), nullable=False, server_default="eui64"),  # eui64 | stable-privacy (RFC 7217)
    sa.Column("tenant", sa.Boolean, nullable=False, server_default=sa.false()),  # its project made it
    sa.Column("display_name", sa.String(255)),  # what the Network API shows; null: the name
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("created_at", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("updated_at", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("routes", sa.JSON, nullable=False, server_default="[]"),  # [{"destination", "nexthop"}] told by DHCP
    sa.Column("port_security_enabled", sa.Boolean, nullable=False, server_default=sa.true()),  # of interfaces to come
    # its guests are open to each other, whatever their groups say
    sa.Column("allow_project_net_traffic", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("admin_state_up", sa.Boolean, nullable=False, server_default=sa.true()),  # false: it carries nothing
    sa.Column(
        "made_by", sa.String(32), nullable=False, server_default=""
    ),  # project; "": nobody knows, or the operator
    # servers that name none of several networks are put on it
    sa.Column("is_default", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.UniqueConstraint("owner", "name"),
    sa.CheckConstraint("vlan IS NULL OR (vlan >= 1 AND vlan <= 4094)", name="vlan"),
)
sa.Index("uq_network_vni", network.c.vni, unique=True)
partial_index("uq_network_default", network.c.is_default, network.c.is_default, unique=True)

fixed_ip = table(  # one row for each address of a pool, made with the network
    "fixed_ip",
    sa.Column("network_id", sa.ForeignKey("network.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("ip", sa.BigInteger, primary_key=True, autoincrement=False),
    # OF_VIF and a UUID (and "/1" to "/4": further ones), host_owner(), or SEEN and the address itself
    sa.Column("owner", sa.String(80)),
    sa.Column("reserved", sa.String(16)),  # network | gateway | broadcast | user; null = in the pool
    sa.Column("released_at", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("last_owner", sa.String(80)),  # who released it, and gets it again before others do
    sa.Column("further_of", sa.String(36)),  # the interface that has this one besides its first
    sa.UniqueConstraint("network_id", "owner"),
    sa.CheckConstraint("owner IS NULL OR reserved IS NULL", name="reserved_is_free"),
)
partial_index(
    "ix_fixed_ip_free",
    sa.and_(fixed_ip.c.owner.is_(None), fixed_ip.c.reserved.is_(None)),
    fixed_ip.c.network_id,
    fixed_ip.c.released_at,
    fixed_ip.c.ip,
)

partial_index(
    "ix_fixed_ip_last_owner",
    sa.and_(fixed_ip.c.owner.is_(None), fixed_ip.c.last_owner.is_not(None)),
    fixed_ip.c.network_id,
    fixed_ip.c.last_owner,
)

partial_index("ix_fixed_ip_reserved", fixed_ip.c.reserved.is_not(None), fixed_ip.c.network_id, fixed_ip.c.ip)
partial_index("ix_fixed_ip_further", fixed_ip.c.further_of.is_not(None), fixed_ip.c.further_of)

vif = table(
    "vif",
    sa.Column("id", sa.String(36), primary_key=True),
    # null: a port that no server has; what was said of it is in the table port
    sa.Column("instance_uuid", sa.ForeignKey("instance.uuid", ondelete="CASCADE"), index=True),
    sa.Column("network_id", sa.ForeignKey("network.id"), nullable=False, index=True),
    sa.Column("position", sa.Integer),
    sa.Column("mac", sa.String(17), nullable=False, unique=True),
    sa.Column("ipv6", sa.String(39)),
    sa.Column("status", sa.String(16)),  # attaching | detaching, while its server's host is at it; null: at rest
    sa.Column("allowed_address_pairs", sa.JSON(none_as_null=True)),  # [{"ip_address": CIDR, "mac_address": MAC | null}]
    sa.Column("port_security_enabled", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.UniqueConstraint("instance_uuid", "position"),
    sa.UniqueConstraint("network_id", "ipv6"),
)

partial_index("ix_vif_pairs", vif.c.allowed_address_pairs.is_not(None), vif.c.instance_uuid)

dns_name = table(  # a name on a network leads to one instance, the first that came: network/dns_names.py
    "dns_name",
    sa.Column("network_id", sa.ForeignKey("network.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("name", sa.String(63), primary_key=True),
    sa.Column("instance_uuid", sa.ForeignKey("instance.uuid", ondelete="CASCADE"), nullable=False, index=True),
)

# Floating pools had no UUID of their own before revision 0040, and were shown under one that followed from the name.
_POOLS = uuid.UUID("a2f9a4ac-8f0e-5f1b-9d53-0f5e8c1b7c11")


def pool_network_id(name: str) -> str:
    """Return the UUID of the floating pool `name` where nobody chose another one."""
    return str(uuid.uuid5(_POOLS, name))


def _pool_uuid(context: t.Any) -> str:
    return pool_network_id(context.get_current_parameters()["name"])


floating_pool = table(  # the Network API shows it as an external network
    "floating_pool",
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("cidr", sa.String(18), nullable=False),  # "": an external network that has no subnet yet
    sa.Column("interface", sa.String(15), nullable=False),  # the hosts' link into the network that the addresses are of
    sa.Column("uuid", sa.String(36), nullable=False, server_default="", default=_pool_uuid),
    sa.Column("display_name", sa.String(255)),  # what the Network API shows; null: the name
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("made_by", sa.String(32), nullable=False, server_default=""),  # project; "": the operator
    # of what it was as a network, and is again when it is external no more
    sa.Column("port_security_enabled", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("mtu", sa.Integer),
    sa.Column("isolated", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("subnet_name", sa.String(255)),  # null: the network's
    sa.Column("gateway", sa.String(15)),  # of the outside world
)
sa.Index("uq_floating_pool_uuid", floating_pool.c.uuid, unique=True)

floating_ip = table(  # one row for each address of a pool
    "floating_ip",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("pool", sa.ForeignKey("floating_pool.name", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("address", sa.BigInteger, nullable=False, unique=True),
    sa.Column("project_id", sa.ForeignKey("project.id")),  # null: in the pool
    sa.Column("last_project_id", sa.String(32)),  # that had it last: it may ask for this very address again
    sa.Column("vif_id", sa.ForeignKey("vif.id", ondelete="SET NULL"), index=True),  # null: associated with nothing
    sa.Column("released_at", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("further_ip", sa.BigInteger),  # the further one of the interface that it leads to; null: to the first
    sa.Column("router_id", sa.String(36), index=True),  # whose gateway it is: then it is no project's
    sa.CheckConstraint("vif_id IS NULL OR project_id IS NOT NULL", name="allocated"),
)

# in a join: the interface has the address
HELD = sa.and_(fixed_ip.c.network_id == vif.c.network_id, fixed_ip.c.owner == OF_VIF + vif.c.id)
# The interface that has an address, the first or a further one; and, from interfaces on, all addresses of one: five
# look-ups, where OR would read the pool
HOLDER = sa.func.coalesce(fixed_ip.c.further_of, sa.func.substr(fixed_ip.c.owner, len(OF_VIF) + 1))
MOST_ADDRESSES = 5  # of an interface and IPv4: Neutron's max_fixed_ips_per_port
_OWNERS = [OF_VIF + vif.c.id + end for end in ("", *(f"/{number}" for number in range(1, MOST_ADDRESSES)))]
HELD_ALL = sa.and_(fixed_ip.c.network_id == vif.c.network_id, fixed_ip.c.owner.in_(_OWNERS))
# in such a join: the address that a floating IP leads to
LED_TO = sa.func.coalesce(floating_ip.c.further_ip, fixed_ip.c.ip)
