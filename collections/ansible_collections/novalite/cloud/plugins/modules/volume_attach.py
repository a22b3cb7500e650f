#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: volume_attach
short_description: Give volumes to guests of a compute host, or take them away
version_added: 0.1.0
description:
  - Changes the definition of a domain, and plugs the disk into the guest, or out of it, where it runs.
  - A guest lets go of a disk when it likes. It is asked again and again, as Nova does, and keeps what it does not give.
  - A volume is recognised by its serial number, which is its id.
  - Each volume for itself. When one fails, the others are done, and the task fails with RV(attachments) in its result.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.libvirt
  - novalite.cloud.changes.state
options:
  attachments:
    description: The volumes and the domains.
    type: list
    elements: dict
    required: true
    suboptions:
      id:
        description: UUID of the attachment.
        type: str
        required: true
      volume_id:
        description: UUID of the volume, the serial number of the disk.
        type: str
        required: true
      instance_uuid:
        description: UUID of the domain.
        type: str
        required: true
      name:
        description: Name of the domain, for messages.
        type: str
        required: true
      device:
        description: Name of the guest's disk, such as V(vdb).
        type: str
        required: true
      xml:
        description: The disk in libvirt's XML. Required for O(state=present).
        type: str
  state:
    description: Whether the guests have the volumes.
  timeout:
    description: Seconds that a guest gets to let go of a disk each time that it is asked.
    type: float
    default: 20
  attempts:
    description: How often it is asked.
    type: int
    default: 8
attributes:
  diff_mode:
    description: Returns which disks the guests had and have.
seealso:
  - module: novalite.cloud.volume_disk
"""

EXAMPLES = r"""
- name: Give a volume to a guest
  novalite.cloud.volume_attach:
    attachments:
      - id: 6f2b6b1c-7b1e-4d55-9b1e-0b8f0f6d3a13
        volume_id: 6f2b6b1c-7b1e-4d55-9b1e-0b8f0f6d3a11
        instance_uuid: 6f2b6b1c-7b1e-4d55-9b1e-0b8f0f6d3a14
        name: instance-00000007
        device: vdb
        xml: "{{ disk_xml }}"
"""

RETURN = r"""
attachments:
  description: What became of each.
  returned: always
  type: list
  elements: dict
  contains:
    id:
      description: UUID of the attachment.
      type: str
    action:
      description: What was done, V(none), V(attach) or V(detach).
      type: str
    error:
      description: Why it is not as it should be, or null.
      type: str
"""

from ..module_utils._domain import volumes
from ..module_utils._errors import NovaliteError
from ..module_utils._host import in_threads
from ..module_utils._host_module import HostCall, HostModuleError, Result, each_for_itself, run_host_module
from ..module_utils._libvirt import DEFAULT_URI, connect

ARGUMENT_SPEC = {
    "attachments": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "id": {"type": "str", "required": True},
            "volume_id": {"type": "str", "required": True},
            "instance_uuid": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "device": {"type": "str", "required": True},
            "xml": {"type": "str"},
        },
    },
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "timeout": {"type": "float", "default": volumes.DETACH_TIMEOUT},
    "attempts": {"type": "int", "default": volumes.DETACH_ATTEMPTS},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    params, present = call.params, call.params["state"] == "present"
    try:
        connection = connect(params["uri"])
    except NovaliteError as error:
        raise HostModuleError(str(error), attachments=[]) from error

    def work(attachment: volumes.Attachment) -> dict[str, str | None]:
        try:
            if present:
                action = volumes.attach(connection, attachment, call.check_mode)
            else:
                action = volumes.detach(connection, attachment, call.check_mode, params["timeout"], params["attempts"])
        except NovaliteError as error:
            return {"id": attachment["id"], "action": "none", "error": str(error)}
        return {"id": attachment["id"], "action": action, "error": None}

    rows = in_threads(work, params["attachments"], 4)
    changed = [attachment for attachment, row in zip(params["attachments"], rows) if row["action"] != "none"]
    result = {"changed": bool(changed), "attachments": rows}
    if call.diff and changed:
        disks = {f"{attachment['name']} {attachment['device']}": attachment["volume_id"] for attachment in changed}
        none = dict.fromkeys(disks)
        result["diff"] = {"before": none if present else disks, "after": disks if present else none}
    return each_for_itself(result, (row["error"] for row in rows))


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
