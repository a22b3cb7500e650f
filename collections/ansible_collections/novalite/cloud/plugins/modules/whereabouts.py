#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: whereabouts
short_description: Find which hypervisors have guests that the ledger has elsewhere
version_added: 0.1.0
description:
  - Puts together what all hypervisors of a run were seen to have, and returns for each what the others have of the
    guests that it has, or should have. The step V(host_drift) removes nothing that runs, and no disk that may be
    the only copy, without knowing that.
  - With O(accept) the ledger follows guests to where they are.
extends_documentation_fragment:
  - novalite.cloud.ledger
options:
  seen:
    description:
      - The hypervisors that were looked at, each by its name, with C(seen) of the step V(host_drift).
      - Of all others that the ledger knows, it counts as not known what they have.
    type: dict
    required: true
  accept:
    description:
      - Hypervisors whose guests the ledger is to follow, with host, claim, volumes and power state, of guests that run
        there and nowhere else, or whose only disk is there.
    type: list
    elements: str
    default: []
  rehearsal:
    description: What earlier tasks of a run in check mode did and took back, as the step V(host_drift) takes it.
    type: dict
seealso:
  - module: novalite.cloud.host_step
"""

EXAMPLES = r"""
- name: Find which hosts have what
  novalite.cloud.whereabouts:
    seen: "{{ groups.compute | novalite.cloud.by_host(hostvars, 'looked.seen') }}"
  register: whereabouts
"""

RETURN = r"""
hosts:
  description: For each hypervisor that was looked at, what the step V(host_drift) takes as C(elsewhere).
  returned: success
  type: dict
accepted:
  description: The guests that the ledger followed, with C(uuid), C(from_host), C(to_host), C(runs) and C(volumes).
  returned: success
  type: list
  elements: dict
corrections:
  description: The same, as M(novalite.cloud.drift_report) takes them.
  returned: success
  type: list
  elements: dict
refusals:
  description: Why the ledger does not follow others on the hypervisors of O(accept).
  returned: success
  type: list
  elements: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
