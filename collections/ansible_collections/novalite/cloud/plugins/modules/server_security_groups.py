#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server_security_groups
short_description: Put instances into security groups, or take them out
version_added: 0.1.0
description:
  - Changes which security groups instances carry, in the ledger, and returns what the hosts must be told.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.project
  - novalite.cloud.ledger.state
options:
  servers:
    description: The instances, by name.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the instance.
        type: str
        required: true
      security_groups:
        description: Names of groups of the same project.
        type: list
        elements: str
        required: true
  exclusive:
    description: With O(state=present), whether the instances leave all other groups.
    type: bool
    default: false
  state:
    description: Whether the instances carry these groups. One without any group can only answer.
seealso:
  - module: novalite.cloud.security_group
  - module: novalite.cloud.firewall
"""

EXAMPLES = r"""
- name: Make web-1 a web server
  novalite.cloud.server_security_groups:
    servers:
      - name: web-1
        security_groups: [web]
  register: novalite_groups
"""

RETURN = r"""
servers:
  description: The instances that were named, with the groups that each carries now.
  returned: success
  type: list
  elements: dict
  sample: [{"name": "web-1", "security_groups": ["default", "web"]}]
hosts:
  description: >-
    For each compute host that has to know the arguments RV(ignore:instances), RV(ignore:security_groups) and
    RV(ignore:zones) of M(novalite.cloud.firewall).
  returned: success
  type: dict
  sample:
    hv1:
      instances: []
      security_groups: [{"id": 1, "joining": [{"bridge": "", "addresses": ["10.20.0.5"]}], "leaving": []}]
      zones: []
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
