#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: network
short_description: Manage networks and their pools of fixed IPs
version_added: 0.1.0
description:
  - Makes, changes and removes networks in the ledger. Each has a bridge on the hypervisors, and a pool of addresses,
    out of which M(novalite.cloud.fixed_ip) hands out fixed IPs.
  - Hypervisors are touched when an instance is launched, by M(novalite.cloud.bridge) and M(novalite.cloud.dhcp).
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.state
  - novalite.cloud.nouns.network
options:
  networks:
    description:
      - The networks, by name.
      - What is left out of an existing network stays as it is.
    type: list
    elements: dict
    required: true
  project:
    description:
      - Name of the project that the networks belong to, and that alone sees them.
      - Without it they are public. Every project sees them.
    type: str
seealso:
  - module: novalite.cloud.bridge
  - module: novalite.cloud.dhcp
  - module: novalite.cloud.fixed_ip
"""

EXAMPLES = r"""
- name: Have a public network on a VLAN
  novalite.cloud.network:
    networks:
      - name: private
        cidr: 10.20.0.0/24
        vlan: 120
        bridge_interface: eth1
        dns: [9.9.9.9]
        reserved: [10.20.0.2-10.20.0.9]

- name: Have two projects' networks with the same range, on tunnels between the hypervisors
  novalite.cloud.network:
    networks:
      - name: inside
        cidr: 10.0.0.0/24
        manager: vxlan
    project: "{{ item }}"
  loop: [red, blue]

- name: Have one that the project ci alone sees, within each hypervisor
  novalite.cloud.network:
    networks:
      - name: build
        cidr: 10.30.0.0/20
    project: ci
"""

RETURN = r"""
networks:
  description:
    - The networks that were named, as they are now. Empty with O(state=absent).
    - Each has what O(networks) can say of one, under the same names, and null where it has none.
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Number of the network.
      type: int
    uuid:
      description: UUID of the network.
      type: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
