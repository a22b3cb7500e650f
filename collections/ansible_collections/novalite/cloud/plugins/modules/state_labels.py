#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: state_labels
short_description: Label the state directory of a compute host for SELinux
version_added: 0.1.0
author:
  - novalite contributors (@novalite)
description:
  - A step of the role P(novalite.cloud.compute_node#role) for hosts on which SELinux confines guests.
  - Writes rules of SELinux's local policy for the files that guests use, and relabels these. Guests that run keep what
    libvirt gave them.
extends_documentation_fragment:
  - novalite.cloud.state_dir
options:
  state:
    description: V(absent) takes these rules out of the local policy. Files keep their labels.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    description: Can run in check_mode and return changed status without changing anything.
    support: full
  diff_mode:
    description: Returns the rules that are missing, or too many.
    support: full
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

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._disk.labels import ensure_labels, remove_labels
from ..module_utils._errors import NovaliteError
from ..module_utils._host import STATE_DIR


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state_dir": {"type": "path", "default": STATE_DIR},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    act = remove_labels if module.params["state"] == "absent" else ensure_labels
    try:
        result = act(module.params["state_dir"], module.check_mode)
    except NovaliteError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
