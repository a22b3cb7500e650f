# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `domain_interfaces`: plug network interfaces into this host's libvirt domains, and pull them out.

Brings the network interfaces of a list of domains to those of their XML, in one task and in parallel. Interfaces are
known by their MAC address. An interface that is there already gets the network filter of the XML, or loses its own,
while the guest runs. A domain that runs is changed while it runs, and its definition with it. One that is off has its
definition changed. A guest has to let go of an interface that is pulled out. It is asked again until it does. Each
domain is a matter of its own. What fails is told in `domains[].error`, and the task fails in the end; what this task
plugged into that domain is taken back. Bridges, DHCP entries, filters and firewall chains must be there before; the
role `interfaces` sees to that.
"""

from __future__ import annotations

from .._domain import lifecycle_interfaces
from .._domain.outcome import DOMAIN_OPTIONS
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, Result, each_for_itself

ARGUMENT_SPEC = {
    "domains": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {**DOMAIN_OPTIONS, "xml": {"type": "str", "required": True}},
    },
    # Seconds that a guest has to let go of an interface.
    "timeout": {"type": "float", "default": lifecycle_interfaces.DETACH_TIMEOUT},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `domains`: one entry for each of `domains`, in the same order; `uuid` (UUID of the domain), `name` (name of the
      domain), `attached` (MAC addresses of the interfaces that were plugged in), `detached` (MAC addresses of the
      interfaces that were pulled out), `filtered` (MAC addresses of the interfaces that were there and whose network
      filter changed), `error` (why not all of it was done; null when it was)
    """
    params = call.params
    connection = connect(params["uri"])
    outcomes = lifecycle_interfaces.ensure(connection, params["domains"], call.check_mode, params["timeout"])
    result: Result = {
        "changed": any(outcome.changed for outcome in outcomes),
        "domains": [
            {name: getattr(outcome, name) for name in ("uuid", "name", "attached", "detached", "filtered", "error")}
            for outcome in outcomes
        ],
    }
    if call.diff:
        result["diff"] = lifecycle_interfaces.diff_of(outcomes)
    return each_for_itself(result, (outcome.error for outcome in outcomes))
