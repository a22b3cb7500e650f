#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: config_drive
short_description: Write config drives, from which cloud-init reads what a guest is told
version_added: 0.1.0
description:
  - Writes an ISO9660 image with these files into the directory of each instance, as C(disk.config). A drive that holds
    them already is left alone. It takes effect when the guest starts the next time.
  - The files may hold secrets. They are never shown, and the image is root's alone until libvirt hands it to the guest.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.state_dir
options:
  config_drives:
    description: The instances and what is on their drives.
    type: list
    elements: dict
    required: true
    suboptions:
      uuid:
        description: The UUID of the instance.
        type: str
        required: true
      format:
        description: V(config-2) is OpenStack's format, V(nocloud) cloud-init's own. It decides the drive's label.
        type: str
        choices: [config-2, nocloud]
        default: config-2
      files:
        description: The content of the files, base64 encoded, by their paths on the drive.
        type: dict
        required: true
      rescue:
        description: The drive is the one that the instance is rescued with, beside its own one.
        type: bool
        default: false
attributes:
  check_mode:
    description: Says which drives would be written.
  diff_mode:
    description: Shows the names and sizes of files, never their content.
requirements:
  - genisoimage, mkisofs or xorrisofs
seealso:
  - module: novalite.cloud.nbd_inject
  - module: novalite.cloud.ledger_step
"""

EXAMPLES = r"""
- name: Write a config drive for cloud-init's NoCloud
  novalite.cloud.config_drive:
    config_drives:
      - uuid: 5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41
        format: nocloud
        files:
          meta-data: "{{ {'instance-id': 'web-1'} | to_json | b64encode }}"
          user-data: "{{ lookup('ansible.builtin.file', 'web.yml') | b64encode }}"
  no_log: true
"""

RETURN = r"""
config_drives:
  description: One entry for each instance.
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: The UUID of the instance.
      type: str
      returned: always
    changed:
      description: Whether its drive was written.
      type: bool
      returned: always
    path:
      description: Where the drive is.
      type: str
      returned: always
"""

import base64
import binascii

from ..module_utils._disk.config_drive import ConfigDrive, write_config_drives
from ..module_utils._errors import NovaliteError
from ..module_utils._host.files import STATE_DIR
from ..module_utils._host.module import HostCall, Result, run_host_module
from ..module_utils._json import JsonObject

ARGUMENT_SPEC = {
    "config_drives": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "uuid": {"type": "str", "required": True},
            "format": {"type": "str", "choices": ["config-2", "nocloud"], "default": "config-2"},
            "files": {"type": "dict", "required": True, "no_log": True},
            "rescue": {"type": "bool", "default": False},
        },
    },
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def _drive(uuid: str, format: str, files: JsonObject, rescue: bool) -> ConfigDrive:
    try:
        contents = {path: base64.b64decode(str(content), validate=True) for path, content in files.items()}
    except binascii.Error:
        raise NovaliteError(f"instance {uuid}: a file of its config drive is not base64") from None
    return ConfigDrive(uuid, format, contents, rescue)


def run(call: HostCall) -> Result:
    drives = [_drive(**entry) for entry in call.params["config_drives"]]
    return write_config_drives(drives, call.params["state_dir"], call.check_mode)


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
