# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `stale_devices`: detach disks of instances that nobody is at.

A run that is killed while it writes into a disk may leave a mount, a loop device or a QEMU program that serves the
disk, and with it an nbd device. Takes them away. What is no longer there, or somebody is at by now, is left alone.
"""

from __future__ import annotations

from .._drift import stale_devices
from .._host.files import STATE_DIR
from .._host.module import HostCall, Result

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
    # What is to be detached, as `host_drift` returns it.
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
