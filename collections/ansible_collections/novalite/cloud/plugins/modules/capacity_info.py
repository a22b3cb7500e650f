#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: capacity_info
short_description: Tell how many more instances of a flavor fit, and what is in the way
version_added: 0.1.0
description:
  - Asks the scheduler's filters, with what the ledger knows, how many more instances of a flavor each compute host
    could hold, and what refuses the next one. Claims nothing.
  - A host counts as up when it was when it last reported, however long ago. Run M(novalite.cloud.compute_host) before
    for what is so now.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.scheduling
  - novalite.cloud.ledger.project
options:
  project:
    description: Name of the project that asks. It decides which images are seen, and where its instances may run.
  flavor:
    description: Name of the flavor.
    type: str
    required: true
  image:
    description:
      - Name of the image, which may say what hosts must be like.
      - Its size is what a flavor without a root size takes.
    type: str
  availability_zone:
    description: Only hosts of this availability zone.
    type: str
  requirements:
    description: Only hosts that meet this expression, as in M(novalite.cloud.server).
    type: str
seealso:
  - module: novalite.cloud.scheduler
"""

EXAMPLES = r"""
- name: Ask how many more fit
  novalite.cloud.capacity_info:
    flavor: m1.small
    image: ami-tiny
  register: capacity
"""

RETURN = r"""
fits:
  description: How many more fit in all.
  returned: success
  type: int
  sample: 12
bottleneck:
  description: The filter that closes most hosts to the next instance, or null.
  returned: success
  type: str
  sample: ram
bottlenecks:
  description: How many hosts each filter closes to the next instance.
  returned: success
  type: dict
  sample: {ram: 2, compute: 1}
hosts:
  description: The hosts by name.
  returned: success
  type: list
  elements: dict
  contains:
    host:
      description: Name of the host.
      type: str
    fits:
      description: How many more fit on it.
      type: int
    bottleneck:
      description: The filter that refuses the next one, or null.
      type: str
    reason:
      description: What it says, or null.
      type: str
    used_by_others:
      description: What guests take of it that are not in the ledger, as C(vcpus), C(memory_mb) and C(disk_gb).
      type: dict
msg:
  description: The result in one line.
  returned: success
  type: str
  sample: 12 more of m1.small fit; ram is in the way of more on 2 of 3 hosts
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
