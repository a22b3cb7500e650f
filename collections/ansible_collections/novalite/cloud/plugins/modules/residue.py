#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: residue
short_description: Detach disks of instances that nobody is at
version_added: 0.1.0
author:
  - novalite contributors (@novalite)
description:
  - A run that is killed while it writes into a disk may leave a mount, a loop device or a QEMU program that serves the
    disk, and with it an nbd device. Takes them away.
  - What is no longer there, or somebody is at by now, is left alone.
extends_documentation_fragment:
  - novalite.cloud.state_dir
attributes:
  check_mode:
    support: full
    description: Says what would be detached.
  diff_mode:
    support: full
    description: Lists what is detached.
options:
  residue:
    description: What is to be detached, as M(novalite.cloud.host_differences) returns it.
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
  novalite.cloud.residue:
    residue: "{{ compared.residue }}"
"""

RETURN = r"""
diff:
  description: What was attached, C(before) and C(after), each with a list C(attached) of devices and mounts.
  returned: success
  type: dict
  sample: {before: {attached: [nbd /dev/nbd0]}, after: {attached: []}}
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._drift import residue
from ..module_utils._errors import NovaliteError
from ..module_utils._host import STATE_DIR

OPTIONS = {
    "what": {"type": "str", "choices": [residue.MOUNT, residue.LOOP, residue.SERVER], "required": True},
    "name": {"type": "str", "required": True},
    "disk": {"type": "str", "required": True},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "residue": {"type": "list", "elements": "dict", "options": OPTIONS, "required": True},
            "state_dir": {"type": "path", "default": STATE_DIR},
        },
        supports_check_mode=True,
    )
    given = [residue.Residue(**one) for one in module.params["residue"]]
    try:
        found = [one for one in residue.find(module.params["state_dir"]) if one in given]
        if not module.check_mode:
            residue.remove(found)
    except NovaliteError as error:
        module.fail_json(msg=str(error))
    lines = [f"{one.what} {one.name}" for one in found]
    module.exit_json(changed=bool(found), diff={"before": {"attached": lines}, "after": {"attached": []}})


if __name__ == "__main__":
    main()
