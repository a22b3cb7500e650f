#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: launch_record
short_description: Record how hosts carried out the plans of a launch, and plan what is tried again on other hosts
version_added: 0.1.0
description:
  - What M(novalite.cloud.server_state) does and, for the instances whose hosts could not build them, what
    M(novalite.cloud.launch_plan) does, in one transaction.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.scheduling
  - novalite.cloud.scheduling.choice
  - novalite.cloud.server_outcomes
  - novalite.cloud.state_dir
options:
  launch:
    description: What the same launch has come to so far, RV(launch) of the call before.
    type: dict
    required: true
seealso:
  - module: novalite.cloud.launch_plan
  - module: novalite.cloud.server_state
"""

EXAMPLES = r"""
- name: Record how it went, and plan what is tried again
  novalite.cloud.launch_record:
    launch: "{{ launch.launch }}"
    plans: "{{ launch.hosts }}"
    outcomes: "{{ launch.targets.build | novalite.cloud.from_hosts(hostvars, 'spawn_built.outcome') }}"
  register: launch
"""

RETURN = r"""
instances:
  description: The instances as they are now, as M(novalite.cloud.server) returns them.
  returned: success
  type: list
  elements: dict
launch:
  description: What the launch has come to so far, as RV(novalite.cloud.launch_plan#module:launch) has it.
  returned: success
  type: dict
hosts:
  description: The plans of hosts for what others failed to build, as M(novalite.cloud.server_plan) returns them.
  returned: success
  type: dict
  sample: {"hv2": {"build": {"names": ["web"], "bridges": [], "disks": [], "domains": []}}}
targets:
  description: The hosts of each play, as M(novalite.cloud.server_plan) returns them.
  returned: success
  type: dict
  sample: {"build": ["hv2"], "peers": ["hv1"], "controller": ["localhost"]}
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
