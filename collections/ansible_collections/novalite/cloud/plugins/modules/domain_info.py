#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: domain_info
short_description: State of this host's libvirt domains, and where they differ from what they should be
version_added: 0.1.0
description:
  - Looks up a list of domains by UUID and reports the state of each.
  - With O(domains[].xml), names each field in which the persistent and the live definition differ from it. Definitions
    are compared field by field, never as text, so what libvirt adds to a definition is no difference.
author:
  - novalite contributors (@novalite)
extends_documentation_fragment:
  - novalite.cloud.libvirt
  - novalite.cloud.looks
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
        description: What the domain should be. Without it only the state is reported.
        type: str
  free:
    description: Whether to fail where another domain of this host has one of the names, or one of these has another.
    type: bool
    default: false
  addresses:
    description:
      - Whether to ask the agents in running guests which addresses they have. They need the image's property
        C(hw_qemu_guest_agent).
    type: bool
    default: false
seealso:
  - module: novalite.cloud.domain
"""

EXAMPLES = r"""
- name: Look at a domain
  novalite.cloud.domain_info:
    domains:
      - uuid: 6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11
        name: instance-00000007
  register: found

- name: Look at the addresses that a guest has by its own account
  novalite.cloud.domain_info:
    domains:
      - uuid: 6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11
        name: instance-00000007
    addresses: true
  register: found
"""

RETURN = r"""
domains:
  description: One entry for each of O(domains), in the same order.
  type: list
  elements: dict
  returned: success
  contains:
    uuid:
      description: UUID of the domain.
      type: str
    name:
      description: Name of the domain.
      type: str
    state:
      description:
        - Its state, V(missing) when there is no such domain, V(saved) when it is off and its memory is on the disk.
      type: str
      sample: running
    differences:
      description:
        - Where the domain differs from O(domains[].xml), as field, desired and actual value.
        - C(where) is V(persistent) or V(live); C(effect) is V(live now), V(at next boot) or V(needs a rebuild).
      type: list
      elements: dict
      sample:
        - {field: memory_kib, desired: 98304, actual: 65536, where: persistent, effect: at next boot}
    addresses:
      description:
        - The guest's addresses by the MAC of the interface, as its agent has them; empty where none answers.
        - This is the guest's own word, which can be anything. Nothing is decided by it.
      returned: with O(addresses)
      type: dict
      sample: {"fa:16:3e:01:02:03": [10.20.0.5, "fd20::f816:3eff:fe01:203"]}
"""

from ..module_utils._domain import guest_addresses, lifecycle, lifecycle_power
from ..module_utils._domain.outcome import DOMAIN_OPTIONS
from ..module_utils._host.libvirt_connection import DEFAULT_URI, connect
from ..module_utils._host.module import HostCall, Result, run_host_module

ARGUMENT_SPEC = {
    "domains": {"type": "list", "elements": "dict", "required": True, "options": DOMAIN_OPTIONS},
    "free": {"type": "bool", "default": False},
    "addresses": {"type": "bool", "default": False},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    connection = connect(call.params["uri"])
    domains = call.params["domains"]
    outcomes = lifecycle.inspect(connection, domains)
    for spec, outcome in zip(domains, outcomes) if call.params["free"] else ():
        lifecycle.refuse_conflict(connection, spec, outcome)
    rows = [outcome.as_dict() for outcome in outcomes]
    for row in rows:
        del row["action"]
        if row["state"] == "shutoff":
            row["state"] = lifecycle_power.state_now(connection, row["uuid"])
    if call.params["addresses"]:
        by_uuid = guest_addresses.look(connection, [row["uuid"] for row in rows])
        rows = [{**row, "addresses": by_uuid[row["uuid"]]} for row in rows]
    return {"changed": False, "domains": rows}


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
