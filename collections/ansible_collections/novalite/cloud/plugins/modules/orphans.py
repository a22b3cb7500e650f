#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: orphans
short_description: Find what is left on a hypervisor of instances that are not there
version_added: 0.1.0
description:
  - A hypervisor that breaks in the middle of a build cannot undo it. The instance is built elsewhere, and what it left
    behind is to be removed when the hypervisor is back.
  - Lists, on the hypervisor, what carries novalite's names or metadata. An action plug-in of the same name then
    compares it with the ledger on the controller, and works out what the role P(novalite.cloud.reclaim#role) is to take
    away.
  - Only what belonged to instances of this ledger is taken for left over. The host's own addresses in networks that it
    does not serve any more are given back in the ledger; nothing else is changed.
extends_documentation_fragment:
  - novalite.cloud.ledger.home
  - novalite.cloud.ledger.host
  - novalite.cloud.ledger.scan
  - novalite.cloud.state_dir
  - novalite.cloud.libvirt
"""

EXAMPLES = r"""
- name: Find what is left
  novalite.cloud.orphans:
  register: found

- name: Remove it
  ansible.builtin.include_role:
    name: novalite.cloud.reclaim
  vars:
    reclaim_plan: "{{ found.plan }}"
  when: found.left
"""

RETURN = r"""
plan:
  description: What is left, as the role P(novalite.cloud.reclaim#role) takes it.
  returned: success
  type: dict
left:
  description: Whether there is anything left.
  returned: success
  type: bool
seen:
  description:
    - What the host has of each instance (C(sights)), and its C(volumes), as M(novalite.cloud.whereabouts) takes it.
  returned: with O(look_only)
  type: dict
began:
  description: When the look began, by the controller's monotonic clock.
  returned: with O(look_only)
  type: float
contested:
  description:
    - What stays although the ledger has it elsewhere, each with C(uuid), C(name), the reason (C(why)), and the host
      that would have to be asked (C(ask)).
  returned: without O(look_only)
  type: list
  elements: dict
proofs:
  description: The C(proof) by which something is in RV(plan), and the reason in words (C(why)), by the instance's UUID.
  returned: without O(look_only)
  type: dict
unknown:
  description: Domains with novalite's metadata that this ledger never heard of, each with C(uuid) and C(name).
  returned: success
  type: list
  elements: dict
found:
  description: What carries novalite's names or metadata on the host, left over or not.
  returned: success
  type: dict
"""

from ..module_utils._drift.host_scan import ARGUMENT_SPEC, scan
from ..module_utils._host_module import HostCall, Result, run_host_module


def run(call: HostCall) -> Result:
    return {"changed": False, "found": scan(call.params["state_dir"], call.params["uri"])}


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
