#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: domain
short_description: Define and start, or remove, this host's libvirt domains
version_added: 0.1.0
description:
  - Makes a list of domains run, or be absent, in one task. Domains are started and removed in parallel.
  - A domain that is missing is defined and started. One that is shut off is started, after its persistent definition
    was brought back to O(domains[].xml) if it differs. One that is active is left alone; where it differs is reported
    in RV(domains[].differences).
  - When a domain does not start, what this task defined, started or redefined is undone for the whole list.
  - Two definitions are compared field by field, never as text, so what libvirt adds to a definition is no difference.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.libvirt
attributes:
  check_mode:
    description: Reports what it would do to each domain.
  diff_mode:
    description: Shows the compared fields before and after, and the XML of each new domain.
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
          - The domain XML, which must carry the same O(domains[].uuid) and O(domains[].name).
          - Required if O(state=running) or O(state=defined).
        type: str
  state:
    description:
      - V(running) makes the domains exist and run.
      - V(defined) makes them exist, and starts none.
      - V(absent) destroys and undefines them, with their managed save image, snapshot metadata and NVRAM. Their disks
        are left alone; see M(novalite.cloud.disk).
    type: str
    choices: [running, defined, absent]
    default: running
  only_off:
    description:
      - With O(state=absent), UUIDs of instances that were seen not to run here. When one of them does by now, the
        module fails and removes nothing.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds that a domain may take between its start and its CPUs running.
    type: float
    default: 60
  together:
    description:
      - With O(state=running), start several domains paused, and resume them when all of them are there, so that those
        that boot do not hold up those that are to be started.
      - One that is paused is resumed. For guests that are being built, which nobody else has paused.
    type: bool
    default: false
seealso:
  - module: novalite.cloud.domain_info
"""

EXAMPLES = r"""
- name: Start a domain
  novalite.cloud.domain:
    domains:
      - uuid: 6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11
        name: instance-00000007
        xml: "{{ lookup('ansible.builtin.file', 'instance-00000007.xml') }}"

- name: Remove it
  novalite.cloud.domain:
    domains:
      - uuid: 6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11
        name: instance-00000007
    state: absent
"""

RETURN = r"""
domains:
  description: One entry for each of O(domains), in the same order.
  type: list
  elements: dict
  returned: success
  contains:
    uuid:
      description: UUID of the domain.
      type: str
    name:
      description: Name of the domain.
      type: str
    state:
      description: Its state now (in check mode, the state that it would have).
      type: str
      sample: running
    action:
      description:
        - What was done, one of V(none), V(start), V(redefine and start), V(define and start), V(define), V(resume),
          V(remove).
      type: str
      sample: define and start
    differences:
      description:
        - Where the domain differed from O(domains[].xml) when it was looked at, as field, desired and actual value.
        - C(where) is V(persistent) or V(live); C(effect) is V(live now), V(at next boot) or V(needs a rebuild).
      type: list
      elements: dict
      sample:
        - {field: memory_kib, desired: 98304, actual: 65536, where: persistent, effect: at next boot}
"""

from ..module_utils._domain import lifecycle, lifecycle_power
from ..module_utils._domain.outcome import DOMAIN_OPTIONS, diff_of
from ..module_utils._host.libvirt_connection import DEFAULT_URI, connect
from ..module_utils._host.module import HostCall, Result, run_host_module

ARGUMENT_SPEC = {
    "domains": {"type": "list", "elements": "dict", "required": True, "options": DOMAIN_OPTIONS},
    "state": {"type": "str", "choices": ["running", "defined", "absent"], "default": "running"},
    "only_off": {"type": "list", "elements": "str", "default": []},
    "uri": {"type": "str", "default": DEFAULT_URI},
    "timeout": {"type": "float", "default": lifecycle.START_TIMEOUT},
    "together": {"type": "bool", "default": False},
}


def run(call: HostCall) -> Result:
    params, check_mode = call.params, call.check_mode
    domains, state = params["domains"], params["state"]
    connection = connect(params["uri"])
    if state == "running":
        outcomes = lifecycle.ensure_running(connection, domains, check_mode, params["timeout"], params["together"])
    elif state == "defined":
        outcomes = lifecycle.ensure_defined(connection, domains, check_mode)
    else:
        why = "it was off, or not there, when this host was looked at, so nothing was removed; run again"
        lifecycle_power.refuse_running(connection, params["only_off"], why)
        outcomes = lifecycle.ensure_absent(connection, domains, check_mode)
    result: Result = {
        "changed": any(outcome.changed for outcome in outcomes),
        "domains": [outcome.as_dict() for outcome in outcomes],
    }
    if call.diff:
        result["diff"] = diff_of(outcomes, domains)
    return result


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
