# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `volume_attach`: give volumes to guests of a compute host, or take them away.

Changes the definition of a domain, and plugs the disk into the guest, or out of it, where it runs. A guest lets go of a
disk when it likes. It is asked again and again, as Nova does, and keeps what it does not give. A volume is recognised
by its serial number, which is its id. Each volume for itself. When one fails, the others are done, and the task fails
with `attachments` in its result.
"""

from __future__ import annotations

from .._domain import volumes
from .._errors import NovaliteError
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, HostModuleError, Result, each_for_itself
from .._host.waiting import in_threads

ARGUMENT_SPEC = {
    # The volumes and the domains.
    "attachments": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "id": {"type": "str", "required": True},
            # UUID of the volume, the serial number of the disk.
            "volume_id": {"type": "str", "required": True},
            "instance_uuid": {"type": "str", "required": True},
            # Name of the domain, for messages.
            "name": {"type": "str", "required": True},
            # Name of the guest's disk, such as `vdb`.
            "device": {"type": "str", "required": True},
            # The disk in libvirt's XML. Required for `present`.
            "xml": {"type": "str"},
        },
    },
    # Whether the guests have the volumes.
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    # Seconds that a guest gets to let go of a disk each time that it is asked.
    "timeout": {"type": "float", "default": volumes.DETACH_TIMEOUT},
    # How often it is asked.
    "attempts": {"type": "int", "default": volumes.DETACH_ATTEMPTS},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `attachments`: what became of each; `id` (UUID of the attachment), `action` (what was done, `none`, `attach` or
      `detach`), `error` (why it is not as it should be, or null)
    """
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
