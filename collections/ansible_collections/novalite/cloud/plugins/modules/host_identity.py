#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_identity
short_description: Compare compute hosts with the machines that the ledger has, and rename a compute host
version_added: 0.1.0
description:
  - A step of C(compute_nodes.yml) and C(compute_node_rename.yml).
  - In the ledger a compute host is one machine, and a machine is one compute host, whatever name and address an
    inventory has for it.
extends_documentation_fragment:
  - novalite.cloud.ledger
options:
  state:
    description:
      - V(compared) fails for a machine that is not the one that the ledger has under its name, and for one that has two
        names. It changes nothing.
      - V(renamed) gives the host O(name) the name O(new_name) wherever the ledger has it. Refused while the host is
        building, moving or otherwise changing instances.
    type: str
    choices: [compared, renamed]
    default: compared
  machines:
    description: What M(novalite.cloud.host_mark) returns of the machines, by the names that the inventory has for them.
    type: dict
    required: true
  replaced:
    description: Names of hosts whose machines are other ones than before.
    type: list
    elements: str
    default: []
  name:
    description: Name of the compute host.
    type: str
  new_name:
    description: Its new name, under which the inventory has it already.
    type: str
seealso:
  - module: novalite.cloud.host_mark
"""

EXAMPLES = r"""
- name: Give hv1 its new name
  novalite.cloud.host_identity:
    state: renamed
    name: hv1
    new_name: node1
    machines:
      node1: "{{ hostvars.node1.machine }}"
"""

RETURN = r"""
renamed:
  description: How many records named the host, for each kind of record.
  returned: O(state=renamed)
  type: dict
behind:
  description: Whether the ledger is behind its hosts. It learns of a new name all the same.
  returned: O(state=renamed)
  type: bool
"""

from ..module_utils._ledger_module import run_module

SPEC_RULES: dict = {"required_if": [("state", "renamed", ("name", "new_name"))]}


def main() -> None:
    run_module(DOCUMENTATION, **SPEC_RULES)


if __name__ == "__main__":
    main()
