#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ledger_heal
short_description: Put right what killed runs left in the ledger
version_added: 0.1.0
description:
  - Finds and corrects what does not fit together in the ledger, and reports each correction. With C(--check --diff) it
    only reports.
  - Instances whose build nobody goes on with become errors, with a fault that says so, and give back their claim and
    addresses. Launching them again builds them anew.
  - Other actions that nobody goes on with end with an error, so that new ones may begin. Those that a job of the API
    waits for are left alone.
  - Claims of instances that are gone, in error or on another host are released, the sums of what is used on each
    compute host are made those of its claims, addresses of interfaces that are gone return to their pool, and
    interfaces of deleted instances go.
  - It touches the ledger alone, no hypervisor. Run it whenever you like, also while others launch.
extends_documentation_fragment:
  - novalite.cloud.ledger
options:
  build_timeout:
    description:
      - After how many seconds without a sign of life a build, or another action, was abandoned.
      - Its run may be alive all the same, if something on the hypervisor takes longer than this. What it built is then
        refused when it is reported, so give more than your slowest step takes.
    type: int
    default: 600
seealso:
  - module: novalite.cloud.server
  - module: novalite.cloud.server_state
"""

EXAMPLES = r"""
- name: See what a crash left behind, with --check --diff, or put it right
  novalite.cloud.ledger_heal:

- name: The controller was restarted, so no run is alive
  novalite.cloud.ledger_heal:
    build_timeout: 0
"""

RETURN = r"""
corrections:
  description: What was wrong, in the order in which it was put right.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: The ledger's table, V(instance), V(allocation), V(compute_host), V(fixed_ip) or V(vif).
      type: str
    name:
      description: What a person calls the row.
      type: str
    reason:
      description: What was wrong with it.
      type: str
    before:
      description: The row's columns that were wrong.
      type: dict
    after:
      description: The same columns as they are now, or null when the row is gone.
      type: dict
deletions:
  description:
    - Instances whose deletion nobody goes on with, each with C(uuid), C(name), C(host) and the seconds that it was
      C(silent) for. Only their hosts can end it; nothing was done to these.
  returned: success
  type: list
  elements: dict
msg:
  description: The number of corrections, and the first of them, in one line.
  returned: success
  type: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
