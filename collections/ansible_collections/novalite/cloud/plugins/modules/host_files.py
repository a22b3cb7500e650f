#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_files
short_description: Write the files that a compute host has from novalite
version_added: 0.1.0
description:
  - A step of the role P(novalite.cloud.compute_node#role), which has all files of a host written in one trip.
  - All files are looked at before the first one is written. Where something of another kind is in the way of one of
    them, none is.
options:
  files:
    description: The files, in the order in which they are written.
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: The whole path.
        type: path
        required: true
      state:
        description: What shall be there. A link is replaced by another one, never followed. A directory is not removed.
        type: str
        choices: [file, directory, link, absent]
        default: file
      content:
        description: The content of a file.
        type: str
      target:
        description: The path that a link leads to.
        type: str
      mode:
        description:
          - The mode with four octal digits, as in V(0644).
          - Without it, files have V(0644) and new directories V(0755). A directory that is there keeps its mode and
            owner then.
        type: str
extends_documentation_fragment: [novalite.cloud.changes]
attributes:
  diff_mode:
    description: Returns each file that changes, before and after.
"""

EXAMPLES = r"""
- name: Write the unit of a service and enable it
  novalite.cloud.host_files:
    files:
      - path: /etc/systemd/system/example.service
        content: "{{ lookup('ansible.builtin.file', 'example.service') }}"
      - path: /etc/systemd/system/multi-user.target.wants/example.service
        state: link
        target: ../example.service
"""

RETURN = r"""
written:
  description: The paths of files that are other than they were.
  returned: success
  type: list
  elements: str
diff:
  description: The files that change, by path, C(before) and C(after).
  returned: when something changes
  type: dict
"""

from ..module_utils._host_files import STATES, ensure_files, parse
from ..module_utils._host_module import HostCall, Result, run_host_module

ARGUMENT_SPEC = {
    "files": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "path": {"type": "path", "required": True},
            "state": {"type": "str", "choices": list(STATES), "default": "file"},
            "content": {"type": "str"},
            "target": {"type": "str"},
            "mode": {"type": "str"},
        },
    }
}


def run(call: HostCall) -> Result:
    return ensure_files(parse(call.params["files"]), call.check_mode)


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
