#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: reserve_info
short_description: Tell whether the other hosts have room for the instances of a host that dies
version_added: 0.1.0
description:
  - Places the instances of each compute host on the others, the largest first, with the scheduler's filters and with
    the groups and hints of the instances, and tells which would find no host. Claims and moves nothing.
  - Adopted instances, and those with a volume that is on their host alone, can be made anew nowhere.
  - A host counts as up when it was when it last reported, however long ago. Run M(novalite.cloud.compute_host) before
    for what is so now. A host that is down or disabled takes nobody.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.scheduling
options:
  host:
    description: Name of the only host to ask about. All that have instances when left out.
    type: str
seealso:
  - module: novalite.cloud.capacity_info
  - module: novalite.cloud.balance_plan
"""

EXAMPLES = r"""
- name: Ask whether one host may fail
  novalite.cloud.reserve_info:
  register: reserve

- name: Fail where it may not
  ansible.builtin.assert:
    that: reserve.hosts | map(attribute='stranded') | flatten | length == 0
    fail_msg: "{{ reserve.msg }}"
"""

RETURN = r"""
hosts:
  description: The hosts that have instances, each as if it died alone.
  returned: success
  type: list
  elements: dict
  contains:
    host:
      description: Name of the host.
      type: str
    instances:
      description: How many instances are on it.
      type: int
    takers:
      description: How many of them each other host would take.
      type: dict
      sample: {hv2: 3, hv3: 1}
    stranded:
      description: Those that would find no host, each with C(uuid), C(name) and C(reason).
      type: list
      elements: dict
msg:
  description: The result in one line.
  returned: success
  type: str
  sample: if hv1 died, 2 of its 5 instances would find no host (db, web-3)
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
