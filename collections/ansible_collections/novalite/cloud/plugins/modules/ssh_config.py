#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ssh_config
short_description: Keeps an ssh_config through which every instance is reached
version_added: 0.1.0
description:
  - Writes an ssh_config on the controller by which each active instance is reached through its compute host, so that
    C(ssh -F FILE NAME) logs in.
  - It includes a file for each instance, in a directory beside it (C(ssh_config.d) for C(ssh_config)). What is written
    for one instance does not grow with the cloud.
  - A guest's host key is remembered by the UUID of the instance, so that an address that is used again raises no alarm
    and hides none.
extends_documentation_fragment: [novalite.cloud.ledger]
attributes:
  check_mode:
    description: Can run in check_mode and return changed status prediction without modifying target.
    support: full
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in check_mode).
    support: full
options:
  path:
    description:
      - The ssh_config to write. Guests' host keys go to C(known_hosts) beside it.
      - Left out, it is C(ssh_config) in the ledger's O(home).
    type: path
  group:
    description:
      - The inventory group of the compute hosts. The jump goes through them as Ansible itself reaches them.
      - Left out, it is what the variable C(novalite_compute_group) says, or else C(compute).
    type: str
  uuids:
    description:
      - The instances whose ways in may be others than before, or which are gone. The files of those who share a name or
        an address with them are looked at, too.
      - Left out, the files of all instances are written, as they are where the ways to compute hosts have changed.
    type: list
    elements: str
  identity_file:
    description:
      - Private key to offer to the guests. Left out, it is what the variable C(novalite_identity_file) says.
      - Without any, ssh offers what it has.
    type: path
  forget:
    description: UUIDs of instances whose host keys are forgotten, since their disks were made anew.
    type: list
    elements: str
    default: []
  servers:
    description: Instances to return the way in for.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Write the ways in
  novalite.cloud.ssh_config:

- name: Write the way in to one instance
  novalite.cloud.ssh_config:
    uuids: [6f2e0c0e-51c0-4d9e-8a3d-6a2f6f1f8a11]

- name: Write them elsewhere
  novalite.cloud.ssh_config:
    path: /etc/ssh/ssh_config.d/guests.conf
    group: hypervisors
"""

RETURN = r"""
access:
  description: The way in to each of O(servers).
  type: list
  elements: dict
  returned: always
  sample:
    - name: web
      uuid: 6f2e0c0e-51c0-4d9e-8a3d-6a2f6f1f8a11
      host: hv1
      ip: 10.20.0.3
      ssh: ssh -F /var/lib/novalite/ssh_config 6f2e0c0e-51c0-4d9e-8a3d-6a2f6f1f8a11
      console: ssh -t -F /var/lib/novalite/ssh_config hv1 'exec virsh console instance-00000007'
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
