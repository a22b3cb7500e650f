#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: dhcp
short_description: Serve fixed addresses to the guests of a hypervisor
version_added: 0.1.0
description:
  - Runs one dnsmasq for each network, which gives known guests, by MAC address, their fixed address and name, and
    resolves their names. On a network with IPv6 it advertises the prefix, too.
  - A server starts with the first host of its network.
  - Its files are below C(/var/lib/novalite/networks/<bridge>). A new guest costs a signal, not a restart.
  - The lease of a guest that was removed is released, so that the address can be given to another guest at once.
requirements:
  - dnsmasq on the hypervisor
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.mark
  - novalite.cloud.changes.state
attributes:
  diff_mode:
    description: Shows each server's files before and after.
options:
  networks:
    description: The networks.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the network, for messages.
        type: str
        required: true
      bridge:
        description: The bridge that guests of the network are connected to. It must exist.
        type: str
        required: true
      listen:
        description: This host's own address on the bridge, from which it answers.
        type: str
        required: true
      cidr:
        description: The IPv4 network.
        type: str
        required: true
      gateway:
        description: Default gateway of the guests. Without one they get no default route.
        type: str
      dns:
        description: Name servers that questions about other names are passed to, the host's own when empty.
        type: list
        elements: str
        default: []
      domain:
        description: Domain of the guests' names.
        type: str
        default: novalocal
      routes:
        description: Routes that guests are told beside that by the gateway.
        type: list
        elements: dict
        suboptions: &route
          destination:
            description: The IPv4 range that it leads to.
            type: str
            required: true
          nexthop:
            description: The address that forwards to it.
            type: str
            required: true
      further_ranges:
        description:
          - Further IPv4 ranges of the network, in each of which this host has an address of its own on the bridge.
          - Guests in one of them are told its own gateway and routes, instead of those of O(networks[].cidr). Questions
            about other names go to the name servers of all ranges, in their order.
        type: list
        elements: dict
        suboptions:
          cidr:
            description: The IPv4 range.
            type: str
            required: true
          listen:
            description: This host's own address in it, from which it answers.
            type: str
            required: true
          gateway:
            description: Default gateway of its guests. Without one they get no default route.
            type: str
          dns:
            description: Name servers that questions about other names are passed to.
            type: list
            elements: str
            default: []
          routes:
            description: Routes that its guests are told beside that by the gateway.
            type: list
            elements: dict
            suboptions: *route
      ntp:
        description: Time servers that guests are told.
        type: list
        elements: str
        default: []
      mtu:
        description: MTU in bytes that guests are told.
        type: int
      namespace:
        description: The network namespace that the server runs in, as O(networks[].bridge)'s module has made it.
        type: str
      cidr_v6:
        description: The IPv6 network, a /64. With it and O(networks[].listen_v6) guests get router advertisements.
        type: str
      listen_v6:
        description: This host's own IPv6 address on the bridge.
        type: str
      ipv6_mode:
        description:
          - How guests get their IPv6 address. With V(eui64) they make it themselves from the advertised prefix and
            their MAC, with V(stable-privacy) they are given O(networks[].hosts[].ipv6) over DHCPv6.
        type: str
        choices: [eui64, stable-privacy]
        default: eui64
      router_v6:
        description: Whether this host is announced as a router to other IPv6 networks.
        type: bool
        default: true
      lease_seconds:
        description: How long a lease is valid, in seconds, at least 120.
        type: int
        default: 86400
      names:
        description:
          - All guests of the network that are on other hosts, whose names are to be resolved, too.
          - Left out, and with O(state=absent), what was given before stays.
        type: list
        elements: dict
        suboptions:
          hostname:
            description: Name without the domain.
            type: str
            required: true
          addresses:
            description: Its IPv4 and IPv6 addresses.
            type: list
            elements: str
            required: true
      hosts:
        description:
          - The guests. An entry that is there already for the same MAC or the same address is replaced, unless it is
            another instance's (O(networks[].hosts[].uuid)).
        type: list
        elements: dict
        default: []
        suboptions:
          mac:
            description: MAC address.
            type: str
            required: true
          ip:
            description: Fixed IPv4 address, in one of the network's ranges.
            type: str
            required: true
          ipv6:
            description: Fixed IPv6 address.
            type: str
          hostname:
            description: Name without the domain.
            type: str
            required: true
          uuid:
            description:
              - UUID of the instance, kept with the entry. With it, an entry of another instance is not taken out, and
                O(state=present) fails where one would have to be replaced, or one for the address and another MAC that
                says no instance.
            type: str
          options:
            description: DHCP options that this guest gets beside those of the network, or instead of them. At most 32.
            type: list
            elements: dict
            default: []
            suboptions:
              name:
                description: dnsmasq's name of the option, as C(dnsmasq --help dhcp) lists them, or its number.
                type: str
                required: true
              value:
                description: The value as dnsmasq takes it, several of them with commas between.
                type: str
                required: true
              version:
                description: Whether it is an option of DHCP or of DHCPv6.
                type: int
                choices: [4, 6]
                default: 4
  state_dir:
    description: novalite's directory on the host; the servers' files go into C(networks) in it.
    type: path
    default: /var/lib/novalite
  state:
    description: V(absent) takes the hosts out by their MAC. With its last host a server ends and its files are removed.
