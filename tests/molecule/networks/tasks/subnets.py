# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gives a project (the argument) the network `twofold` with two subnets of IPv4, as the Network API does."""

from __future__ import annotations

import sys

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import subnets, tenant_networks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.lookups import project_by_name
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import carriers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import (
    networks_seen,
)

WANTED = {"name": "twofold", "description": "", "mtu": None, "port_security_enabled": True}

with transaction(open_ledger()) as connection:
    project = project_by_name(connection, sys.argv[1])["id"]
    number = tenant_networks.create_network(connection, project, WANTED, carriers.Carrier())
    (row,) = (row for row in networks_seen(connection, project, bare=True) if row.uuid == number)
    for cidr in ("10.50.0.0/24", "10.60.0.0/24"):
        subnets.create_subnet(connection, row, {"version": 4, "cidr": cidr})
