#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server_adopt
short_description: Record a domain that somebody else made as a server, or release it
version_added: 0.1.0
description:
  - Part of the playbooks C(adopt.yml) and C(release.yml). It changes the ledger alone.
  - The record keeps the domain's name and UUID, its disks, and its interfaces with their MACs and addresses. Its claim
    on the host is what it has.
  - An adopted server can be looked at, stopped, started, rebooted, paused, suspended and locked. What would touch its
    disks, its definition or its devices is refused, and so is its deletion. It is in no security group.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.project
options:
  state:
    description: V(adopted) records it. V(released) forgets it and gives back its claim, addresses and interfaces.
    type: str
    choices: [adopted, released]
    default: adopted
  name:
    description: Name of the server. Defaults to the domain's name. Required with O(state=released).
    type: str
  host:
    description: Name of the compute host that the domain is on. Required with O(state=adopted).
    type: str
  domain:
    description: What C(domain) of the step V(domain_adopt) is. Required with O(state=adopted).
    type: dict
  flavor:
    description:
      - Name of a flavor with the domain's vCPUs and memory.
      - Left out, a public flavor that fits exactly, else one of the server's own, such as C(adopted.2c4096m20g), which
        is in no catalogue.
    type: str
  network:
    description:
      - Name of the network that its interface is on. Left out, the networks of this project whose bridges its
        interfaces are on. V(none) leaves all of them out.
    type: str
  address:
    description:
      - The IPv4 address of its only interface on a network. Left out, the one that its guest's agent, libvirt's leases
        or the host's ARP table know, if that is one.
      - It must be free, or reserved by the operator of the network.
    type: str
seealso:
  - module: novalite.cloud.host_step
"""

EXAMPLES = r"""
- name: Record the domain that was described
  novalite.cloud.server_adopt:
    host: hv1
    domain: "{{ hostvars.hv1.described.domain }}"
    network: lan
"""

RETURN = r"""
server:
  description: The server, as M(novalite.cloud.server_info) has it.
  type: dict
  returned: success
host:
  description: The compute host that it is on.
  type: str
  returned: success
domain:
  description: The UUID of its domain.
  type: str
  returned: success
mark:
  description: The mark for its domain, as XML.
  type: str
  returned: success
left_out:
  description: Its interfaces that are on no network of this ledger.
  type: list
  elements: str
  returned: success
request_id:
  description: Identifies what was recorded about this request.
  type: str
  returned: when something changed
"""

from ..module_utils._ledger_module import run_module

SPEC_RULES: dict = {"required_if": [("state", "adopted", ["host", "domain"]), ("state", "released", ["name"])]}


def main() -> None:
    run_module(DOCUMENTATION, **SPEC_RULES)


if __name__ == "__main__":
    main()
