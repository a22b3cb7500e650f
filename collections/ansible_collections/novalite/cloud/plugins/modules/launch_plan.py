#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: launch_plan
short_description: Choose hosts and addresses for instances, and work out what each host must be given
version_added: 0.1.0
description:
  - What M(novalite.cloud.scheduler), M(novalite.cloud.fixed_ip) and M(novalite.cloud.server_plan) do one after another,
    as one. All of it is recorded, or none.
  - That instances find no host, no address or no plan does not fail the task. They are recorded as ERROR with the
    reason as their fault, hold nothing, and the reasons are in RV(launch.failures).
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.scheduling
  - novalite.cloud.scheduling.choice
  - novalite.cloud.state_dir
options:
  instances:
    description: The instances to place, as returned by M(novalite.cloud.server).
    type: list
    elements: dict
    default: []
  existing:
    description: Instances that run already and are to be compared with what they should be.
    type: list
    elements: dict
    default: []
  alone:
    description:
      - Whether the instances were asked for together. When they are of several requests, one of these may have spoiled
        it for the others, and what fails waits to be tried again.
    type: bool
    default: true
  hosts:
    description:
      - Names of the compute hosts of the inventory. A host is known well enough where the ledger heard of it, up, no
        longer than O(max_age) seconds ago, and where its variables say of it what they said then, unless it failed to
        build the last time.
      - Where any host is not, nothing is planned. Those are in RV(ask).
    type: list
    elements: str
  max_age:
    description: Seconds, for O(hosts).
    type: int
    default: 60
seealso:
  - module: novalite.cloud.scheduler
  - module: novalite.cloud.fixed_ip
  - module: novalite.cloud.server_plan
"""

EXAMPLES = r"""
- name: Place what is to be built
  novalite.cloud.launch_plan:
    instances: "{{ servers.to_build }}"
    existing: "{{ servers.existing }}"
  register: launch
"""

RETURN = r"""
ask:
  description: Hosts to be asked what they offer before anything is planned (M(novalite.cloud.compute_host)).
  returned: when there are any among O(hosts)
  type: list
  elements: str
fresh:
  description: The other ones of O(hosts).
  returned: with RV(ask)
  type: list
  elements: str
instances:
  description: The instances that have a host and addresses, in the order given; or, where all were refused, all.
  returned: success
  type: list
  elements: dict
launch:
  description: What the launch has come to so far.
  returned: success
  type: dict
  contains:
    built:
      description: The instances that run.
      type: list
      elements: dict
    failures:
      description: Why others do not.
      type: list
      elements: str
      sample:
        - "No valid host was found for 'web-1': ram removed 1 (hv1: 300 of 512 MiB free); 0 of 1 hosts remain"
    seen_hosts:
      description: O(seen_hosts), or the hosts of which the ledger's word was taken.
      type: list
      elements: str
    silent:
      description: Those that run and did not answer as was asked for, as M(novalite.cloud.server_wait) returns them.
      type: list
      elements: dict
refused:
  description: Why none of the instances could be placed, where that is not the scheduler's refusal.
  returned: when that is so
  type: str
unplaced:
  description: The others, as M(novalite.cloud.scheduler) returns them.
  returned: when there was something to place
  type: list
  elements: dict
explanations:
  description: Why this host, and why not another, as M(novalite.cloud.scheduler) returns it.
  returned: when there was something to place
  type: list
  elements: dict
hosts:
  description: For each compute host its plans, as M(novalite.cloud.server_plan) returns them.
  returned: success
  type: dict
  sample: {"hv1": {"build": {"names": ["web"], "bridges": [], "disks": [], "domains": []}}}
targets:
  description: The hosts of each play, as M(novalite.cloud.server_plan) returns them.
  returned: success
  type: dict
  sample: {"build": ["hv1"], "peers": ["hv2"], "controller": ["localhost"]}
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
