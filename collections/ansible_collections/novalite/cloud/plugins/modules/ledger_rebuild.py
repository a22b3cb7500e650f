#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ledger_rebuild
short_description: Bring the ledger up to date with what hypervisors keep of it
version_added: 0.1.0
description:
  - Records the projects, instances, networks, addresses, security groups, claims, volumes, flavors, images and keys
    that the hosts' files tell of (see the step V(host_record)), under the ids that they had. A ledger that was
    lost gets its identity back.
  - In a ledger that was restored from an older copy, instances that moved since are where they are, with their claims,
    interfaces, addresses, floating IPs, volumes and moves. A host is believed where it knows more than the ledger does,
    and has the guest or its disk. What two of them claim is left as it was, and listed.
  - Numbers and addresses that any host has are given to nobody else, also where no record tells whose they are.
  - A host speaks for its own guests, and what these stand on. What else its files tell of is refused, and listed.
    Users, roles, tokens, hosts and paths of images come from no host.
  - What a domain is now counts more than what was written of it. No guest is started or stopped.
  - Changes the ledger alone. It can be repeated.
extends_documentation_fragment:
  - novalite.cloud.ledger
options:
  hosts:
    description: What each host keeps, as the step V(host_record) reads it, with the host's C(name).
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the compute host.
        type: str
        required: true
      records:
        description: For each instance, by its UUID, the text that is kept.
        type: dict
        required: true
      host_record:
        description: The text that is kept for the host.
        type: str
      marks:
        description: The marks that ledgers left on the host, as M(novalite.cloud.host_mark) returns them.
        type: dict
      found:
        description: What carries novalite's names or metadata on the host.
        type: dict
        required: true
  silent:
    description: Names of the hosts that did not answer.
    type: list
    elements: str
    default: []
  refused:
    description: Hosts that answered and were not asked, since they are not the machines that the ledger has, and why.
    type: dict
  partial:
    description:
      - Whether to go on without hosts that did not answer, or that the ledger has and that nobody asked, since they are
        gone for good.
    type: bool
    default: false
  ledger:
    description: The identity of the ledger that was lost. Needed if the hosts know several others than this one.
    type: str
seealso:
  - module: novalite.cloud.host_step
  - module: novalite.cloud.ledger
"""

EXAMPLES = r"""
- name: Make the ledger again
  novalite.cloud.ledger_rebuild:
    hosts: "{{ groups.compute | map('extract', hostvars) | map(attribute='novalite_kept') }}"
"""

RETURN = r"""
ledger:
  description: The identity of the ledger, or null if no host knows one.
  returned: success
  type: str
added:
  description: How many rows were added to each table.
  returned: success
  type: dict
servers:
  description: The instances that were added, one line each.
  returned: success
  type: list
  elements: str
updated:
  description: The instances that are not as the ledger had them, with what changed, one line each.
  returned: success
  type: list
  elements: str
gone:
  description:
    - Instances of which no host has anything, since they were deleted after the copy was made, and what others have of
      them by now, one line each. They stay until they are deleted.
  returned: success
  type: list
  elements: str
disputed:
  description: What several claim, one line each. It stays as it was.
  returned: success
  type: list
  elements: str
reserved:
  description: Addresses that are kept from everybody, or are free again, one line each.
  returned: success
  type: list
  elements: str
missing:
  description: The hosts that were not asked.
  returned: success
  type: list
  elements: str
lost:
  description: What no host can tell, one line each.
  returned: success
  type: list
  elements: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
