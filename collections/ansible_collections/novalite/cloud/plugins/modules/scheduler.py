#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: scheduler
short_description: Choose a compute host for each instance, and claim it
version_added: 0.1.0
author:
  - novalite contributors (@novalite)
description:
  - Nova's scheduler and placement in one step. Filters leave the hosts on which an instance can run, a choice ranks
    them, and what the instance needs is claimed in the ledger, so that no two runs can promise the same memory.
  - Each instance is placed with those before it taken into account.
  - An instance that has a claim keeps it.
  - To find no host does not fail the task. The instance is recorded as ERROR with the reason as its fault, and
    returned in RV(unplaced).
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.attributes
  - novalite.cloud.scheduling
options:
  instances:
    description: The instances, as returned by M(novalite.cloud.server).
    type: list
    elements: dict
    required: true
  compute_hosts:
    description:
      - What compute hosts have just reported, as returned by M(novalite.cloud.compute_host).
      - It is recorded before the choice. Hosts that are not listed are known from the ledger.
    type: list
    elements: dict
  choice:
    description:
      - How to choose among the hosts that passed all filters.
      - V(filter_scheduler) takes the highest sum of weights, as Nova does. Each weigher's weights are first brought to
        V(0) for the worst and V(1) for the best of these hosts, then multiplied.
      - V(simple) takes the host with the fewest cores in use.
      - V(chance) takes any.
      - V(zone) spreads over availability zones, then takes the host with the fewest cores in use.
    type: str
    choices: [filter_scheduler, simple, chance, zone]
    default: filter_scheduler
  all_or_nothing:
    description: Whether one instance without a host gives up all others of O(instances), as in Nova.
    type: bool
    default: true
  reservations:
    description:
      - Which of the instances were asked for together, when they come from several requests, as UUID and any text that
        they have in common. O(all_or_nothing) then holds for each request by itself, and what is given up takes no
        room from the others. Without it, all are of one request.
    type: dict
  explain_all:
    description:
      - Whether RV(explanations) names every host that was weighed and every one that a filter removed, however many
        there are. What is recorded with the instance stays bounded.
    type: bool
    default: false
  service_down_time:
    description: Seconds after which a compute host that has not reported counts as down.
    type: int
    default: 60
  seen_hosts:
    description: Compute hosts that answered earlier in this run. They count as up, however long ago that was.
    type: list
    elements: str
    default: []
  max_attempts:
    description:
      - How many hosts to try for one instance in all.
      - One less is the number of alternates that are returned for a new instance.
    type: int
    default: 3
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
from ..module_utils._scheduling.arguments import SCHEDULING_ARGUMENTS

ARGUMENT_SPEC: dict = {
    "instances": {"type": "list", "elements": "dict", "required": True},
    "compute_hosts": {"type": "list", "elements": "dict"},
    "choice": {
        "type": "str",
        "choices": ["filter_scheduler", "simple", "chance", "zone"],
        "default": "filter_scheduler",
    },
    "all_or_nothing": {"type": "bool", "default": True},
    "reservations": {"type": "dict"},
    "explain_all": {"type": "bool", "default": False},
    "service_down_time": {"type": "int", "default": 60},
    "seen_hosts": {"type": "list", "elements": "str", "default": []},
    "max_attempts": {"type": "int", "default": 3},
    **SCHEDULING_ARGUMENTS,
}
SPEC_RULES: dict = {}


def main() -> None:
    run_module("scheduler", ARGUMENT_SPEC, **SPEC_RULES)


if __name__ == "__main__":
    main()
