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
  - Makes Linux bridges, puts an interface, a VLAN on top of it or a VXLAN device into them and gives the host its
    addresses there.
  - For an isolated network the host's addresses are in a network namespace that is joined to the bridge, so that two
    such networks may use the same ones. In it the device has the bridge's name.
  - Turns on forwarding where the host has addresses, and makes sure that bridged packets pass the packet filter.
  - Refuses an interface that carries an address, a route or the ssh session of Ansible itself, rather than cutting the
    host off, unless O(move_address) is set.
  - What it makes carries a mark, the alias of the device. A bridge without one is used as it is; it gets an address,
    and O(bridges[].interface) where that is free, and loses both again with O(state=absent).
  - Warns of packet filter rules of other programs, Docker for example, that would drop what goes over the bridges.
requirements:
  - iproute2 on the hypervisor
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.libvirt
  - novalite.cloud.mark
  - novalite.cloud.changes.state
attributes:
  check_mode:
    description: Reports what would change and changes nothing. The diff then lists the commands.
  diff_mode:
    description: Shows each changed bridge before and after.
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
      vxlan:
        description: With it, the port is the VXLAN device C(vxlan<vni>). It excludes O(bridges[].interface).
        type: dict
        suboptions:
          vni:
            description: VXLAN network identifier.
            type: int
            required: true
          local:
            description: This host's address that the tunnels end at. Needed with O(state=present).
            type: str
          remotes:
            description: The tunnel addresses of the other hosts of this network. It floods to exactly these.
            type: list
            elements: str
            default: []
      addresses:
        description:
          - The host's own IPv4 and IPv6 addresses in this network with their prefix length.
          - A link-local one (C(fe80::...)) replaces the one that the kernel would make.
        type: list
        elements: str
        default: []
      ranges:
        description:
          - All IPv4 ranges of a network that has several, also those in which this host has no address.
          - An address that this module gave the bridge in a range which the network no longer has is taken away.
        type: list
        elements: str
      shared_routes:
        description:
          - Destinations of routes of this host of which networks may have a part. Otherwise an address is refused with
            which the host would lose a gateway, a route, its controller or what else it reaches in another way.
        type: list
        elements: str
      namespace:
        description: >-
          A network namespace, C(nova-) and the name of the bridge, that has the addresses and is joined to the bridge.
          It goes with the bridge.
        type: str
      mtu:
        description: MTU of the bridge and its port in bytes. Without it theirs stay as they are.
        type: int
      up:
        description:
          - With V(false), the bridge is down and carries nothing, not between the guests of one host either.
          - That is for a bridge with a O(bridges[].namespace) and without an O(bridges[].interface).
        type: bool
        default: true
      taps:
        description:
          - Devices of guests that belong to the bridge. One that is on no bridge, or on another one, is plugged in. One
            that is not there is left out.
        type: list
        elements: str
        default: []
  move_address:
    description:
      - With V(true), the addresses and routes of an interface move to the bridge in one step, and back again when the
        bridge is removed, also those that the ssh session of Ansible itself comes by. What fails is taken back.
      - That holds until the host boots again; make its network configuration agree.
    type: bool
    default: false
  state:
    description: >-
      V(absent) removes the bridges that no guest is connected to, running or off, and on which no run is building at
      the moment, and leaves the others. From a bridge that was there before it takes back what the module added.
"""

EXAMPLES = r"""
- name: A bridge for VLAN 100
  novalite.cloud.bridge:
    bridges:
      - name: br100
        interface: eth1
        vlan: 100
        addresses: [10.20.0.2/24]

- name: A project's own network across two hosts
  novalite.cloud.bridge:
    bridges:
      - name: br10000
        vxlan: {vni: 10000, local: 192.0.2.11, remotes: [192.0.2.12]}
        namespace: nova-br10000
        addresses: [10.0.0.2/24]
        mtu: 1450
"""

RETURN = r"""
kept:
  description: With O(state=absent), the bridges that are still in use, and the ports or whatever else uses them.
  returned: always
  type: dict
  sample: {br100: [vnet3]}
"""

from ..module_utils._host.libvirt_connection import DEFAULT_URI
from ..module_utils._host.module import HostCall, Result, run_host_module
from ..module_utils._network import bridge, bridging, ownership

ARGUMENT_SPEC = {
    "bridges": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "interface": {"type": "str"},
            "vlan": {"type": "int"},
            "vxlan": {
                "type": "dict",
                "options": {
                    "vni": {"type": "int", "required": True},
                    "local": {"type": "str"},
                    "remotes": {"type": "list", "elements": "str", "default": []},
                },
            },
            "addresses": {"type": "list", "elements": "str", "default": []},
            "ranges": {"type": "list", "elements": "str"},
            "shared_routes": {"type": "list", "elements": "str"},
            "namespace": {"type": "str"},
            "mtu": {"type": "int"},
            "up": {"type": "bool", "default": True},
            "taps": {"type": "list", "elements": "str", "default": []},
        },
    },
    "move_address": {"type": "bool", "default": False},
    "ledger": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    params = call.params
    bridges = bridge.parse(params["bridges"], params["state"], ownership.of_ledger(params["ledger"]))
    return bridging.ensure(bridges, params["state"], call.check_mode, params["move_address"], params["uri"])


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
