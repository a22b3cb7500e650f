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
options:
  networks:
    description:
      - The networks, by name.
      - What is left out of an existing network stays as it is.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the network.
        type: str
        required: true
      cidr:
        description:
          - Range of IPv4 addresses, between C(/16) and C(/30). Required for a new network.
          - No two networks may overlap, unless one of them is isolated.
          - While instances use the network, its ranges, manager, bridge, VLAN and VNI cannot change.
        type: str
      manager:
        description:
          - How the network reaches the guests and connects the hypervisors. Nova's network managers, and V(vxlan).
          - V(flat) has no DHCP. Its guests are given a static configuration at launch.
          - V(flat_dhcp) is a bridge with DHCP.
          - V(vlan) is a bridge on a VLAN of O(networks[].bridge_interface).
          - V(vxlan) is a bridge on a tunnel between the hypervisors, which needs no switch that knows of it.
          - A new network that does not say is V(vlan) or V(vxlan) if it has O(networks[].vlan) or O(networks[].vni),
            V(flat) if it has no DHCP, and V(flat_dhcp) otherwise.
        type: str
        choices: [flat, flat_dhcp, vlan, vxlan]
      gateway:
        description:
          - Default gateway of the guests, an address in the range. An empty text takes it away.
          - Without it, each hypervisor's own address in the network is its guests' gateway.
        type: str
      cidr_v6:
        description: Range of IPv6 addresses, a C(/64). An empty text takes it away.
        type: str
      gateway_v6:
        description: IPv6 gateway, in the range or link-local. An empty text takes it away.
        type: str
      bridge:
        description:
          - Name of the bridge on the hypervisors.
          - C(br<vlan>) or C(br<vni>) for a new network that does not say, or the first free one from V(br100) on.
        type: str
      bridge_interface:
        description:
          - Interface of the hypervisors that connects their bridges. An empty text takes it away.
          - Without it a flat network stays within each hypervisor, and a VLAN cannot be. A VXLAN has none.
        type: str
      vlan:
        description:
          - VLAN on O(networks[].bridge_interface) that carries the network, V(1) to V(4094).
          - The first free one from V(100) on for a V(vlan) network that does not say.
        type: int
      vni:
        description:
          - VXLAN network identifier, V(1) to V(16777215).
          - The first free one from V(10000) on for a V(vxlan) network that does not say.
        type: int
      isolated:
        description:
          - Whether the network has a network namespace of its own on each hypervisor, so that its range may overlap
            with those of others.
          - V(true) for a new V(vxlan) network that does not say, V(false) for the others.
        type: bool
      snat:
        description:
          - Whether the hypervisors let the guests out under their own address. They must be the guests' gateway.
          - V(true) for a new network that does not say, unless it is V(flat) or has a gateway of its own.
        type: bool
      dhcp:
        description:
          - Whether the hypervisors answer DHCP. The managers V(flat) and V(flat_dhcp) decide it.
          - V(true) for a new V(vlan) or V(vxlan) network that does not say.
        type: bool
      dns:
        description: Addresses of up to eight DNS servers for the guests. With none, the hypervisor's own address.
        type: list
        elements: str
      ntp:
        description: Addresses of up to eight NTP servers for the guests.
        type: list
        elements: str
      ipv6_mode:
        description:
          - How the guests' IPv6 addresses are made. V(eui64) out of the MAC, V(stable-privacy) by RFC 7217, which tells
            nobody the MAC.
          - V(eui64) for a new network that does not say.
        type: str
        choices: [eui64, stable-privacy]
      port_security_enabled:
        description:
          - Whether security groups, and the check of what guests send under which address, apply to interfaces that are
            yet to be made on the network. What interfaces have already, ports say.
          - V(true) for a new network that does not say.
        type: bool
      allow_project_net_traffic:
        description:
          - Whether the guests of the network reach each other whatever their security groups say, as Nova's
            C(allow_same_net_traffic) has it. What comes from elsewhere is judged by their groups.
          - Guests that run are told by C(firewall.yml).
          - V(false) for a new network that does not say, as in Neutron, and in EC2.
        type: bool
      domain:
        description: DNS domain of the guests. V(novalocal) for a new network that does not say.
        type: str
      mtu:
        description: MTU of bridge and guests, in bytes. V(1450) for a new V(vxlan) network that does not say.
        type: int
      reserved:
        description:
          - Addresses that are never handed out, each an address, a range C(a-b) or a C(cidr) in the network's range.
          - Replaces the list that the network has. The network, broadcast and gateway addresses are reserved anyway.
        type: list
        elements: str
      lease_seconds:
        description: DHCP lease time. V(86400) for a new network that does not say.
        type: int
      quarantine_seconds:
        description: How long a released address is kept back if there are others. V(600) for a new network.
        type: int
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
  description: The networks that were named, as they are now. Empty with O(state=absent).
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
    name:
      description: Name of the network.
      type: str
    cidr:
      description: Range of IPv4 addresses.
      type: str
    gateway:
      description: Default gateway, or null.
      type: str
    cidr_v6:
      description: Range of IPv6 addresses, or null.
      type: str
    gateway_v6:
      description: IPv6 gateway, or null.
      type: str
    bridge:
      description: Name of the bridge.
      type: str
    bridge_interface:
      description: Interface that connects the bridges, or null.
      type: str
    manager:
      description: Manager of the network.
      type: str
    vlan:
      description: VLAN, or null.
      type: int
    vni:
      description: VXLAN network identifier, or null.
      type: int
    isolated:
      description: Whether it has a network namespace of its own on each hypervisor.
      type: bool
    snat:
      description: Whether the hypervisors let the guests out under their own address.
      type: bool
    ntp:
      description: Addresses of NTP servers.
      type: list
      elements: str
    ipv6_mode:
      description: How the guests' IPv6 addresses are made.
      type: str
    port_security_enabled:
      description: Whether port security is on for interfaces that are yet to be made.
      type: bool
    allow_project_net_traffic:
      description: Whether its guests reach each other whatever their security groups say.
      type: bool
    dhcp:
      description: Whether the hypervisors answer DHCP.
      type: bool
    dns:
      description: Addresses of DNS servers.
      type: list
      elements: str
    domain:
      description: DNS domain.
      type: str
    mtu:
      description: MTU in bytes, or null.
      type: int
    reserved:
      description: Addresses that the user reserved, as single ones and ranges.
      type: list
      elements: str
    lease_seconds:
      description: DHCP lease time.
      type: int
    quarantine_seconds:
      description: How long a released address is kept back.
      type: int
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
