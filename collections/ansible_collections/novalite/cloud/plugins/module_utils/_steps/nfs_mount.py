# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `nfs_mount`: mount shares for volumes on a compute host.

Mounts shares below `<state_dir>/shares`, now and at every boot, so that volumes of a type with the back end `nfs` are
there on every compute host.
"""

from __future__ import annotations

from .._disk.shares import ensure_mounted
from .._host.files import STATE_DIR
from .._host.module import HostCall, Result

ARGUMENT_SPEC = {
    "shares": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            # Name of the share, as the volume type's option `share` has it.
            "name": {"type": "str", "required": True},
            # What is mounted, such as `files.example.org:/srv/volumes`.
            "source": {"type": "str", "required": True},
            # The kind of file system.
            "fstype": {"type": "str", "default": "nfs4"},
            "options": {"type": "str", "default": ""},
        },
    },
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def run(call: HostCall) -> Result:
    return ensure_mounted(call.params["shares"], call.params["state_dir"], call.check_mode)
