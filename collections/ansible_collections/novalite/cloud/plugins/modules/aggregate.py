#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: aggregate
short_description: Manage host aggregates and availability zones
version_added: 0.1.0
description:
  - Makes, changes and removes aggregates, named sets of compute hosts with metadata that filters and weighers of
    M(novalite.cloud.scheduler) read.
  - An aggregate with a zone is an availability zone. A host is in one availability zone at most. To put it into a
    second one, or into another one than its inventory names (option O(novalite.cloud.compute_host#module:zone)), is an
    error.
  - A host is also in the aggregates that its inventory names, option O(novalite.cloud.compute_host#module:aggregates).
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.state
options:
  aggregates:
    description:
      - The aggregates, by name.
      - What is left out of an existing aggregate stays as it is.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the aggregate.
        type: str
        required: true
      zone:
        description: Availability zone that the hosts are in. An empty text takes it away.
        type: str
      metadata:
        description:
          - Keys and texts. Replaces all metadata of the aggregate.
          - What they mean depends on the filters in use. C(filter_tenant_id), for example, keeps the hosts for one
            project, and C(cpu_weight_multiplier) overrides a multiplier on them.
        type: dict
      hosts:
        description: Names of the compute hosts in it. Replaces all hosts that were named here before.
        type: list
        elements: str
seealso:
  - module: novalite.cloud.compute_host
  - module: novalite.cloud.scheduler
"""

EXAMPLES = r"""
- name: Have a zone for each rack, and say which hosts have SSDs
  novalite.cloud.aggregate:
    aggregates:
      - {name: rack-a, zone: az-a, hosts: [hv1, hv2]}
      - {name: rack-b, zone: az-b, hosts: [hv3]}
      - name: fast
        hosts: [hv1, hv3]
        metadata:
          ssd: "true"

- name: Make a zone of an inventory's group
  novalite.cloud.aggregate:
    aggregates:
      - name: rack-c
        zone: az-c
        hosts: "{{ groups['rack_c'] }}"
"""

RETURN = r"""
aggregates:
  description: The aggregates that were named, as they are now. Empty with O(state=absent).
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Number of the aggregate.
      type: int
    name:
      description: Name of the aggregate.
      type: str
    zone:
      description: Its availability zone, or null.
      type: str
    metadata:
      description: Its metadata.
      type: dict
    hosts:
      description: Its compute hosts, without those whose inventory names it.
      type: list
      elements: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
