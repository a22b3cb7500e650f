#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: drift_report
short_description: Tell how ledger and hypervisors differ
version_added: 0.1.0
description:
  - Puts together what the modules found, and in check mode would have done, into a table for people and a report for
    programs. Changes nothing.
extends_documentation_fragment:
  - novalite.cloud.ledger
options:
  corrections:
    description: What M(novalite.cloud.ledger_heal) returned as RV(novalite.cloud.ledger_heal#module:corrections).
    type: list
    elements: dict
    default: []
  deletions:
    description: What M(novalite.cloud.ledger_heal) returned as RV(novalite.cloud.ledger_heal#module:deletions).
    type: list
    elements: dict
    default: []
  hosts:
    description:
      - The hypervisors, each by its name, with the C(rows) of the step V(host_drift), what C(failed), and
        the C(steps) that M(novalite.cloud.host_steps) took to ensure networks and, C(taken), to take instances away.
    type: dict
    default: {}
  failures:
    description: What could not be repaired.
    type: list
    elements: str
    default: []
  repaired:
    description: Whether the repairs were made.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Tell what was found
  novalite.cloud.drift_report:
    corrections: "{{ repaired.corrections }}"
    hosts:
      hv1:
        rows: "{{ hostvars.hv1.compared.rows }}"
        steps: "{{ hostvars.hv1.spawn_networks.steps }}"
        taken: "{{ hostvars.hv1.reclaim_done.steps }}"
        failed:
"""

RETURN = r"""
table:
  description: The differences as lines.
  returned: success
  type: list
  elements: str
in_words:
  description: How many there are, in one line.
  returned: success
  type: str
pending:
  description: How many there are.
  returned: success
  type: int
report:
  description: The same for programs.
  returned: success
  type: dict
  contains:
    differences:
      description: The rows of the table, each with C(host), C(object), C(ledger), C(there) and C(repair).
      type: list
      elements: dict
    failures:
      description: What could not be repaired.
      type: list
      elements: str
    repaired:
      description: Whether the repairs were made; V(false) in check mode.
      type: bool
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
