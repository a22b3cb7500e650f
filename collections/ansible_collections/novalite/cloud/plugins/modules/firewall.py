#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: firewall
short_description: Enforce security groups for the instances of a hypervisor
version_added: 0.1.0
description:
  - Builds Nova's iptables chains (C(nova-local), C(nova-inst-<id>), C(nova-sg-<id>)) for instances, IPv4 and IPv6.
    An instance's path ends in DROP; what its security groups do not allow does not reach it.
  - Unlike in Nova, a rule that was removed also cuts the connections that it had allowed.
  - All changes of one family are one C(iptables-restore --noflush) transaction. Rules that are not novalite's are
    never touched.
  - Where the role P(novalite.cloud.compute_node#role) has prepared the host, what is loaded at its next boot is brought
    up to date with each change.
  - Where C(net.bridge.bridge-nf-call-iptables) and C(net.bridge.bridge-nf-call-ip6tables) are off, turns on the
    switches of the O(bridges) themselves (without O(bridges), the host's), and fails when it cannot, because bridged
    packets would bypass the rules. What bridges of others carry is not filtered by that.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.libvirt
  - novalite.cloud.changes.state
requirements:
  - iptables (with C(iptables-save) and C(iptables-restore)) on the hypervisor
  - ebtables of the nf_tables kind, for O(instances[].ports)
  - the kernel's C(xt_physdev), for O(instances[].devices), and C(xt_bpf), without which neighbour advertisements are
    not compared, and a warning says so
  - ipset, for groups as source; without it, or where the kernel lacks it, there is one rule for each member
  - conntrack, to cut the connections of removed instances
attributes:
  diff_mode:
    description: Shows the rules of each changed chain.
options:
  instances:
    description: The instances to protect, or with O(state=absent) to forget.
    type: list
    elements: dict
    default: []
    suboptions:
      id:
        description: Number of the instance, part of its chains' names.
        type: int
        required: true
      uuid:
        description:
          - Its UUID, the mark of its chains. With it, chains of its number that are another instance's are refused by
            O(state=present), and left alone by O(state=absent).
        type: str
      addresses:
        description:
          - Its IPv4 and IPv6 addresses on networks whose addresses nobody else uses, the link-local ones too.
        type: list
        elements: str
        default: []
      scoped:
        description:
          - Its addresses on isolated networks, which other networks may use as well. They are told apart by their
            bridge, so that packets of one network never meet the rules, or the tracked connections, of another.
        type: list
        elements: dict
        default: []
        suboptions:
          bridge: {description: Bridge of the network., type: str, required: true}
          addresses: {description: Addresses of the instance on it., type: list, elements: str, default: []}
      allowed_pairs:
        description:
          - Further addresses that it may use, and other instances too. What reaches such an address is what the
            security groups that all of them have in common allow.
          - Of a range each address is meant; those of more than 256 addresses are refused.
        type: list
        elements: dict
        default: []
        suboptions:
          bridge:
            description: Bridge of the network, if that is an isolated one.
            type: str
          cidr:
            description: The address, or a range.
            type: str
            required: true
      devices:
        description:
          - Names of its tap devices. What leaves by one of them is judged whatever its destination is, broadcast,
            multicast and addresses that nobody knows, and so is what comes in by one, whatever its source is.
          - A neighbour advertisement, or a detection of duplicates, that comes in by one of them is dropped unless it
            is about an IPv6 address of the instance, whatever keeps the guest from sending under foreign addresses.
          - Without them, what matches none of O(instances[].addresses) is judged by nobody.
        type: list
        elements: str
        default: []
      open_devices:
        description: Names of its tap devices whose port security is off; nobody judges what leaves by them or comes in.
        type: list
        elements: str
        default: []
      open_networks:
        description: Networks whose other members reach it whatever its security groups say.
        type: list
        elements: dict
        default: []
        suboptions:
          bridge: {description: Its bridge by which a packet must come in., type: str, required: true}
          cidr: {description: Range of its addresses., type: str, required: true}
      ports:
        description:
          - Its network interfaces, on hosts that use no libvirt network filters. What it sends under another MAC or
            address, by IPv4, IPv6 or ARP, as a DHCP server or as a router that advertises itself is dropped.
        type: list
        elements: dict
        default: []
        suboptions:
          device: {description: Name of the tap device., type: str, required: true}
          mac: {description: MAC of the interface., type: str, required: true}
          addresses:
            description: Addresses that it may send under, the link-local one too. Without an IPv6 address, no IPv6.
            type: list
            elements: str
            default: []
          allowed_pairs:
            description: Further addresses or ranges, and the MAC that goes with them.
            type: list
            elements: dict
            default: []
            suboptions:
              mac: {description: The MAC., type: str, required: true}
              cidr: {description: One address or a range., type: str, required: true}
          port_security:
            description: Without it, frames with a VLAN tag alone are dropped.
            type: bool
            default: true
      dhcp_servers:
        description:
          - Addresses whose DHCP answers the instance may receive, of IPv6 servers the link-local ones. Where this host
            has one on a device with other addresses in front of it, from which it answers then, these are meant, too.
        type: list
        elements: str
        default: []
      ra_servers:
        description: Link-local addresses of the routers whose advertisements it may receive, any router when empty.
        type: list
        elements: str
        default: []
      security_groups:
        description: Numbers of its security groups. Without any it can only answer.
        type: list
        elements: int
        default: []
  security_groups:
    description:
      - The groups that O(instances) name, with all their rules, and the groups that these rules name.
      - A group without an instance on this host is ignored.
    type: list
    elements: dict
    default: []
    suboptions:
      id:
        description: Number of the group, part of its chain's name.
        type: int
        required: true
      name:
        description: Not used, accepted so that a recorded group can be passed as it is.
        type: str
      uuid:
        description: Not used, accepted so that a recorded group can be passed as it is.
        type: str
      members:
        description:
          - Addresses of the instances that carry this group, on any host, for rules that name it.
          - They are kept in a kernel set (ipset), so that a change of them touches no rule.
          - Left out, they stay as they are.
        type: list
        elements: str
      scoped_members:
        description:
          - The members on isolated networks, which go with O(security_groups[].members). A rule for an instance on such
            a network means the members on that network, and these only.
        type: list
        elements: dict
        default: []
        suboptions:
          bridge: {description: Bridge of the network., type: str, required: true}
          addresses: {description: Addresses of the members on it., type: list, elements: str, default: []}
      joining:
        description:
          - Members that the group gains. Those that this host knows stay, so this does not go with
            O(security_groups[].members).
        type: list
        elements: dict
        default: []
        suboptions: &changed
          bridge:
            description: Bridge of the isolated network on which they are; empty for any other.
            type: str
            default: ''
          addresses: {description: Addresses of the members., type: list, elements: str, default: []}
      leaving:
        description: Members that the group loses. One that is among O(security_groups[].joining), too, stays.
        type: list
        elements: dict
        default: []
        suboptions: *changed
      rules:
        description:
          - What may reach the members of the group, and what they may send.
          - Left out, the rules stay as they are.
        type: list
        elements: dict
        suboptions:
          id:
            description: Not used, accepted so that a recorded rule can be passed as it is.
            type: str
          direction:
            description:
              - V(ingress) rules are for what reaches the instance, V(egress) ones for what it sends.
              - An instance may send anything as long as none of its groups has a rule for V(egress).
            type: str
            choices: [ingress, egress]
            default: ingress
          ethertype: {description: Address family of the rule., type: str, choices: [IPv4, IPv6], default: IPv4}
          protocol:
            description: V(tcp), V(udp), V(sctp), V(icmp), V(icmpv6), V(gre), V(esp), V(ah), V(any) or a number.
            type: str
          port_min: {description: First port; for ICMP the type., type: int}
          port_max: {description: Last port; for ICMP the code., type: int}
          cidr:
            description:
              - Addresses at the other end, of the sources or, for V(egress), the destinations.
              - Any address without this and O(security_groups[].rules[].remote_group_id).
            type: str
          remote_group_id:
            description:
              - At the other end are the O(security_groups[].members) of this group, or on an isolated network its
                O(security_groups[].scoped_members) there.
            type: int
  zones:
    description: The conntrack zone of each isolated bridge among O(instances[].scoped).
    type: list
    elements: dict
    default: []
    suboptions:
      bridge:
        description: The bridge.
        type: str
        required: true
      zone:
        description: Number of the zone, V(1) to V(65535), another for each bridge.
        type: int
        required: true
  bridges:
    description:
      - The bridges of the instances' networks; with O(state=absent) those that go with the instances. Of these, the
        ones that guests of this host still use, or a run that is building on them, are left as they are.
      - Where the host drops in FORWARD or INPUT what nobody accepts (Docker sets up FORWARD so), what guests send is
        accepted, and what they ask of the host itself. Otherwise nothing is done.
    type: list
    elements: str
    default: []
  serving:
    description: Those of O(bridges) on which this host is the DHCP and name server of the guests.
    type: list
    elements: str
    default: []
  open_to_guests:
    description:
      - What guests may ask of this host itself, besides metadata, DHCP, names and neighbour discovery; C(tcp/3128),
        C(udp/5000-5009), V(icmp), or V(any) for whatever the host's own rules let in. It is still these rules that have
        the last word.
      - It is about what comes in by O(instances[].devices), not about what others on the same bridges ask.
      - Left out, it stays as it is, which is nothing at first.
    type: list
    elements: str
  ledger:
    description:
      - Identity of the ledger that the host is given this by, the C(ledger) of its plan. A host carries the security
        groups of one ledger at a time; with those of another one there, V(present) fails and V(absent) leaves them.
    type: str
  state:
    description:
      - V(present) ensures the given instances and groups and leaves other instances as they are.
      - V(absent) removes the given instances and the groups that no other instance uses, and cuts their connections.
        With the last instance everything goes.
  exclusive:
    description: With O(state=present), whether instances that are not given are removed.
    type: bool
    default: false
  backend:
    description: Which iptables to use. V(auto) is the one that the host has chosen for C(iptables).
    type: str
    choices: [auto, nft, legacy]
    default: auto
"""

EXAMPLES = r"""
- name: One web server, reachable by ssh from everywhere
  novalite.cloud.firewall:
    instances:
      - id: 7
        addresses: [10.20.0.5]
        dhcp_servers: [10.20.0.2]
        security_groups: [1]
    security_groups:
      - id: 1
        rules:
          - {protocol: tcp, port_min: 22, port_max: 22, cidr: 0.0.0.0/0}

- name: Forget it
  novalite.cloud.firewall:
    instances:
      - id: 7
        addresses: [10.20.0.5]
    state: absent
"""

RETURN = r"""
restores:
  description: How many C(iptables-restore) transactions were needed.
  returned: always
  type: int
  sample: 1
repaired:
  description:
    - What somebody else had changed of novalite's since its last run, by family and C(ports), and was put back, of all
      instances. In check mode, what would be.
  returned: when somebody had
  type: dict
  sample: {IPv4: [FORWARD, nova-local]}
"""

from ..module_utils._firewall import apply, arguments, look, passage, policy, sets, tables
from ..module_utils._host.libvirt_connection import DEFAULT_URI
from ..module_utils._host.module import HostCall, Result, compared, run_host_module
from ..module_utils._network import ownership

ARGUMENT_SPEC = {
    "instances": {"type": "list", "elements": "dict", "default": [], "options": arguments.INSTANCE_SPEC},
    "security_groups": {"type": "list", "elements": "dict", "default": [], "options": arguments.GROUP_SPEC},
    "zones": arguments.ZONES_SPEC,
    "bridges": {"type": "list", "elements": "str", "default": []},
    "serving": {"type": "list", "elements": "str", "default": []},
    "open_to_guests": {"type": "list", "elements": "str"},
    "ledger": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "exclusive": {"type": "bool", "default": False},
    "backend": {"type": "str", "choices": ["auto", "nft", "legacy"], "default": "auto"},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    params = call.params
    groups = arguments.parse_groups(params["security_groups"])
    instances = arguments.parse_instances(params["instances"], leaving=params["state"] == "absent")
    request = arguments.Request(
        instances=tuple(look.with_sources(instances)),
        groups=tuple(groups),
        state=params["state"],
        exclusive=params["exclusive"],
        zones=arguments.parse_zones(params["zones"]),
        bridges=arguments.parse_bridges(params["bridges"]),
        serving=arguments.parse_bridges(params["serving"]),
        opened=passage.parse_opened(params["open_to_guests"]),
        sets=sets.usable() if any(group.remotes for group in groups) else True,
    )
    outcome = apply.apply(
        request,
        check_mode=call.check_mode,
        backend=params["backend"],
        mark=ownership.of_ledger(params["ledger"]),
        uri=params["uri"],
    )
    kept = [] if call.check_mode else tables.keep_for_boot(outcome.changed)
    return compared(
        outcome.before,
        outcome.after,
        restores=outcome.restores,
        warnings=[*policy.unsupported(groups), *outcome.warnings, *kept],
        **({"repaired": outcome.repaired} if outcome.repaired else {}),
    )


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
