#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nfs_mount
short_description: Mount shares for volumes on a compute host
version_added: 0.1.0
description:
  - Mounts shares below C(<state_dir>/shares), now and at every boot, so that volumes of a type with the back end C(nfs)
    are there on every compute host.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.state_dir
options:
  shares:
    description: The shares.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Name of the share, as the volume type's option C(share) has it.
        type: str
        required: true
      source:
        description: What is mounted, such as V(files.example.org:/srv/volumes).
        type: str
        required: true
      fstype:
        description: The kind of file system.
        type: str
        default: nfs4
      options:
        description: Options of the mount.
        type: str
        default: ""
attributes:
  diff_mode:
    description: Returns the lines of /etc/fstab.
seealso:
  - module: novalite.cloud.volume_disk
"""

EXAMPLES = r"""
- name: Mount what all compute hosts share
  novalite.cloud.nfs_mount:
    shares:
      - {name: tank, source: "files.example.org:/srv/volumes"}
"""

RETURN = r"""
diff:
  description: The lines of C(/etc/fstab) that were missing or not mounted, C(before) and C(after), by path.
  returned: success
  type: dict
"""

from ..module_utils._disk.shares import ensure_mounted
from ..module_utils._host import STATE_DIR
from ..module_utils._host_module import HostCall, Result, run_host_module

ARGUMENT_SPEC = {
    "shares": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "name": {"type": "str", "required": True},
            "source": {"type": "str", "required": True},
            "fstype": {"type": "str", "default": "nfs4"},
            "options": {"type": "str", "default": ""},
        },
    },
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def run(call: HostCall) -> Result:
    return ensure_mounted(call.params["shares"], call.params["state_dir"], call.check_mode)


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
