# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `state_labels`: label the state directory of a compute host for SELinux.

A step of the role `compute_node` for hosts on which SELinux confines guests. Writes rules of SELinux's local policy for
the files that guests use, and relabels these. Guests that run keep what libvirt gave them. Needs semanage, restorecon.
"""

from __future__ import annotations

from .._disk.labels import ensure_labels, remove_labels
from .._host.files import STATE_DIR
from .._host.module import HostCall, Result

ARGUMENT_SPEC = {
    "state_dir": {"type": "path", "default": STATE_DIR},
    # `absent` takes these rules out of the local policy. Files keep their labels.
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def run(call: HostCall) -> Result:
    act = remove_labels if call.params["state"] == "absent" else ensure_labels
    return act(call.params["state_dir"], call.check_mode)
