#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_step
short_description: Take one of the playbooks' own steps on a compute host
version_added: 0.1.0
description:
  - Roles and playbooks of this collection have compute hosts take these steps. Each is described, with its options and
    what it returns, in one file, C(plugins/module_utils/_steps/<step>.py). They may change with any release.
  - The arguments are checked as a module's are, before anything is done on the host.
  - M(novalite.cloud.host_steps) runs several of them, and modules, in one trip.
  - Some have a part on the controller. V(host_drift), V(host_record) and V(orphans) open the ledger there, V(disk_move)
    learns who logs in to the host, V(disk_snapshot) fetches what it made, and V(server_backup) is given the key of the
    store. M(novalite.cloud.host_steps) leaves that
    part out.
extends_documentation_fragment: [novalite.cloud.changes, novalite.cloud.ledger.home]
attributes:
  check_mode:
    description: Nothing is changed.
  diff_mode:
    description: Returns the step's diff.
  action_group:
    support: full
    membership: [novalite.cloud.cloud, novalite.cloud.ledger]
    description: Use C(group/novalite.cloud.ledger) in C(module_defaults) to set O(home) or O(ledger_url) once.
notes:
  - The ledger is opened on the controller, whatever host the task runs for.
options:
  step:
    description: The step.
    type: str
    required: true
    choices:
      - backup_files
      - counters
      - disk_move
      - disk_snapshot
      - domain_adopt
      - domain_cdroms
      - domain_interfaces
      - domain_password
      - domain_size
      - epoch_token
      - host_drift
      - host_files
      - host_look
      - host_record
      - live_migration
      - nfs_mount
      - orphans
      - peer_look
      - server_backup
      - server_replica
      - server_snapshot
      - stale_devices
      - state_labels
      - volume_attach
      - volume_backup
      - volume_disk
  args:
    description: The step's own options.
    type: dict
    default: {}
seealso:
  - module: novalite.cloud.host_steps
"""

EXAMPLES = r"""
- name: Read what the host keeps of the ledger
  novalite.cloud.host_step:
    step: host_record
    args: {state: read}
  register: kept

- name: Mount what all compute hosts share
  novalite.cloud.host_step:
    step: nfs_mount
    args:
      shares: [{name: tank, source: "files.example.org:/srv/volumes"}]
"""

RETURN = r"""
diff:
  description: What changes, C(before) and C(after). The step's file says what else is returned.
  returned: when something changes
  type: dict
"""

from ..module_utils._host.module import run_host_step
from ..module_utils._steps import (
    backup_files,
    counters,
    disk_move,
    disk_snapshot,
    domain_adopt,
    domain_cdroms,
    domain_interfaces,
    domain_password,
    domain_size,
    epoch_token,
    host_drift,
    host_files,
    host_look,
    host_record,
    live_migration,
    nfs_mount,
    orphans,
    peer_look,
    server_backup,
    server_replica,
    server_snapshot,
    stale_devices,
    state_labels,
    volume_attach,
    volume_backup,
    volume_disk,
)

# Named one by one, for Ansible brings to a host what a module imports
STEPS = {
    step.__name__.rpartition(".")[2]: step
    for step in (
        backup_files,
        counters,
        disk_move,
        disk_snapshot,
        domain_adopt,
        domain_cdroms,
        domain_interfaces,
        domain_password,
        domain_size,
        epoch_token,
        host_drift,
        host_files,
        host_look,
        host_record,
        live_migration,
        nfs_mount,
        orphans,
        peer_look,
        server_backup,
        server_replica,
        server_snapshot,
        stale_devices,
        state_labels,
        volume_attach,
        volume_backup,
        volume_disk,
    )
}
ARGUMENT_SPEC = {
    "step": {"type": "str", "required": True, "choices": sorted(STEPS)},
    "args": {"type": "dict", "default": {}},
    # as in the documentation fragment `ledger`, of which a hypervisor can make nothing
    "home": {"type": "path"},
    "ledger_url": {"type": "str", "no_log": True},
}


def main() -> None:
    run_host_step(ARGUMENT_SPEC, STEPS)


if __name__ == "__main__":
    main()
