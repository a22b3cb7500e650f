# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `port_plan`: what hosts are told of ports that changed while a server has them."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..compute.plans import plan_hosts
from ..db.tables import instance, vif
from ..queries.views import instances_by
from ..security import firewalls

OF_GUESTS = ("bridges", "filters", "dhcp_networks", "domains", "ledger")


def port_plan(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return, as `firewall`, the arguments of that module for the hosts of the servers that have `ports` (UUIDs), and
    for those whose rules name their groups; and, as `hosts`, what each server's own host does beside. A port that no
    server has by now is in no plan."""
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
        "firewall": firewalls.plan_for_instances(connection, uuids, groups),
        "hosts": {
            host: {key: of_host["keep"][key] for key in OF_GUESTS}
            for host, of_host in plans.items()
            if "keep" in of_host
        },
    }
