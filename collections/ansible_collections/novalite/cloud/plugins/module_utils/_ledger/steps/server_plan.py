# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `server_plan`: the plan of every compute host that instances are on, or that they are to go to.

Turns instances that have a host and addresses into the arguments of every host module, one plan for each host. Reads
the ledger, changes nothing.
"""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._plan.targets import of_plan
from ..compute.plans import plan_hosts

FRAGMENTS = ("state_dir",)
ARGUMENT_SPEC = {
    # Instances to build, as `fixed_ip` returns them.
    "instances": {"type": "list", "elements": "dict", "default": []},
    # Instances that run already and are to be compared with what they should be.
    "existing": {"type": "list", "elements": "dict", "default": []},
    # Instances to take away from their hosts.
    "leaving": {"type": "list", "elements": "dict", "default": []},
    # Facts as `compute_host` returns them; they go before those in the ledger.
    "compute_hosts": {"type": "list", "elements": "dict", "default": []},
    # Compute hosts to work out for what their networks need, whatever the other options say.
    "network_hosts": {"type": "list", "elements": "str", "default": []},
}


def server_plan(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `hosts`: for each compute host the plans `build`, `keep` and `remove`, as far as there are instances of that kind;
      `peers`, the bridges and DHCP servers of a host that has none of them, but is on the same networks; and `network`,
      the bridges and routers of `network_hosts` by the ledger
    * `targets`: the hosts of each play: `build`, `keep`, `remove`, `vacate`, `peers`, `groups` and `network` name those
      that have that plan, and `controller` is `localhost` if there is something to build
    """
    plans = plan_hosts(
        connection,
        params["state_dir"],
        instances=params["instances"] or (),
        existing=params["existing"] or (),
        leaving=params["leaving"] or (),
        compute_hosts=params["compute_hosts"] or (),
        network_hosts=params.get("network_hosts") or (),
        count_room=params.get("count_room", False),
    )
    hosts = plans.rendered()
    return {"changed": False, "hosts": hosts, "secret": plans.secret, "targets": of_plan(hosts)}
