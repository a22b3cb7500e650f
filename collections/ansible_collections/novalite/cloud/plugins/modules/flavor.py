#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: flavor
short_description: Manage flavors, the sizes that instances come in
version_added: 0.1.0
description:
  - Makes, changes and removes flavors in the ledger.
  - An instance carries a copy of its flavor from its launch on. To change or remove a flavor touches no instance.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.state
options:
  flavors:
    description:
      - The flavors, by name.
      - What is left out of an existing flavor stays as it is.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the flavor, such as V(m1.small).
        type: str
        required: true
      vcpus:
        description: Number of virtual CPUs. Required for a new flavor.
        type: int
      memory_mb:
        description: Memory in MiB. Required for a new flavor.
        type: int
      root_gb:
        description:
          - Size of the root disk in GiB. V(0) means as large as the image.
          - V(0) for a new flavor that does not say.
        type: int
      ephemeral_gb:
        description: Size of the ephemeral disk in GiB. V(0) for a new flavor that does not say.
        type: int
      swap_mb:
        description: Size of the swap disk in MiB. V(0) for a new flavor that does not say.
        type: int
      extra_specs:
        description: What else hosts must offer, in Nova's terms. Replaces all extra specs of the flavor.
        type: dict
seealso:
  - module: novalite.cloud.server
"""

EXAMPLES = r"""
- name: Have the usual sizes
  novalite.cloud.flavor:
    flavors:
      - {name: m1.tiny, vcpus: 1, memory_mb: 512}
      - {name: m1.small, vcpus: 1, memory_mb: 2048, root_gb: 20}
      - name: c1.pinned
        vcpus: 4
        memory_mb: 8192
        root_gb: 40
        extra_specs:
          "trait:HW_CPU_X86_AVX2": required

- name: Remove one
  novalite.cloud.flavor:
    flavors:
      - name: m1.tiny
    state: absent
"""

RETURN = r"""
flavors:
  description: The flavors that were named, as they are now. Empty with O(state=absent).
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: Number of the flavor.
      type: int
    name:
      description: Name of the flavor.
      type: str
    vcpus:
      description: Number of virtual CPUs.
      type: int
    memory_mb:
      description: Memory in MiB.
      type: int
    root_gb:
      description: Size of the root disk in GiB.
      type: int
    ephemeral_gb:
      description: Size of the ephemeral disk in GiB.
      type: int
    swap_mb:
      description: Size of the swap disk in MiB.
      type: int
    extra_specs:
      description: What else hosts must offer.
      type: dict
    flavorid:
      description: What clients of the API name it by, if that is not its number.
      type: str
    is_public:
      description: Whether every project may use it by the API.
      type: bool
    description:
      description: What the API says about it.
      type: str
  sample:
    - id: 1
      name: m1.tiny
      vcpus: 1
      memory_mb: 512
      root_gb: 0
      ephemeral_gb: 0
      swap_mb: 0
      extra_specs: {}
      flavorid: null
      is_public: true
      description: null
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
