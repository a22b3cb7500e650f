# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's tables of what tenants say about their networks; part of tables.py's metadata.

A network's addresses, its VLAN or VNI and its interfaces are in tables.py: here is what the Network API keeps beside
them. A network has up to MOST_RANGES subnets of IPv4, and one of IPv6.
"""

from __future__ import annotations

import sqlalchemy as sa

from .schema import partial_index, table
from .tables_addresses import floating_ip, network, vif

MOST_RANGES = 16  # subnets of IPv4 that a network may have

address_scope = table(  # subnet pools of which no two have a prefix in common
    "address_scope",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("project_id", sa.ForeignKey("project.id"), nullable=False, index=True),
    sa.Column("name", sa.String(255), nullable=False, server_default=""),
    sa.Column("ip_version", sa.Integer, nullable=False),  # 4 | 6
    sa.Column("shared", sa.Boolean, nullable=False, server_default=sa.false()),
)

subnet_pool = table(  # prefixes of which subnets get theirs
    "subnet_pool",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("project_id", sa.ForeignKey("project.id"), nullable=False, index=True),
    sa.Column("name", sa.String(255), nullable=False, server_default=""),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("ip_version", sa.Integer, nullable=False),  # 4 | 6
    sa.Column("prefixes", sa.JSON, nullable=False),  # CIDRs as texts: sorted, none within another
    sa.Column("min_prefixlen", sa.Integer, nullable=False),
    sa.Column("max_prefixlen", sa.Integer, nullable=False),
    sa.Column("default_prefixlen", sa.Integer, nullable=False),
    sa.Column("default_quota", sa.BigInteger),  # of a project: IPv4 addresses, or /64s of IPv6; null: no limit
    sa.Column("address_scope_id", sa.ForeignKey("address_scope.id"), index=True),
    sa.Column("is_default", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("shared", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.CheckConstraint(
        "min_prefixlen <= default_prefixlen AND default_prefixlen <= max_prefixlen", name="prefixlen_order"
    ),
)
partial_index("uq_subnet_pool_default", subnet_pool.c.is_default, subnet_pool.c.ip_version, unique=True)

subnet = table(  # of networks that projects made; an operator's network has what its own row says
    "subnet",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("network_id", sa.ForeignKey("network.id", ondelete="CASCADE"), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),  # 4 | 6
    # 0: the first of its family, whose range, name servers and routes are columns of the network. The addresses that
    # hosts have in further ones are known by this number (tables_addresses.py)
    sa.Column("position", sa.Integer, nullable=False, server_default="0"),
    sa.Column("name", sa.String(255), nullable=False, server_default=""),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("gateway", sa.String(39)),  # the address of a router's interface; guests route by their own host
    sa.Column("pools", sa.JSON, nullable=False),  # [[first, last]] as texts
    sa.Column("enable_dhcp", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("ra_mode", sa.String(24)),
    sa.Column("address_mode", sa.String(24)),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.Column("subnetpool_id", sa.ForeignKey("subnet_pool.id"), index=True),  # the pool that its range is of
    sa.Column("cidr", sa.String(18)),  # of a further one, like dns and routes
    sa.Column("dns", sa.JSON(none_as_null=True)),  # list of addresses
    sa.Column("routes", sa.JSON(none_as_null=True)),  # [{"destination", "nexthop"}] told by DHCP
    sa.UniqueConstraint("network_id", "version", "position"),
    sa.CheckConstraint("version IN (4, 6)", name="version"),
    sa.CheckConstraint("(position = 0) = (cidr IS NULL)", name="first"),
)

port = table(  # what was said of an interface (vif) by itself; one that a server came with has none until then
    "port",
    sa.Column("vif_id", sa.ForeignKey("vif.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("project_id", sa.ForeignKey("project.id"), nullable=False, index=True),
    sa.Column("kept", sa.Boolean, nullable=False),  # made by itself: it outlives the server that it is attached to
    sa.Column("name", sa.String(255), nullable=False, server_default=""),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("admin_state_up", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("device_id", sa.String(255), nullable=False, server_default=""),  # while no server has it
    sa.Column("device_owner", sa.String(255), nullable=False, server_default=""),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
    sa.Column("extra_dhcp_opts", sa.JSON(none_as_null=True)),  # [{"opt_name", "opt_value", "ip_version": 4 | 6}]
    sa.Column("binding", sa.JSON(none_as_null=True)),  # "profile", "host_id" and "vnic_type", as far as they were said
)

port_security_group = table(  # of ports that no server has; then they are the server's
    "port_security_group",
    sa.Column("vif_id", sa.ForeignKey("port.vif_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("group_id", sa.ForeignKey("security_group.id"), primary_key=True, index=True),
)

router = table(  # lets the guests of its networks out: each host does it for its own guests
    "router",
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("project_id", sa.ForeignKey("project.id"), nullable=False, index=True),
    sa.Column("name", sa.String(255), nullable=False, server_default=""),
    sa.Column("description", sa.String(255), nullable=False, server_default=""),
    sa.Column("admin_state_up", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("external_pool", sa.ForeignKey("floating_pool.name"), index=True),  # null: it leads nowhere
    sa.Column("enable_snat", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("updated_at", sa.BigInteger, nullable=False),
)

router_interface = table(
    "router_interface",
    # without cascades: a network or port that a router has cannot be deleted
    sa.Column("vif_id", sa.ForeignKey("vif.id"), primary_key=True),
    sa.Column("router_id", sa.ForeignKey("router.id"), nullable=False, index=True),
    sa.Column("network_id", sa.ForeignKey("network.id"), nullable=False, index=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("subnet_id", sa.String(36), nullable=False, unique=True),  # a subnet has one way out
)

# in a join of a floating IP and the interface that it leads to: on a network of a project a router leads to its pool
_AROUND = network.alias("around")
REACHED = sa.or_(
    sa.select(_AROUND.c.id).where(_AROUND.c.id == vif.c.network_id, _AROUND.c.tenant.is_(False)).exists(),
    sa.select(router.c.id)
    .join(router_interface, router_interface.c.router_id == router.c.id)
    .where(
        router_interface.c.network_id == vif.c.network_id,
        router_interface.c.version == 4,
        router.c.external_pool == floating_ip.c.pool,
    )
    .exists(),
)

resource_tag = table(  # of networks, subnets, ports, routers, groups, floating IPs; all have UUIDs
    "resource_tag",
    sa.Column("resource_id", sa.String(36), primary_key=True),
    sa.Column("tag", sa.String(255), primary_key=True),
)

quota_default = table(  # of the whole cloud, where they are not quotas.py's
    "quota_default",
    sa.Column("resource", sa.String(32), primary_key=True),
    sa.Column("hard_limit", sa.BigInteger, nullable=False),
    sa.CheckConstraint("hard_limit >= -1", name="hard_limit"),
)

flavor_access = table(  # the projects that see a flavor which is not public
    "flavor_access",
    sa.Column("flavor_id", sa.ForeignKey("flavor.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("project_id", sa.ForeignKey("project.id", ondelete="CASCADE"), primary_key=True),
)
