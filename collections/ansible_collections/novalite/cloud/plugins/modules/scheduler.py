#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: scheduler
short_description: Choose a compute host for each instance, and claim it
version_added: 0.1.0
description:
  - Nova's scheduler and placement in one step. Filters leave the hosts on which an instance can run, a choice ranks
    them, and what the instance needs is claimed in the ledger, so that no two runs can promise the same memory.
  - Each instance is placed with those before it taken into account.
  - An instance that has a claim keeps it.
  - To find no host does not fail the task. The instance is recorded as ERROR with the reason as its fault, and
    returned in RV(unplaced).
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.scheduling
  - novalite.cloud.scheduling.choice
options:
  instances:
    description: The instances, as returned by M(novalite.cloud.server).
    type: list
    elements: dict
    required: true
seealso:
  - module: novalite.cloud.server
  - module: novalite.cloud.fixed_ip
"""

EXAMPLES = r"""
- name: Choose hosts
  novalite.cloud.scheduler:
    instances: "{{ servers.to_build }}"
  register: scheduled

- name: Fill one host after the other, and launch what can be launched
  novalite.cloud.scheduler:
    instances: "{{ servers.to_build }}"
    options:
      cpu_weight_multiplier: -1.0
      ram_weight_multiplier: -1.0
      disk_weight_multiplier: 0.0
    all_or_nothing: false
"""

RETURN = r"""
instances:
  description:
    - The instances that have a host, in the order given.
    - Each is as it was given, with V(host), V(alternates), V(vm_state) and V(task_state) filled in.
  returned: success
  type: list
  elements: dict
unplaced:
  description: The instances that have none.
  returned: success
  type: list
  elements: dict
  contains:
    instance:
      description: The instance as it was given.
      type: dict
    message:
      description: The reason in one line.
      type: str
      sample: >-
        No valid host was found for 'web-1': compute removed 1 (hv2: libvirtd does not answer),
        ram removed 1 (hv1: 300 of 512 MiB free); 0 of 2 hosts remain
failures:
  description: The reasons of RV(unplaced), each once.
  returned: success
  type: list
  elements: str
explanations:
  description: Why this host, and why not another, for each of O(instances).
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID of the instance.
      type: str
    name:
      description: Name of the instance.
      type: str
    host:
      description: The host it has, if any.
      type: str
    message:
      description: The decision in one line.
      type: str
    lines:
      description: The whole explanation for people, a line for each host. The same lines are in the diff.
      type: list
      elements: str
      sample:
        - "hv1: weight 2.0 (cpu 1.0, ram 1.0) chosen"
        - "hv2: weight 0.0 (cpu 0.0, ram 0.0) alternate 1"
        - "hv3: removed by ram: 300 of 512 MiB free"
    alternates:
      description: The next best hosts. Not for an instance that kept its claim.
      type: list
      elements: str
    choice:
      description: The choice in force. Not for an instance that kept its claim.
      type: str
    hosts:
      description: How many hosts were considered. Not for an instance that kept its claim.
      type: int
    filters:
      description: The filters in the order they ran. Not for an instance that kept its claim.
      type: list
      elements: dict
      contains:
        filter:
          description: Name of the filter.
          type: str
        start:
          description: How many hosts came to it.
          type: int
        end:
          description: How many passed it.
          type: int
        removed:
          description: The hosts that did not, each with the reason. At most 100 of them.
          type: dict
    weights:
      description: The best ten hosts, best first. Not for an instance that kept its claim.
      type: list
      elements: dict
      contains:
        host:
          description: Name of the host.
          type: str
        score:
          description: Its score, a number or several in the order of their importance. Higher is better.
          type: raw
        details:
          description: What the score was made of.
          type: dict
msg:
  description: The result in one line.
  returned: success
  type: str
  sample: "placed 4 of 4 instances: 2 on hv1, 2 on hv2"
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
