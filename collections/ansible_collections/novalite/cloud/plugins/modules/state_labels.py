#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: state_labels
short_description: Label the state directory of a compute host for SELinux
version_added: 0.1.0
description:
  - A step of the role P(novalite.cloud.compute_node#role) for hosts on which SELinux confines guests.
  - Writes rules of SELinux's local policy for the files that guests use, and relabels these. Guests that run keep what
    libvirt gave them.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.state_dir
  - novalite.cloud.changes.state
options:
  state:
    description: V(absent) takes these rules out of the local policy. Files keep their labels.
attributes:
  diff_mode:
    description: Returns the rules that are missing, or too many.
requirements:
  - semanage
  - restorecon
"""

EXAMPLES = r"""
- name: Label what guests use
  novalite.cloud.state_labels:
"""

RETURN = r"""
diff:
  description: The types that were missing in the local policy, C(before) and C(after), by pattern.
  returned: success
  type: dict
"""

from ..module_utils._disk.labels import ensure_labels, remove_labels
from ..module_utils._host import STATE_DIR
from ..module_utils._host_module import HostCall, Result, run_host_module

ARGUMENT_SPEC = {
    "state_dir": {"type": "path", "default": STATE_DIR},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
}


def run(call: HostCall) -> Result:
    act = remove_labels if call.params["state"] == "absent" else ensure_labels
    return act(call.params["state_dir"], call.check_mode)


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
