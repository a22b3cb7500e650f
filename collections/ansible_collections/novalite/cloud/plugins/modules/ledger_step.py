#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ledger_step
short_description: Take one of the playbooks' own steps in the ledger
version_added: 0.1.0
description:
  - Playbooks and roles of this collection take these steps on the controller. Each is described, with its options and
    what it returns, in one file, C(plugins/module_utils/_ledger/steps/<step>.py). They may change with any
    release.
  - The arguments are checked as a module's are, before anything is done.
extends_documentation_fragment: [novalite.cloud.ledger]
options:
  step:
    description: The step.
    type: str
    required: true
    choices:
      - backup_files
      - backup_policy
      - balance_turn
      - drift_report
      - firewall_plan
      - group_plan
      - host_identity
      - launch_plan
      - launch_record
      - ledger_heal
      - ledger_rebuild
      - port_plan
      - power_sync
      - rolling
      - samples
      - server_action
      - server_adopt
      - server_cdrom
      - server_ha
      - server_interface
      - server_migration
      - server_plan
      - server_replica
      - server_state
      - stack_plan
      - volume_action
      - watch
      - whereabouts
  args:
    description: The step's own options.
    type: dict
    default: {}
seealso:
  - module: novalite.cloud.host_step
"""

EXAMPLES = r"""
- name: Work out what every host's firewall must hold
  novalite.cloud.ledger_step:
    step: firewall_plan
  register: novalite_plan
"""

RETURN = r"""
diff:
  description: What changes, C(before) and C(after). The step's file says what else is returned.
  returned: when something changes
  type: dict
"""

from ..module_utils._ledger_module import module_of


def main() -> None:
    message = "a step is taken by the action plug-in of this name: use novalite.cloud.ledger_step in a task"
    module_of(DOCUMENTATION).fail_json(msg=message)


if __name__ == "__main__":
    main()
