#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: port_plan
short_description: Works out what compute hosts must be told of ports that changed
version_added: 0.1.0
description:
  - Turns what the ledger says of ports, their security, address pairs and DHCP options, into the arguments of the host
    modules that bring it to the servers which have these ports.
  - Reads the ledger, changes nothing.
extends_documentation_fragment:
  - novalite.cloud.state_dir
  - novalite.cloud.looks
  - novalite.cloud.ledger
options:
  ports:
    description: UUIDs of the ports. One that no server has is left out.
    type: list
    elements: str
    required: true
seealso:
  - module: novalite.cloud.firewall
  - module: novalite.cloud.host_step
"""

EXAMPLES = r"""
- name: Work out what the hosts must be told
  novalite.cloud.port_plan:
    ports: [0d4c5b7e-2f8a-4a7c-9b7b-6b0d2f1f3c55]
  register: novalite_ports
"""

RETURN = r"""
firewall:
  description: For each compute host that must know, the arguments of M(novalite.cloud.firewall).
  type: dict
  returned: always
  sample: {"hv1": {"instances": [], "security_groups": [], "zones": [], "bridges": [], "serving": []}}
hosts:
  description: For each compute host of the servers, their C(filters), C(dhcp_networks) and C(domains).
  type: dict
  returned: always
  sample: {"hv1": {"filters": [], "dhcp_networks": [], "domains": []}}
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
