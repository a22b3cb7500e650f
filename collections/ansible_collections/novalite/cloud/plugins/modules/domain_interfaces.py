#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: domain_interfaces
short_description: Plug network interfaces into this host's libvirt domains, and pull them out
version_added: 0.1.0
description:
  - Brings the network interfaces of a list of domains to those of their XML, in one task and in parallel. Interfaces
    are known by their MAC address.
  - An interface that is there already gets the network filter of the XML, or loses its own, while the guest runs.
  - A domain that runs is changed while it runs, and its definition with it. One that is off has its definition changed.
  - A guest has to let go of an interface that is pulled out. It is asked again until it does.
  - Each domain is a matter of its own. What fails is told in RV(domains[].error), and the task fails in the end; what
    this task plugged into that domain is taken back.
  - Bridges, DHCP entries, filters and firewall chains must be there before; the role P(novalite.cloud.interfaces#role)
    sees to that.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.libvirt
attributes:
  check_mode:
    description: Reports what it would plug and pull.
  diff_mode:
    description: Shows the MAC addresses before and after.
options:
  domains:
    description: The domains.
    type: list
    elements: dict
    required: true
    suboptions:
      uuid:
        description: UUID of the domain, which is the instance's.
        type: str
        required: true
      name:
        description: Name of the domain, such as V(instance-00000007).
        type: str
        required: true
      xml:
        description: The domain XML as it shall be. Only its interfaces are looked at.
        type: str
        required: true
  timeout:
    description: Seconds that a guest has to let go of an interface.
    type: float
    default: 60
seealso:
  - module: novalite.cloud.domain
  - module: novalite.cloud.server_interface
"""

EXAMPLES = r"""
- name: Give a domain the interfaces of its definition
  novalite.cloud.domain_interfaces:
    domains:
      - uuid: 6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11
        name: instance-00000007
        xml: "{{ lookup('ansible.builtin.file', 'instance-00000007.xml') }}"
"""

RETURN = r"""
domains:
  description: One entry for each of O(domains), in the same order.
  type: list
  elements: dict
  returned: always
  contains:
    uuid:
      description: UUID of the domain.
      type: str
    name:
      description: Name of the domain.
      type: str
    attached:
      description: MAC addresses of the interfaces that were plugged in.
      type: list
      elements: str
    detached:
      description: MAC addresses of the interfaces that were pulled out.
      type: list
      elements: str
    filtered:
      description: MAC addresses of the interfaces that were there and whose network filter changed.
      type: list
      elements: str
    error:
      description: Why not all of it was done; null when it was.
      type: str
"""

from ..module_utils._domain import lifecycle_interfaces
from ..module_utils._domain.outcome import DOMAIN_OPTIONS
from ..module_utils._host_module import HostCall, Result, each_for_itself, run_host_module
from ..module_utils._libvirt import DEFAULT_URI, connect

ARGUMENT_SPEC = {
    "domains": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {**DOMAIN_OPTIONS, "xml": {"type": "str", "required": True}},
    },
    "timeout": {"type": "float", "default": lifecycle_interfaces.DETACH_TIMEOUT},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
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


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
