#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: security_group
short_description: Manage security groups and their rules
version_added: 0.1.0
description:
  - Makes, changes and removes security groups in the ledger. What instances let in is the sum of their groups' rules.
    What no rule allows is denied. Egress is open, unless one of the groups has a rule for V(egress).
  - Every project has a group V(default), without rules, from its first launch on.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.project
  - novalite.cloud.ledger.state
  - novalite.cloud.nouns.security_group
options:
  security_groups:
    description: The groups, by name.
    type: list
    elements: dict
    required: true
  plan:
    description: Whether to return RV(hosts), what the hosts must be told.
    type: bool
    default: false
seealso:
  - module: novalite.cloud.firewall
"""

EXAMPLES = r"""
- name: Let the world in to ssh and ping, and the group's members to everything
  novalite.cloud.security_group:
    project: demo
    security_groups:
      - name: default
        rules:
          - {protocol: tcp, port_min: 22, cidr: 0.0.0.0/0}
          - {protocol: tcp, port_min: 22, cidr: "::/0"}
          - {protocol: icmp, icmp_type: 8, cidr: 0.0.0.0/0}
          - {protocol: any, remote_group: default}
"""

RETURN = r"""
security_groups:
  description: The groups that were named, as they are now. Empty with O(state=absent).
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Number of the group, which is in the name of its chains.
      type: int
    uuid:
      description: UUID of the group.
      type: str
    name:
      description: Name of the group.
      type: str
    description:
      description: What the group is for.
      type: str
    rules:
      description: The rules. For ICMP, C(port_min) is the type and C(port_max) the code, as in Nova.
      type: list
      elements: dict
  sample:
    - id: 1
      uuid: 4bd4a1d8-1c5f-4b8e-8d4e-2f0f8a6b1c11
      name: default
      description: The default group
      rules:
        - {direction: ingress, ethertype: IPv4, protocol: tcp, port_min: 22, port_max: 22, cidr: 0.0.0.0/0,
           remote_group: null}
hosts:
  description: >-
    For each compute host that carries a member of the groups, or an instance whose rules name one, the arguments
    RV(ignore:instances), RV(ignore:security_groups) and RV(ignore:zones) of M(novalite.cloud.firewall).
  returned: with O(plan=true) and O(state=present)
  type: dict
  sample: {"hv1": {"instances": [], "security_groups": [{"id": 1, "members": ["10.20.0.5"]}], "zones": []}}
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
