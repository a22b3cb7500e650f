#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reachability
short_description: May one instance talk to another, and by which rule
version_added: 0.1.0
description:
  - Answers from the ledger what security groups let an instance or address send to another. No host is asked.
  - With O(walks) it fails where the chains of a host do not do what the ledger says.
extends_documentation_fragment: [novalite.cloud.looks, novalite.cloud.ledger, novalite.cloud.ledger.project]
options:
  source:
    description: Who opens the connection, an instance's name or an address.
    type: str
    required: true
  destination:
    description: To whom, an instance's name or an address.
    type: str
    required: true
  protocol:
    description: V(tcp), V(udp), V(sctp), V(icmp), V(icmpv6), V(gre), V(esp), V(ah), or a number.
    type: str
    default: tcp
  port:
    description: The port, or for V(icmp) and V(icmpv6) the type.
    type: int
  icmp_code:
    description: The ICMP code.
    type: int
  trace:
    description: Whether to return RV(hosts).
    type: bool
    default: false
  walks:
    description: What M(novalite.cloud.packet_trace) returned on these hosts. RV(msg) tells of them, too.
    type: list
    elements: dict
    default: []
  project:
    description: Name of the project of the instances.
seealso:
  - module: novalite.cloud.packet_trace
  - module: novalite.cloud.security_group
  - module: novalite.cloud.security_group_info
"""

EXAMPLES = r"""
- name: May the web server talk to the database
  novalite.cloud.reachability:
    source: web-1
    destination: db-1
    protocol: tcp
    port: 3306
"""

RETURN = r"""
allowed:
  description: Whether it may, between at least one pair of their addresses.
  returned: success
  type: bool
answers:
  description:
    - For each pair of addresses of one family, whether it may, and the rules (RV(ignore:egress) of the source,
      RV(ignore:ingress) of the destination) that say so.
  returned: success
  type: list
  elements: dict
hosts:
  description: By host, what M(novalite.cloud.packet_trace) takes there.
  returned: success
  type: dict
msg:
  description: The answers in words, each with its walks.
  returned: success
  type: list
  elements: str
  sample:
    - >-
      web-1 10.20.0.5 -> db-1 10.20.0.6 tcp 3306: allowed, web-1 may send anything, let in by group db: tcp 3306 from
      group web
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
