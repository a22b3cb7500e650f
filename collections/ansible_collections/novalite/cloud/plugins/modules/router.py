#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: router
short_description: Let the guests of a hypervisor reach out, and be reached under floating IPs
version_added: 0.1.0
description:
  - Translates what guests of a network send to other networks to the host's address (SNAT), and floating IPs to the
    fixed IPs of guests and back.
  - For an isolated network this happens in its namespace, to which a pair of veth devices with addresses of
    C(169.254.192.0/19) leads.
  - A floating IP is an address of the host, or, for an isolated network, one that the host answers ARP for. The
    neighbours are told with a gratuitous ARP. What is removed is cut, also the connections that are open.
  - Writes the chains C(nova-prerouting), C(nova-output), C(nova-postrouting), C(nova-float-snat) and C(nova-snat) of
    the table nat, C(nova-forward) and C(nova-input) of the table filter, and the jumps to them. Other rules stay as
    they are.
  - Turns on C(net.ipv4.ip_forward). What may reach a guest, its security groups decide, as before.
requirements:
  - iproute2, iptables and conntrack on the hypervisor
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.libvirt
  - novalite.cloud.mark
attributes:
  check_mode:
    description: Reports what would change and changes nothing. The diff then lists the commands.
  diff_mode:
    description: Shows the chains that change, before and after, and the commands.
options:
  routers:
    description: The networks. What is given for one is all of it, so that a floating IP that is missing is removed.
    type: list
    elements: dict
    default: []
    suboptions:
      network:
        description: Name of the network, for messages.
        type: str
        required: true
      bridge:
        description: The network's bridge.
        type: str
        required: true
      cidr:
        description: The IPv4 network.
        type: str
        required: true
      namespace:
        description: The network namespace of an isolated network, as M(novalite.cloud.bridge) has made it.
        type: str
      address:
        description: The host's own address in the network.
        type: str
      further_ranges:
        description:
          - Further IPv4 ranges of the network. What goes from one of its ranges to another is not translated.
        type: list
        elements: dict
        suboptions:
          cidr:
            description: The IPv4 range.
            type: str
            required: true
          address:
            description: The host's own address in it.
            type: str
      snat:
        description: Whether guests without a floating IP reach other networks, under the host's address.
        type: bool
        default: false
      floating:
        description: The floating IPs of guests on this host.
        type: list
        elements: dict
        default: []
        suboptions:
          fixed:
            description: The guest's fixed IP, in one of the network's ranges.
            type: str
            required: true
          floating:
            description: The address that it is reached under.
            type: str
            required: true
          interface:
            description: The host's interface into the network that the address is of.
            type: str
            required: true
  exclusive:
    description: With O(state=present), whether networks that are not given lose their translation.
    type: bool
    default: false
  state:
    description:
      - V(absent) removes all of this for the given networks. One whose bridge has users keeps it (RV(kept)), guests of
        this host that run or are off, their DHCP entries, or a run that is building there.
      - V(withdrawn) removes the floating IPs that are given, and leaves the rest as it is. So does V(absent) where a
        network keeps its way out.
    type: str
    choices: [present, withdrawn, absent]
    default: present
"""

EXAMPLES = r"""
- name: A network whose guests reach out, one of them with an address of its own
  novalite.cloud.router:
    routers:
      - network: private
        bridge: br100
        cidr: 10.20.0.0/24
        address: 10.20.0.2
        snat: true
        floating:
          - {fixed: 10.20.0.5, floating: 203.0.113.9, interface: eth0}
"""

RETURN = r"""
diff:
  description: What differed, C(before) and C(after), addresses, kernel settings and rules of each table of iptables.
  returned: changed
  type: dict
kept:
  description: With O(state=absent), the bridges that are still in use, and what uses them.
  returned: always
  type: dict
  sample: {br100: [tap0a1b2c3d-4e]}
"""

from ..module_utils._host.libvirt_connection import DEFAULT_URI
from ..module_utils._host.module import HostCall, Result, run_host_module
from ..module_utils._network import ownership, router, routing

FLOATING_SPEC = {
    "fixed": {"type": "str", "required": True},
    "floating": {"type": "str", "required": True},
    "interface": {"type": "str", "required": True},
}
RANGE_SPEC = {"cidr": {"type": "str", "required": True}, "address": {"type": "str"}}
ROUTER_SPEC = {
    "network": {"type": "str", "required": True},
    "bridge": {"type": "str", "required": True},
    "cidr": {"type": "str", "required": True},
    "namespace": {"type": "str"},
    "address": {"type": "str"},
    "further_ranges": {"type": "list", "elements": "dict", "options": RANGE_SPEC},
    "snat": {"type": "bool", "default": False},
    "floating": {"type": "list", "elements": "dict", "default": [], "options": FLOATING_SPEC},
}
ARGUMENT_SPEC = {
    "routers": {"type": "list", "elements": "dict", "default": [], "options": ROUTER_SPEC},
    "exclusive": {"type": "bool", "default": False},
    "ledger": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "withdrawn", "absent"], "default": "present"},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    params = call.params
    routers = router.parse(params["routers"])
    mark = ownership.of_ledger(params["ledger"])
    return routing.ensure(routers, params["state"], call.check_mode, params["exclusive"], mark, params["uri"])


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
