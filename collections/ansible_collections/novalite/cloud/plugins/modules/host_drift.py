#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_drift
short_description: Find where a hypervisor is not as the ledger says
version_added: 0.1.0
description:
  - Looks, on the hypervisor, at what carries novalite's names or metadata. An action plug-in of the same name then
    compares it with the ledger on the controller, and works out what is to be done about each difference.
  - Instances that something is being done to, or was since the look began, are not judged.
  - Guests that the ledger wants to run and that do not are marked as being rebooted, so that nobody else is at them;
    M(novalite.cloud.server_action) is to be told the outcome. Guests that shut themselves down, or that a person
    started or paused, are followed in the ledger. Instances whose disk is gone become errors, and keep their claim.
  - Only what belonged to instances of this ledger is ever to be removed. The hypervisor itself is not changed.
extends_documentation_fragment:
  - novalite.cloud.ledger.home
  - novalite.cloud.ledger.host
  - novalite.cloud.ledger.scan
  - novalite.cloud.state_dir
  - novalite.cloud.libvirt
options:
  removed_days:
    description: For how many days the disks that repairs removed are kept.
    type: int
    default: 14
"""

EXAMPLES = r"""
- name: Compare a hypervisor with the ledger
  novalite.cloud.host_drift:
  register: compared

- name: Remove what no instance owns
  ansible.builtin.include_role:
    name: novalite.cloud.reclaim
  vars:
    reclaim_plan: "{{ compared.plan }}"
  when: compared.left
"""

RETURN = r"""
rows:
  description: The differences, except those that the modules of RV(keep) find themselves.
  returned: success
  type: list
  elements: dict
  contains:
    host:
      description: The compute host.
      type: str
    object:
      description: What differs.
      type: str
    ledger:
      description: What the ledger says.
      type: str
    there:
      description: What is there.
      type: str
    repair:
      description: What is to be done, or was.
      type: str
plan:
  description: What no instance owns, as the role P(novalite.cloud.reclaim#role) takes it.
  returned: success
  type: dict
left:
  description: Whether there is anything in RV(plan).
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
keep:
  description: What the host's instances stand on, as the role P(novalite.cloud.spawn#role) takes it; null with none.
  returned: success
  type: dict
images:
  description: Images that the cache has lost, as M(novalite.cloud.image_cache) takes them.
  returned: success
  type: list
  elements: dict
disks:
  description: Disks of which files are missing that can be made again, as M(novalite.cloud.disk) takes them.
  returned: success
  type: list
  elements: dict
restore:
  description: Instances whose disks a reverted resize did not bring back, as M(novalite.cloud.disk_move) takes moves.
  returned: success
  type: list
  elements: dict
forget:
  description: Instances with copies of disks that no resize needs, as M(novalite.cloud.disk_move) takes moves.
  returned: success
  type: list
  elements: dict
cut_off_moves:
  description: Moves that are not under way and have something open here, as M(novalite.cloud.disk_move) takes moves.
  returned: success
  type: list
  elements: dict
grow:
  description: Disks that may not have the new sizes of their instances yet, as M(novalite.cloud.disk_move) takes them.
  returned: success
  type: list
  elements: dict
empty:
  description: Days of the bin whose time is over, as M(novalite.cloud.disk) takes O(novalite.cloud.disk#module:days).
  returned: success
  type: list
  elements: str
stale_devices:
  description: What is to be detached, as M(novalite.cloud.stale_devices) takes it.
  returned: success
  type: list
  elements: dict
define:
  description: Domains that are to be defined, as M(novalite.cloud.domain) takes them.
  returned: success
  type: list
  elements: dict
restart:
  description: Domains that are to be started, as M(novalite.cloud.domain_power) takes them.
  returned: success
  type: list
  elements: dict
found:
  description: What carries novalite's names or metadata on the host.
  returned: success
  type: dict
"""

from ..module_utils._drift import host_scan
from ..module_utils._host_module import HostCall, Result, run_host_module

ARGUMENT_SPEC = {**host_scan.ARGUMENT_SPEC, "removed_days": {"type": "int", "default": 14}}


def run(call: HostCall) -> Result:
    return {"changed": False, "found": host_scan.scan(call.params["state_dir"], call.params["uri"])}


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
