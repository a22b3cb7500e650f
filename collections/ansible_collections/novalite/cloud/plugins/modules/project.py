#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: project
short_description: Manage projects and their quotas
version_added: 0.1.0
description:
  - Makes, changes and removes projects in the ledger. A project owns instances, keys, security groups, and networks and
    images of its own.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.state
  - novalite.cloud.nouns.project
options:
  projects:
    description: The projects, by name.
    type: list
    elements: dict
    required: true
seealso:
  - module: novalite.cloud.server
"""

EXAMPLES = r"""
- name: Have two projects, one of which may run more
  novalite.cloud.project:
    projects:
      - name: demo
      - name: ci
        quotas:
          instances: 50
          cores: 100
          ram: 204800

- name: Have a project for the operator's own servers, with what the hosts have
  novalite.cloud.project:
    projects:
      - name: fleet
        quotas: unlimited

- name: Remove one that has no instances, networks and images left
  novalite.cloud.project:
    projects:
      - name: ci
    state: absent
"""

RETURN = r"""
projects:
  description: The projects that were named, as they are now. Empty with O(state=absent).
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Id of the project, 32 hexadecimal digits.
      type: str
    name:
      description: Name of the project.
      type: str
    quotas:
      description: All limits by resource.
      type: dict
  sample:
    - {id: 0f0e0d0c0b0a09080706050403020100, name: demo, quotas: {instances: 10, cores: 20, ram: 51200}}
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
