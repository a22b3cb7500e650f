#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: domain_power
short_description: Start, stop, reboot, pause and suspend this host's libvirt domains
version_added: 0.1.0
description:
  - Brings a list of domains into a power state in one task, at the same time.
  - Each domain is for itself. The task fails when one of them fails, after all others were done, and returns what
    became of each all the same.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.libvirt
attributes:
  check_mode:
    description: Reports what it would do to each domain.
  diff_mode:
    description: Shows the state of each domain before and after.
options:
  domains:
    description: The domains.
    type: list
    elements: dict
    required: true
    suboptions:
      uuid:
        description: UUID of the domain, which is the instance's.
        type: str
        required: true
      name:
        description: Name of the domain, such as V(instance-00000007).
        type: str
        required: true
      xml:
        description:
          - The domain XML that it is to start with. A domain that is off, or missing, is brought to it before that.
          - Required where a domain has to be started.
        type: str
      hard:
        description: With O(state=rebooted), whether its power is cut off without asking the guest.
        type: bool
        default: false
      as_defined:
        description: Whether it is started as it is defined on the host, without O(domains[].xml). It must exist then.
        type: bool
        default: false
      shutdown_timeout:
        description: This domain's own O(shutdown_timeout).
        type: float
  state:
    description:
      - V(running) starts what is off, restores what was suspended, and lets go on what is paused.
      - V(stopped) asks the guest by ACPI to shut down, and cuts off its power if it has not after O(shutdown_timeout).
      - V(paused) stops the guest's CPUs.
      - V(suspended) saves the guest's memory to the host's disk (libvirt's managed save) and ends it.
      - V(rebooted) is V(stopped) and then a start. It always changes something.
    type: str
    choices: [running, stopped, paused, suspended, rebooted]
    default: running
  shutdown_timeout:
    description:
      - Seconds that guests get to shut down, all of them at the same time. V(0) cuts off their power at once.
    type: float
    default: 60
  missing_ok:
    description: Whether a domain that does not exist is as good as one that is V(stopped).
    type: bool
    default: false
seealso:
  - module: novalite.cloud.domain
  - module: novalite.cloud.ledger_step
"""

EXAMPLES = r"""
- name: Stop a guest
  novalite.cloud.domain_power:
    state: stopped
    domains:
      - uuid: 6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11
        name: instance-00000007

- name: Cut off its power and start it anew
  novalite.cloud.domain_power:
    state: rebooted
    domains:
      - uuid: 6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11
        name: instance-00000007
        hard: true
        xml: "{{ lookup('ansible.builtin.file', 'instance-00000007.xml') }}"
"""

RETURN = r"""
domains:
  description: One entry for each of O(domains), in the same order.
  type: list
  elements: dict
  returned: success; C(invocation.domains) on failure
  contains:
    uuid:
      description: UUID of the domain.
      type: str
    name:
      description: Name of the domain.
      type: str
    state:
      description:
        - Its state now (in check mode, the state that it would have). V(saved) is off with its memory on disk,
          V(unknown) what libvirt does not tell.
      type: str
      sample: running
    action:
      description: What was done, such as V(none), V(shut down) or V(power off and start).
      type: str
      sample: shut down
    error:
      description: Why it is not in O(state), or null.
      type: str
"""

from ..module_utils._domain import lifecycle_power
from ..module_utils._domain.outcome import DOMAIN_OPTIONS
from ..module_utils._errors import NovaliteError
from ..module_utils._host.libvirt_connection import DEFAULT_URI, connect
from ..module_utils._host.module import HostCall, HostModuleError, Result, each_for_itself, run_host_module

ARGUMENT_SPEC = {
    "domains": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            **DOMAIN_OPTIONS,
            "hard": {"type": "bool", "default": False},
            "as_defined": {"type": "bool", "default": False},
            "shutdown_timeout": {"type": "float"},
        },
    },
    "state": {
        "type": "str",
        "choices": ["running", "stopped", "paused", "suspended", "rebooted"],
        "default": "running",
    },
    "shutdown_timeout": {"type": "float", "default": lifecycle_power.SHUTDOWN_TIMEOUT},
    "missing_ok": {"type": "bool", "default": False},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    params = call.params
    try:
        outcomes = lifecycle_power.ensure(
            connect(params["uri"]),
            params["domains"],
            params["state"],
            call.check_mode,
            params["shutdown_timeout"],
            params["missing_ok"],
        )
    except NovaliteError as error:
        raise HostModuleError(str(error), domains=[]) from error
    result: Result = {
        "changed": any(outcome.changed for outcome in outcomes),
        "domains": [
            {name: getattr(outcome, name) for name in ("uuid", "name", "state", "action", "error")}
            for outcome in outcomes
        ],
    }
    if call.diff and result["changed"]:
        result["diff"] = lifecycle_power.diff_of(outcomes)
    return each_for_itself(result, (outcome.error for outcome in outcomes))


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
