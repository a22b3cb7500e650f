#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server_plan
short_description: Works out what each compute host must be given for a set of instances
version_added: 0.1.0
description:
  - Turns instances that have a host and addresses into the arguments of every host module, one plan for each host.
  - Reads the ledger, changes nothing.
extends_documentation_fragment:
  - novalite.cloud.state_dir
  - novalite.cloud.looks
  - novalite.cloud.ledger
options:
  instances:
    description: Instances to build, as M(novalite.cloud.fixed_ip) returns them.
    type: list
    elements: dict
    default: []
  existing:
    description: Instances that run already and are to be compared with what they should be.
    type: list
    elements: dict
    default: []
  leaving:
    description: Instances to take away from their hosts.
    type: list
    elements: dict
    default: []
  compute_hosts:
    description: Facts as M(novalite.cloud.compute_host) returns them; they go before those in the ledger.
    type: list
    elements: dict
    default: []
  network_hosts:
    description: Compute hosts to work out for what their networks need, whatever the other options say.
    type: list
    elements: str
    default: []
seealso:
  - module: novalite.cloud.scheduler
  - module: novalite.cloud.fixed_ip
"""

EXAMPLES = r"""
- name: Work out what to build where
  novalite.cloud.server_plan:
    instances: "{{ novalite_addressed.instances }}"
  register: novalite_plan
"""

RETURN = r"""
hosts:
  description: >-
    For each compute host the plans C(build), C(keep) and C(remove), as far as there are instances of that kind;
    C(peers), the bridges and DHCP servers of a host that has none of them, but is on the same networks; and
    C(network), the bridges and routers of O(network_hosts) by the ledger.
  type: dict
  returned: always
  sample: {"hv1": {"build": {"names": ["web"], "bridges": [], "disks": [], "domains": []}}}
targets:
  description: >-
    The hosts of each play: C(build), C(keep), C(remove), C(vacate), C(peers), C(groups) and C(network) name those that
    have that plan, and C(controller) is V(localhost) if there is something to build.
  type: dict
  returned: always
  sample: {"build": ["hv1"], "peers": ["hv2"], "controller": ["localhost"]}
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
