# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `port_plan`: what hosts are told of ports that changed while a server has them.

Turns what the ledger says of ports, their security, address pairs and DHCP options, into the arguments of the host
modules that bring it to the servers which have these ports. Reads the ledger, changes nothing.
"""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..compute.plans import plan_hosts
from ..db.tables import instance, vif
from ..queries.compute.views import instances_by
from ..security import firewalls

FRAGMENTS = ("state_dir",)
ARGUMENT_SPEC = {
    # UUIDs of the ports. One that no server has is left out.
    "ports": {"type": "list", "elements": "str", "required": True}
}

OF_GUESTS = ("bridges", "filters", "dhcp_networks", "domains", "ledger")


def port_plan(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `uuids`: the servers that have these ports
    * `firewall`: for each compute host that must know, the arguments of `firewall`
    * `hosts`: for each compute host of the servers, their `filters`, `dhcp_networks` and `domains`
    """
    query = (
        sa.select(instance.c.uuid)
        .join(vif, vif.c.instance_uuid == instance.c.uuid)
        .where(vif.c.id.in_(params["ports"]), instance.c.deleted == 0, instance.c.host.is_not(None))
    )
    uuids = sorted(set(connection.execute(query).scalars()))
    servers = instances_by(connection, uuids=uuids)
    groups = {group["id"] for server in servers for group in server["security_groups"]}
    plans = plan_hosts(connection, params["state_dir"], existing=servers).rendered()
    return {
        "changed": False,
        "uuids": uuids,
        "firewall": firewalls.plan_for_instances(connection, uuids, groups),
        "hosts": {
            host: {key: of_host["keep"][key] for key in OF_GUESTS}
            for host, of_host in plans.items()
            if "keep" in of_host
        },
    }
