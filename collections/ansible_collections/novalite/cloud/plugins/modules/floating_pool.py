#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: floating_pool
short_description: Manage pools of floating IPs
version_added: 0.1.0
description:
  - Makes, changes and removes pools in the ledger, out of which every project allocates floating IPs with
    M(novalite.cloud.floating_ip).
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.state
options:
  floating_pools:
    description:
      - The pools, by name.
      - What is left out of an existing pool stays as it is.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the pool.
        type: str
        required: true
      cidr:
        description: The IPv4 range of the network that the addresses are of, C(/16) at most. Required for a new pool.
        type: str
      addresses:
        description:
          - The addresses of the pool, each an address, a range C(a-b) or a C(cidr) within O(floating_pools[].cidr).
          - Without it, those of all hosts in the range.
          - No two pools have the same address, nor do a pool and a network that is not isolated, unless the network has
            it reserved. An address that a project has cannot be taken out.
        type: list
        elements: str
      interface:
        description:
          - The hypervisors' interface into that network. Required for a new pool.
          - It cannot change while one of the addresses is associated.
        type: str
seealso:
  - module: novalite.cloud.floating_ip
  - module: novalite.cloud.network
"""

EXAMPLES = r"""
- name: Have a pool of 100 addresses
  novalite.cloud.floating_pool:
    floating_pools:
      - name: public
        cidr: 203.0.113.0/24
        addresses: [203.0.113.100-203.0.113.199]
        interface: eth0
"""

RETURN = r"""
floating_pools:
  description: The pools that were named, as they are now. Empty with O(state=absent).
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the pool.
      type: str
    cidr:
      description: The range of the network that the addresses are of.
      type: str
    addresses:
      description: The addresses, as single ones and ranges.
      type: list
      elements: str
    interface:
      description: The hypervisors' interface into that network.
      type: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
