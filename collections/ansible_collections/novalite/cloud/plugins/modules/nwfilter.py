#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: nwfilter
short_description: Keep guests from spoofing addresses, with libvirt network filters
version_added: 0.1.0
description:
  - Defines one small libvirt network filter for each guest, and C(nova-base) and C(nova-ipv6), which they refer to.
  - C(nova-base) lets a guest send under its own MAC and IPv4 address only, and needs the parameter C(IP) in the guest's
    C(filterref). Everything else is dropped, among it DHCP answers, router advertisements, VLAN tags and all IPv6.
  - C(nova-ipv6), beside C(nova-base), also lets it send under the addresses in the parameter C(IPV6), of which its
    link-local address must be one.
  - C(nova-open), for an interface whose port security is off, drops VLAN tags only.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.libvirt
  - novalite.cloud.mark
  - novalite.cloud.changes.state
requirements:
  - ebtables on the hypervisor
attributes:
  diff_mode:
    description: Shows the filters before and after.
options:
  filters:
    description: The filters of the guests.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the filter, by convention C(nova-instance-) and the name of the guest.
        type: str
        required: true
      uuid:
        description: UUID of the instance. A filter of this name that was made for another one is not touched.
        type: str
      references:
        description:
          - Filters that apply to the guest.
          - C(nova-base), C(nova-ipv6) and C(nova-open) are defined when they are missing or differ, all others must
            exist.
        type: list
        elements: str
        default: [nova-base]
      beside:
        description: Filters of further interfaces of the guest, such as C(nova-open), which must be there, too.
        type: list
        elements: str
        default: []
      allowed_pairs:
        description:
          - Further addresses that the guest may send under, with the MAC that goes with them. For addresses that
            several guests share (VRRP, keepalived), and for guests that route.
        type: list
        elements: dict
        default: []
        suboptions:
          mac:
            description: The MAC that the guest sends from, its own or another.
            type: str
            required: true
          cidr:
            description: One address or a range, IPv4 or IPv6.
            type: str
            required: true
  renew:
    description:
      - Devices of running guests whose rules libvirt is to write anew, since somebody took them away. Only with
        O(state=present).
    type: list
    elements: str
    default: []
  state:
    description:
      - V(absent) undefines the filters. Their guests must have ended before.
      - C(nova-base), C(nova-ipv6) and C(nova-open) stay, as libvirt's own filters do.
"""

EXAMPLES = r"""
- name: Filters for two guests
  novalite.cloud.nwfilter:
    filters:
      - name: nova-instance-instance-00000007
      - name: nova-instance-instance-00000008
        references: [nova-base, nova-ipv6]

- name: Remove one
  novalite.cloud.nwfilter:
    filters:
      - name: nova-instance-instance-00000007
    state: absent
"""

RETURN = r"""
diff:
  description: The XML of the filters that changed, C(before) and C(after), by their names.
  returned: changed
  type: dict
"""

from ..module_utils._host.libvirt_connection import DEFAULT_URI
from ..module_utils._host.module import HostCall, Result, run_host_module
from ..module_utils._network import nwfilter, ownership

ARGUMENT_SPEC = {
    "filters": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "uuid": {"type": "str"},
            "references": {"type": "list", "elements": "str", "default": ["nova-base"]},
            "beside": {"type": "list", "elements": "str", "default": []},
            "allowed_pairs": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {"mac": {"type": "str", "required": True}, "cidr": {"type": "str", "required": True}},
            },
        },
    },
    "renew": {"type": "list", "elements": "str", "default": []},
    "ledger": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    params = call.params
    filters = nwfilter.parse(params["filters"])
    mark = ownership.of_ledger(params["ledger"])
    return nwfilter.ensure(filters, params["state"], params["uri"], call.check_mode, params["renew"], mark)


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
