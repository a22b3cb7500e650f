#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: compute_service
short_description: Take compute hosts out of scheduling, and put them back
version_added: 0.1.0
description:
  - Writes into the ledger whether the scheduler may choose a compute host. The host itself is not asked, so that it may
    be down. What runs on it goes on running.
  - This holds until it is said otherwise. The next gathering of the host's facts does not change it, unless the
    inventory says O(novalite.cloud.compute_host#module:enabled) (the role's variable C(compute_node_enabled)) itself.
    What is written there is meant to last, and wins.
extends_documentation_fragment:
  - novalite.cloud.ledger
options:
  hosts:
    description: Names of the compute hosts.
    type: list
    elements: str
    required: true
  enabled:
    description: Whether the scheduler may choose them.
    type: bool
    required: true
  disabled_reason:
    description: Why not. Shown in the explanation of every scheduling that passes them over.
    type: str
seealso:
  - module: novalite.cloud.compute_host
"""

EXAMPLES = r"""
- name: Take a host out before its repair
  novalite.cloud.compute_service:
    hosts: [hv2]
    enabled: false
    disabled_reason: the fan is being replaced

- name: Put it back
  novalite.cloud.compute_service:
    hosts: [hv2]
    enabled: true
"""

RETURN = r"""
compute_hosts:
  description: The hosts as they are now.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the host.
      type: str
    enabled:
      description: Whether the scheduler may choose it.
      type: bool
    disabled_reason:
      description: Why not, or null.
      type: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
