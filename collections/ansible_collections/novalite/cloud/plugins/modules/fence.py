#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: fence
short_description: Switch a compute host off by its fence agent, or ask for its power
version_added: 0.1.0
description:
  - Runs an agent of ClusterLabs on the controller, as clusters do, and believes it only when two of its runs agree.
    V(off) is followed by an independent C(status), which has to say off, too.
  - Parameters go to the agent on its standard input, and never into arguments of a command. They are compared with what
    the agent says of itself before it is run. One that it does not take, or one that it lacks, is an error, for agents
    only warn of those.
  - Nothing is ever rebooted or power-cycled.
  - A device that does not answer in time, or refuses, is no error of the task. RV(off) and RV(status) tell of it.
  - C(watch.yml) uses it. Used by hand, it switches a host off that may bear guests, and records nothing.
extends_documentation_fragment: [novalite.cloud.ledger]
attributes:
  check_mode:
    description: With O(action=off), does what V(validate) does.
    support: full
  diff_mode:
    description: There is no difference to show.
    support: none
options:
  host:
    description: Name of the compute host.
    type: str
    required: true
  agent:
    description:
      - Name of the agent, as in C(/usr/sbin), such as V(fence_ipmilan) or V(fence_redfish). No other directory is
        looked at.
      - V(none) refuses to act. So do agents that switch nothing off, such as C(fence_dummy).
    type: str
    default: none
  parameters:
    description:
      - Parameters of the agent, such as C(ip), C(username) and C(password); C(fence_ipmilan -o metadata) lists them.
      - C(action), C(method) and what would write to logs are refused.
    type: dict
    default: {}
  action:
    description:
      - V(off) switches the host off.
      - V(status) asks whether its power is on.
      - V(validate) has the agent log in to the device (C(monitor)), and asks for the status. It harms nothing.
    type: str
    choices: ['off', status, validate]
    default: status
  epoch:
    description: Epoch of the host's fencing, which is returned as it is.
    type: int
    default: 0
  timeout:
    description: Seconds that each run of the agent may take, from 5 to 300. An agent that takes longer has failed.
    type: int
    default: 60
"""

EXAMPLES = r"""
- name: Try whether the host could be switched off
  novalite.cloud.fence:
    host: hv3
    agent: fence_redfish
    parameters:
      ip: 192.0.2.13
      username: fencing
      password: "{{ vaulted_fence_password }}"
    action: validate

- name: Switch the host off
  novalite.cloud.fence:
    host: hv3
    agent: "{{ hostvars.hv3.novalite_fence_agent }}"
    parameters: "{{ hostvars.hv3.novalite_fence_parameters }}"
    action: 'off'
    epoch: 4
  register: fenced
"""

RETURN = r"""
host:
  description: As O(host).
  returned: success
  type: str
  sample: hv3
epoch:
  description: As O(epoch).
  returned: success
  type: int
  sample: 4
"off":
  description: Whether the agent switched the host off. It proves nothing unless RV(status) is V(off).
  returned: success
  type: bool
status:
  description: What the agent's status said, after all that was done. V(unknown) is neither on nor off.
  returned: success
  type: str
  sample: "off"
words:
  description: That in words, without secrets.
  returned: success
  type: str
  sample: fence_redfish switched it off, and its status says off
"""

from ..module_utils._ledger_module import run_module

NO_LOG = {"parameters": True}


def main() -> None:
    run_module(DOCUMENTATION, NO_LOG)


if __name__ == "__main__":
    main()
