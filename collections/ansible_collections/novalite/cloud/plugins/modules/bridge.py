#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: bridge
short_description: Make the bridges that guests of a network are connected to
version_added: 0.1.0
description:
  - Makes Linux bridges, puts an interface (or a VLAN on top of it) into them and gives the host its address there.
  - Turns on C(net.ipv4.ip_forward).
  - Refuses an interface that carries an address, a route or the ssh session of Ansible itself, rather than cutting the
    host off.
author:
  - novalite contributors (@novalite)
requirements:
  - iproute2 on the hypervisor
attributes:
  check_mode:
    description: Reports what would change and changes nothing. The diff then lists the commands.
    support: full
  diff_mode:
    description: Shows each changed bridge before and after.
    support: full
options:
  bridges:
    description: The bridges.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the bridge, up to 15 characters.
        type: str
        required: true
      interface:
        description: The interface that connects the bridge to other hosts. Without one the bridge is this host's alone.
        type: str
      vlan:
        description: With a number, the port is the VLAN C(vlan<number>) on top of O(bridges[].interface).
        type: int
      address:
        description: The host's own address in this network with its prefix length, for example C(10.20.0.2/24).
        type: str
      mtu:
        description: MTU of the bridge and its port in bytes. Without it theirs stay as they are.
        type: int
  state:
    description: V(absent) removes the bridges that no guest is connected to, and leaves the others.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: A bridge for VLAN 100
  novalite.cloud.bridge:
    bridges:
      - name: br100
        interface: eth1
        vlan: 100
        address: 10.20.0.2/24
"""

RETURN = r"""
kept:
  description: With O(state=absent), the bridges that still have other ports, and those ports.
  returned: always
  type: dict
  sample: {br100: [vnet3]}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._errors import NovaliteError
from ..module_utils._network import bridge

ARGUMENT_SPEC = {
    "bridges": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "interface": {"type": "str"},
            "vlan": {"type": "int"},
            "address": {"type": "str"},
            "mtu": {"type": "int"},
        },
    },
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        bridges = bridge.parse(module.params["bridges"])
        result = bridge.ensure(bridges, module.params["state"], check_mode=module.check_mode)
    except NovaliteError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
