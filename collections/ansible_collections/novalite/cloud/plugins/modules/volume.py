#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: volume
short_description: Manage volumes and their types in the ledger
version_added: 0.1.0
description:
  - Says which volumes a project has, how large they are and what they are made of. The hosts do the rest, see
    C(playbooks/volumes.yml), with what the step V(volume_action) says of the volumes in RV(begun).
  - An empty volume is on no host until a server gets it. Then it is made on the server's host.
  - A volume is made larger, and never smaller. Where it is, and its type, cannot be changed.
  - The quotas C(volumes), C(gigabytes) and C(per_volume_gigabytes) bound them.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.project
  - novalite.cloud.ledger.state
  - novalite.cloud.nouns.volume
options:
  volumes:
    description: The volumes, by name. Without, all of the project's are returned.
    type: list
    elements: dict
  types:
    description: Volume types that there shall be. One that is there stays as it is.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the type.
        type: str
        required: true
      backend:
        description:
          - V(file) on the compute host, V(lvm) in one of its volume groups, V(nfs) on a share that all hosts mount, so
            that a volume can follow its server.
        type: str
        choices: [file, lvm, nfs]
        default: file
      options:
        description:
          - C(format) (V(qcow2) or V(raw)) for files, C(volume_group) for V(lvm), C(share) for V(nfs), and C(hosts), the
            compute hosts that have it.
        type: dict
      description:
        description: Free text.
        type: str
  limit_to:
    description: Names of the only compute hosts to choose among. All that the ledger knows, when left out.
    type: list
    elements: str
seealso:
  - module: novalite.cloud.ledger_step
"""

EXAMPLES = r"""
- name: Have a volume, and one on shared storage
  novalite.cloud.volume:
    types:
      - {name: shared, backend: nfs, options: {share: tank}}
    volumes:
      - {name: data, size: 10}
      - {name: home, size: 100, type: shared}
"""

RETURN = r"""
volumes:
  description: The volumes that were named, or all, as they are now.
  returned: success
  type: list
  elements: dict
touched:
  description: What a host has to do for which volume, with C(id), C(name), C(does) and C(host).
  returned: success
  type: list
  elements: dict
begun:
  description: UUIDs of those that a host has something to do for.
  returned: success
  type: list
  elements: str
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