"""

EXAMPLES = r"""
- name: One guest
  novalite.cloud.dhcp:
    networks:
      - name: private
        bridge: br100
        listen: 10.20.0.2
        cidr: 10.20.0.0/24
        gateway: 10.20.0.2
        hosts:
          - mac: fa:16:3e:00:00:05
            ip: 10.20.0.5
            hostname: web-1
"""

RETURN = r"""
diff:
  description: The DHCP servers that changed, C(before) and C(after), by bridge.
  returned: changed
  type: dict
"""

from ..module_utils._host.files import STATE_DIR
from ..module_utils._host.module import HostCall, Result, run_host_module
from ..module_utils._network import dhcp, dnsmasq, ownership

HOST_SPEC = {
    "mac": {"type": "str", "required": True},
    "ip": {"type": "str", "required": True},
    "ipv6": {"type": "str"},
    "hostname": {"type": "str", "required": True},
    "uuid": {"type": "str"},
    "options": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "value": {"type": "str", "required": True},
            "version": {"type": "int", "choices": [4, 6], "default": 4},
        },
    },
}
NAME_SPEC = {
    "hostname": {"type": "str", "required": True},
    "addresses": {"type": "list", "elements": "str", "required": True},
}
ROUTES_SPEC = {
    "type": "list",
    "elements": "dict",
    "options": {"destination": {"type": "str", "required": True}, "nexthop": {"type": "str", "required": True}},
}
RANGE_SPEC = {
    "cidr": {"type": "str", "required": True},
    "listen": {"type": "str", "required": True},
    "gateway": {"type": "str"},
    "dns": {"type": "list", "elements": "str", "default": []},
    "routes": ROUTES_SPEC,
}
NETWORK_SPEC = {
    "name": {"type": "str", "required": True},
    "bridge": {"type": "str", "required": True},
    "listen": {"type": "str", "required": True},
    "cidr": {"type": "str", "required": True},
    "gateway": {"type": "str"},
    "dns": {"type": "list", "elements": "str", "default": []},
    "domain": {"type": "str", "default": "novalocal"},
    "ntp": {"type": "list", "elements": "str", "default": []},
    "routes": ROUTES_SPEC,
    "further_ranges": {"type": "list", "elements": "dict", "options": RANGE_SPEC},
    "mtu": {"type": "int"},
    "namespace": {"type": "str"},
    "cidr_v6": {"type": "str"},
    "listen_v6": {"type": "str"},
    "ipv6_mode": {"type": "str", "choices": ["eui64", "stable-privacy"], "default": "eui64"},
    "router_v6": {"type": "bool", "default": True},
    "lease_seconds": {"type": "int", "default": 86400},
    "names": {"type": "list", "elements": "dict", "options": NAME_SPEC},
    "hosts": {"type": "list", "elements": "dict", "default": [], "options": HOST_SPEC},
}
ARGUMENT_SPEC = {
    "networks": {"type": "list", "elements": "dict", "default": [], "options": NETWORK_SPEC},
    "ledger": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def run(call: HostCall) -> Result:
    params = call.params
    networks = dnsmasq.parse(params["networks"])
    mark = ownership.of_ledger(params["ledger"])
    return dhcp.ensure(networks, params["state"], call.check_mode, params["state_dir"], mark)


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
