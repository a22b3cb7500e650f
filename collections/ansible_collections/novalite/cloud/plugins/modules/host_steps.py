#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_steps
short_description: Run several modules and steps of this collection on a compute host, in one trip
version_added: 0.1.0
description:
  - Runs the steps in their order, in one process on the host. A task for each of them would cost half a second each.
  - It ends with the first step that fails. What came before it stays, as with tasks.
  - Where Ansible cannot write to a process on the host (pipelining is off, the task is delegated), the steps are run as
    single modules.
  - An image that the host has to be given (see M(novalite.cloud.image_cache)) is brought in between.
extends_documentation_fragment: [novalite.cloud.changes]
attributes:
  check_mode:
    description: Each step runs in check mode.
  diff_mode:
    description: Each step returns its diff.
options:
  steps:
    description: The steps.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: What the step does, verb and object, as a task's name.
        type: str
        required: true
      module:
        description: A module of this collection whose work is on a host, without the collection's name, or a step of
          M(novalite.cloud.host_step).
        type: str
        required: true
      args:
        description: The module's own options.
        type: dict
        default: {}
      when:
        description: Whether it is run at all.
        type: bool
        default: true
      may_fail:
        description: Whether the steps after it are run, and the task succeeds, even if it fails.
        type: bool
        default: false
  outcome:
    description: What is returned as RV(outcome) if no step fails.
    type: dict
  diffs:
    description:
      - Whether each step's result has its diff without C(--diff), too. The task's own has it with C(--diff) only.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Make the bridge of a network, and answer its guests
  novalite.cloud.host_steps:
    steps:
      - name: Ensure the bridge
        module: bridge
        args:
          bridges: [{name: br100, interface: eth1, vlan: 100, addresses: [10.20.0.2/24]}]
      - name: Ensure the DHCP entries
        module: dhcp
        args:
          networks: [{name: blue, bridge: br100, cidr: 10.20.0.0/24, listen: 10.20.0.2}]
"""

RETURN = r"""
steps:
  description:
    - The steps that were run, in their order. Of a failed task they are in C(ansible_failed_result.invocation), which
      Ansible shows with C(-vvv) alone, and in the file RV(details).
  returned: when no step failed
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      returned: always
    module:
      description: Its module.
      type: str
      returned: always
    seconds:
      description: How long it took.
      type: float
      returned: always
    result:
      description: What the module returned.
      type: dict
      returned: always
trip:
  description:
    - When it began (seconds since the epoch, by the controller's clock), how long it took, and each step's module and
      seconds. The step V(launch_record) keeps it. Of a failed task it is where RV(steps) are.
  returned: when no step failed
  type: dict
  sample: {"at": 1795593936.9, "seconds": 2.41, "steps": [{"module": "bridge", "seconds": 0.07}]}
outcome:
  description:
    - O(outcome) with what the step V(launch_record) keeps of the steps. RV(trip), C(facts) of the host, if
      M(novalite.cloud.compute_host) was among them, and the C(silent) guests of M(novalite.cloud.server_wait).
  returned: when O(outcome) is given and no step failed
  type: dict
details:
  description: Path of a file in the ledger's home with all that the host returned. The newest 50 are kept.
  returned: when a step failed, unless the task has C(no_log)
  type: str
failed_step:
  description: The name of the step that failed.
  returned: when one failed
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

ARGUMENT_SPEC = {
    "steps": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "name": {"type": "str", "required": True},
            "module": {"type": "str", "required": True},
            "args": {"type": "dict", "default": {}},
            "when": {"type": "bool", "default": True},
            "may_fail": {"type": "bool", "default": False},
        },
    },
    "outcome": {"type": "dict"},
    "diffs": {"type": "bool", "default": False},
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    module.fail_json(msg="host_steps is the controller's work: use novalite.cloud.host_steps in a task")


if __name__ == "__main__":
    main()
