#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: floating_ip
short_description: Allocate floating IPs to a project and associate them with its servers
version_added: 0.1.0
description:
  - A floating IP is an address that the world reaches, and that a project can lead from one of its servers to another.
    Addresses come from the pools that M(novalite.cloud.floating_pool) makes, the one that was free for longest first.
  - Changes the ledger. On the RV(hosts) that it returns, M(novalite.cloud.router) has to be run again.
  - When a server is deleted its association ends, and the project keeps the address. The quota C(floating_ips) bounds
    how many a project has.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.project
  - novalite.cloud.ledger.state
options:
  floating_ips:
    description: The floating IPs.
    type: list
    elements: dict
    required: true
    suboptions:
      address:
        description:
          - A certain address. It is allocated if it is free, and refused if another project has it.
          - Without it, one that leads to O(floating_ips[].server) already is kept. If there is none, one that the
            project has and that leads nowhere is taken, and only then a new one is allocated.
          - Each item is given another address.
        type: str
      pool:
        description: Name of the pool. Needed for a new address when there are several pools.
        type: str
      server:
        description:
          - Name of the project's server that the address shall lead to, wherever it led before.
          - An empty text takes the association away. Left out, it stays as it is.
          - With O(state=absent) and no O(floating_ips[].address), all addresses that lead to this server are released.
        type: str
      fixed_ip:
        description:
          - The one of the server's fixed IPs that the address shall lead to.
          - Without it, the first one on a network for which the hypervisors route.
        type: str
  state:
    description: Whether the project has the addresses. V(absent) ends their associations, too.
seealso:
  - module: novalite.cloud.floating_pool
  - module: novalite.cloud.router
"""

EXAMPLES = r"""
- name: Let the world reach web-1
  novalite.cloud.floating_ip:
    floating_ips:
      - server: web-1
  register: reached

- name: Lead its address to web-2
  novalite.cloud.floating_ip:
    floating_ips:
      - address: "{{ reached.floating_ips[0].address }}"
        server: web-2

- name: Lead it nowhere, and keep it
  novalite.cloud.floating_ip:
    floating_ips:
      - address: "{{ reached.floating_ips[0].address }}"
        server: ""

- name: Give it back
  novalite.cloud.floating_ip:
    floating_ips:
      - address: "{{ reached.floating_ips[0].address }}"
    state: absent
"""

RETURN = r"""
floating_ips:
  description: The floating IPs, one for each item, in the same order. Empty with O(state=absent).
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: UUID of the floating IP.
      type: str
    address:
      description: The address.
      type: str
    pool:
      description: Name of its pool.
      type: str
    interface:
      description: The hypervisors' interface that it is reached over.
      type: str
    server:
      description: Name of the server that it leads to, or null.
      type: str
    server_id:
      description: UUID of that server, or null.
      type: str
    fixed_ip:
      description: The fixed IP that it leads to, or null.
      type: str
    network:
      description: Name of the network of that fixed IP, or null.
      type: str
    host:
      description: Name of the server's compute host, or null.
      type: str
hosts:
  description: Names of the compute hosts where an association came or went.
  returned: success
  type: list
  elements: str
holders:
  description: Names of the compute hosts that RV(floating_ips) lead to now.
  returned: success
  type: list
  elements: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
