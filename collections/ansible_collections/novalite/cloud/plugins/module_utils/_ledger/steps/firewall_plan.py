# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `firewall_plan`: what the firewalls of compute hosts are to hold.

Turns what the ledger knows of all instances into the arguments of `firewall`, for each compute host. Hosts without
instances are among them, so that what is left on these can be taken away. Reads the ledger, changes nothing.
"""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._model.instance import not_adopted
from ..._plan import firewall
from ..queries import lookups
from ..queries.compute.views import instances_by
from ..security.firewalls import Instance, complete, facts_of_hosts

ARGUMENT_SPEC = {
    # The compute hosts. All that the ledger knows without this.
    "hosts": {"type": "list", "elements": "str"}
}


def firewall_plan(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `hosts`: for each compute host the arguments `instances`, `security_groups`, `zones`, `bridges` and `serving` of
      `firewall`

    Raises NotFoundError for an unknown host."""
    names = params.get("hosts")
    facts = facts_of_hosts(connection)
    if names is None:
        names = sorted(facts)
    else:
        lookups.check_compute_hosts(connection, names)
    by_host: dict[str, list[Instance]] = {name: [] for name in names}
    # One that is on its way in or out has its chains as long as it is on the host: a guest without is open.
    for server in not_adopted(instances_by(connection, hosts=names)):
        by_host[server["host"] or ""].append(server)
    plans = {host: firewall.firewall_plan(members, facts.get(host, {})) for host, members in by_host.items()}
    complete(connection, plans)
    return {"changed": False, "hosts": plans}
