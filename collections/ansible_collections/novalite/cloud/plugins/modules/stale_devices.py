#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: stale_devices
short_description: Detach disks of instances that nobody is at
version_added: 0.1.0
description:
  - A run that is killed while it writes into a disk may leave a mount, a loop device or a QEMU program that serves the
    disk, and with it an nbd device. Takes them away.
  - What is no longer there, or somebody is at by now, is left alone.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.state_dir
attributes:
  check_mode:
    description: Says what would be detached.
  diff_mode:
    description: Lists what is detached.
options:
  stale_devices:
    description: What is to be detached, as M(novalite.cloud.host_drift) returns it.
    type: list
    elements: dict
    required: true
    suboptions:
      what:
        description: What it is.
        type: str
        choices: [mount, loop device, disk server]
        required: true
      name:
        description: The mount point, the device, or the disk that is served.
        type: str
        required: true
      disk:
        description: What it leads to.
        type: str
        required: true
"""

EXAMPLES = r"""
- name: Detach what a killed run left
  novalite.cloud.stale_devices:
    stale_devices: "{{ compared.stale_devices }}"
"""

RETURN = r"""
diff:
  description: What was attached, C(before) and C(after), each with a list C(attached) of devices and mounts.
  returned: success
  type: dict
  sample: {before: {attached: [nbd /dev/nbd0]}, after: {attached: []}}
"""

from ..module_utils._drift import stale_devices
from ..module_utils._host import STATE_DIR
from ..module_utils._host_module import HostCall, Result, run_host_module

OPTIONS = {
    "what": {
        "type": "str",
        "choices": [stale_devices.MOUNT, stale_devices.LOOP, stale_devices.SERVER],
        "required": True,
    },
    "name": {"type": "str", "required": True},
    "disk": {"type": "str", "required": True},
}
ARGUMENT_SPEC = {
    "stale_devices": {"type": "list", "elements": "dict", "options": OPTIONS, "required": True},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def run(call: HostCall) -> Result:
    named = [stale_devices.StaleDevice(**entry) for entry in call.params["stale_devices"]]
    attached = [piece for piece in stale_devices.find(call.params["state_dir"]) if piece in named]
    if not call.check_mode:
        stale_devices.remove(attached)
    lines = [f"{piece.what} {piece.name}" for piece in attached]
    return {"changed": bool(attached), "diff": {"before": {"attached": lines}, "after": {"attached": []}}}


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
