#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: server_group
short_description: Manage server groups, servers that shall run together or apart
version_added: 0.1.0
description:
  - Makes, changes and removes the server groups of a project. A server joins one at its launch, by the hint C(group)
    of M(novalite.cloud.server), and leaves it when it is deleted.
  - A server is in one group at most. The quotas C(server_groups) and C(server_group_members) bound both.
  - The policy of a group that has servers cannot be changed. A group that is removed leaves its servers where they are.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.project
  - novalite.cloud.ledger.state
options:
  server_groups:
    description: The groups, by name.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the group, unique in its project.
        type: str
        required: true
      policy:
        description:
          - V(affinity) keeps all servers on one host, V(anti-affinity) on different hosts. What cannot be kept is not
            launched.
          - V(soft-affinity) and V(soft-anti-affinity) only prefer such hosts. They take effect with the choice
            V(filter_scheduler) of M(novalite.cloud.scheduler), and launch in any case.
          - Required for a new group.
        type: str
        choices: [affinity, anti-affinity, soft-affinity, soft-anti-affinity]
      max_server_per_host:
        description: With V(anti-affinity), how many servers may share a host. V(1) for a group that does not say.
        type: int
seealso:
  - module: novalite.cloud.server
  - module: novalite.cloud.scheduler
"""

EXAMPLES = r"""
- name: Have groups for what must not fail at once, and for what talks a lot
  novalite.cloud.server_group:
    server_groups:
      - {name: database, policy: anti-affinity}
      - {name: workers, policy: anti-affinity, max_server_per_host: 2}
      - {name: cache, policy: soft-affinity}

- name: Launch into one
  novalite.cloud.server:
    servers:
      - name: db
        count: 3
        flavor: m1.small
        image: ami-tiny
        hints:
          group: database
"""

RETURN = r"""
server_groups:
  description: The groups that were named, as they are now. Empty with O(state=absent).
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: UUID of the group.
      type: str
    name:
      description: Name of the group.
      type: str
    policy:
      description: Its policy.
      type: str
    max_server_per_host:
      description: How many of its servers may share a host, for V(anti-affinity).
      type: int
    members:
      description: UUIDs of its servers.
      type: list
      elements: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
