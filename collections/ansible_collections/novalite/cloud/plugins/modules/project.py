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
options:
  projects:
    description: The projects, by name.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the project, of at most 64 characters.
        type: str
        required: true
      quotas:
        description:
          - Limits by resource. V(-1) is unlimited. What is not named stays as it is.
          - The word V(unlimited) stands for V(-1) of everything that a project has some of, for a cloud that is its
            operator's alone. What one request may bring (metadata, injected files) and V(jobs) stay bounded.
          - The resources, and what a project has that never said otherwise, are V(instances) 10, V(cores) 20,
            V(ram) 51200 MiB, V(fixed_ips) -1, V(floating_ips) 10, V(key_pairs) 100, V(security_groups) 10,
            V(security_group_rules) 20 for each group, V(networks) 3 and V(images) 100 of its own,
            V(image_size_total) 102400 MiB of images that it uploads, V(server_groups) 10,
            V(server_group_members) 10 for each group, V(metadata_items) 128 and V(injected_files) 5 for each instance,
            V(injected_file_content_bytes) 10240 and V(injected_file_path_length) 255 for each file,
            V(jobs) 500 that wait or run.
        type: raw
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
