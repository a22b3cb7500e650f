#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: power_sync
short_description: Let the ledger follow guests that changed their state by themselves
version_added: 0.1.0
description:
  - A guest can shut itself down, and a person can use virsh. Records what was found, and does nothing to a guest.
  - Instances that something is being done to, or was since, are left as they are.
extends_documentation_fragment:
  - novalite.cloud.ledger
options:
  observed:
    description: What was found, once for each host. Without it, RV(hosts) tells where to look.
    type: list
    elements: dict
    suboptions:
      domains:
        description:
          - The C(uuid) and the C(state) of each domain, as M(novalite.cloud.domain_info) returns them. Of a state that
            says nothing of the guest, such as V(missing), nothing is recorded.
        type: list
        elements: dict
        required: true
      updated_at:
        description: What RV(hosts) had for these.
        type: dict
        required: true
seealso:
  - module: novalite.cloud.server_action
  - module: novalite.cloud.domain_info
"""

EXAMPLES = r"""
- name: Ask where to look
  novalite.cloud.power_sync:
  register: asked

- name: Record that a guest has shut itself down
  novalite.cloud.power_sync:
    observed:
      - domains:
          - {uuid: 5e9ffd77-49b4-4c87-9a1f-8ed1d6ff5a0c, state: shutoff}
        updated_at: {5e9ffd77-49b4-4c87-9a1f-8ed1d6ff5a0c: 1767225600}
"""

RETURN = r"""
hosts:
  description:
    - For each compute host C(domains), those of its instances that nothing is being done to, as
      M(novalite.cloud.domain_info) takes them, and C(updated_at).
  returned: success
  type: dict
followed:
  description: The instances that this changed, C(uuid), C(name), C(before) and C(after).
  returned: success
  type: list
  elements: dict
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
