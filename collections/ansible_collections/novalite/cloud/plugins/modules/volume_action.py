#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: volume_action
short_description: Begin what is to be done to volumes, and record how it went
version_added: 0.1.0
description:
  - Says what each compute host has to do for volumes, attachments and snapshots. What is named by names begins here;
    what is named by ids was begun before, by M(novalite.cloud.volume) or the API, and goes on.
  - With O(outcomes), records what became of it.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.project
  - novalite.cloud.state_dir
  - novalite.cloud.ledger.state
options:
  volumes:
    description: UUIDs of volumes that are being made, extended, made an image of, or deleted.
    type: list
    elements: str
  attachments:
    description:
      - UUIDs of attachments that are under way, or dictionaries of C(volume), C(server), C(device), C(readonly) and
        C(delete_on_termination).
    type: list
    elements: raw
  snapshots:
    description: UUIDs of snapshots that are under way, or dictionaries of C(name), C(volume) and C(description).
    type: list
    elements: raw
  uploads:
    description:
      - Images to make of volumes, with C(volume), C(image_name) and C(disk_format). One that is there is left alone.
    type: list
    elements: dict
  state:
    description: Whether the attachments or snapshots that are named shall be there.
  takeover:
    description: Whether to go on with what a run that was killed left under way.
    type: bool
    default: false
  limit_to:
    description: Names of the only compute hosts to choose among. All that the ledger knows, when left out.
    type: list
    elements: str
  plans:
    description: The RV(hosts) of before. With O(outcomes) only.
    type: dict
  outcomes:
    description: What the hosts said. One that said nothing did nothing.
    type: list
    elements: dict
    suboptions:
      host:
        description: Name of the host.
        type: str
        required: true
      results:
        description: For each volume, attachment and snapshot C(id) and C(error).
        type: list
        elements: dict
        default: []
      error:
        description: Why those without a result have none.
        type: str
seealso:
  - module: novalite.cloud.volume
  - module: novalite.cloud.host_step
"""

EXAMPLES = r"""
- name: Begin to attach a volume
  novalite.cloud.volume_action:
    attachments:
      - {volume: data, server: web}
"""

RETURN = r"""
hosts:
  description: For each host what its modules are to be given.
  returned: success
  type: dict
targets:
  description: The hosts of each play, C(hosts), and C(controller), V(localhost) if there are any.
  returned: when O(outcomes) is not given
  type: dict
  sample: {"hosts": ["hv1"], "controller": ["localhost"]}
touched:
  description: What is done to which volume, snapshot or attachment, with C(id), C(name), C(does) and C(host).
  returned: when O(outcomes) is not given
  type: list
  elements: dict
nothing_to_do:
  description: What there is nothing to do for, with C(id) and C(reason).
  returned: success
  type: list
  elements: dict
errors:
  description: What went wrong, with C(id) and C(message).
  returned: success
  type: list
  elements: dict
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
