#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fixed_ip
short_description: Give every network interface of instances its fixed IP addresses
version_added: 0.1.0
description:
  - Takes addresses out of the networks' pools for all interfaces of all O(instances), or for none.
  - An interface that has an address keeps it. One that had one and gave it back, after a build that failed, gets the
    same one again, if it is still free.
  - Otherwise the address that was free for longest is taken first. One that was released within the network's
    quarantine is taken only when there is no other, with a warning.
  - On a network with DHCP, or without a gateway, each compute host gets an address of its own.
  - IPv6 addresses are not taken from a pool. They follow from the MAC (EUI-64), as the guest itself makes them, or from
    a secret in the ledger (RFC 7217), as the network says.
extends_documentation_fragment:
  - novalite.cloud.ledger
options:
  instances:
    description:
      - The instances, as returned by M(novalite.cloud.scheduler).
      - An interface with V(ip) or V(requested_ip) gets that address or fails the task.
    type: list
    elements: dict
    required: true
seealso:
  - module: novalite.cloud.network
  - module: novalite.cloud.scheduler
"""

EXAMPLES = r"""
- name: Take addresses
  novalite.cloud.fixed_ip:
    instances: "{{ scheduled.instances }}"
  register: addressed
"""

RETURN = r"""
instances:
  description:
    - The instances as they were given, in the same order.
    - Each interface has V(ip), V(ipv6) and V(dhcp_server) filled in, the last being the compute host's own address.
  returned: success
  type: list
  elements: dict
msg:
  description: The result in one line.
  returned: success
  type: str
  sample: 8 addresses taken
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
