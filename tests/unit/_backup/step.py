# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A step of backups as a program, with the Python that hosts have: options in, its result out, in JSON."""

from __future__ import annotations

import json
import sys

import libvirt

from ansible_collections.novalite.cloud.plugins.module_utils._host.module import HostCall, call_module
from ansible_collections.novalite.cloud.plugins.module_utils._steps import backup_files, server_backup, volume_backup


def connect(uri: str = "") -> libvirt.virConnect:
    """Connect to libvirt without community.libvirt, which comes with Ansible."""
    return libvirt.open(uri)


if __name__ == "__main__":
    libvirt.registerErrorHandler(lambda _context, _error: None, None)
    server_backup.connect = volume_backup.connect = connect
    steps = {"backup_files": backup_files, "volume_backup": volume_backup}
    step = steps[sys.argv[1]] if sys.argv[1:] else server_backup
    asked = json.loads(sys.stdin.read())
    call = HostCall({"uri": "qemu:///system", **asked["params"]}, check_mode=asked["check_mode"])
    print(json.dumps(call_module(step.run, call, 600.0)))
