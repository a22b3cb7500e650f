#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: disk_snapshot
short_description: Make images of this host's instances and volumes, and bring them to the controller
version_added: 0.1.0
description:
  - Copies the root disk of each instance, as it is at one moment, into a qcow2 image that stands on no other file, and
    fetches it into O(controller_dir), where it bears the id of the image.
  - The disk of a guest that runs, or is paused, is copied by a backup job of QEMU, which keeps what the guest
    overwrites meanwhile. It is what the guest would find after its power was cut off. The disk of a guest that is off,
    or suspended, is read by qemu-img.
  - The format of a disk is the recorded one, and what comes out is inspected as a foreign image would be.
  - Each instance is for itself. The task fails when one of them fails, after all others were done, and returns what
    became of each all the same.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.state_dir
  - novalite.cloud.libvirt
  - novalite.cloud.changes.state
requirements:
  - qemu-utils on the host
attributes:
  check_mode:
    description: Says how each would be copied.
  diff_mode:
    description: Shows the new images.
options:
  snapshots:
    description: The images to make.
    type: list
    elements: dict
    required: true
    suboptions:
      uuid:
        description: UUID of the instance.
        type: str
        required: true
      image_id:
        description: Id of the image, a UUID. One that is on the controller already is left alone.
        type: str
        required: true
      disk_format:
        description: Format of the image. One of an instance is a qcow2.
        type: str
        choices: [qcow2, raw]
        default: qcow2
      volume:
        description:
          - Data of the volume that the image is of, instead of an instance, as M(novalite.cloud.volume_disk) takes it.
            O(snapshots[].uuid) is the volume's then.
        type: dict
  state:
    description:
      - V(present) makes the images. V(absent) removes from the host what was not fetched; the task does so itself.
  controller_dir:
    description: The controller's directory of images. By default C(images) in the ledger's home.
    type: path
  owner:
    description:
      - Number of the host's user who may read the copies. The task sets it where it logs in as another than root.
    type: int
  timeout:
    description: Seconds that one copy may take.
    type: float
    default: 3600
seealso:
  - module: novalite.cloud.disk
  - module: novalite.cloud.server_action
"""

EXAMPLES = r"""
- name: Make an image of an instance
  novalite.cloud.disk_snapshot:
    snapshots:
      - uuid: 5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41
        image_id: 1f0f6a9e-8f2b-4a53-8d9f-2a9d3f8f1c22
"""

RETURN = r"""
snapshots:
  description: One entry for each of O(snapshots), in the same order.
  returned: always
  type: list
  elements: dict
  contains:
    uuid:
      description: UUID of the instance.
      type: str
    image_id:
      description: Id of the image.
      type: str
    path:
      description: Where the copy was on the host.
      type: str
    how:
      description: V(live), V(cold), or V(none) where nothing was copied.
      type: str
    size:
      description: Bytes of the file.
      type: int
    virtual_size:
      description: Bytes of the disk in it.
      type: int
    source:
      description: Where the file is on the controller.
      type: str
    checksum:
      description: Of the file on the controller.
      type: str
      sample: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    error:
      description: Why there is no image, or null.
      type: str
"""

import dataclasses

from ..module_utils._disk import snapshot
from ..module_utils._domain import lifecycle, lifecycle_backup
from ..module_utils._domain.volumes import LiveGuests
from ..module_utils._errors import NovaliteError
from ..module_utils._host import STATE_DIR
from ..module_utils._host_module import HostCall, HostModuleError, Result, each_for_itself, run_host_module
from ..module_utils._libvirt import DEFAULT_URI, connect

ARGUMENT_SPEC = {
    "snapshots": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "uuid": {"type": "str", "required": True},
            "image_id": {"type": "str", "required": True},
            "disk_format": {"type": "str", "choices": ["qcow2", "raw"], "default": "qcow2"},
            "volume": {"type": "dict"},
        },
    },
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "controller_dir": {"type": "path"},
    "owner": {"type": "int"},
    "timeout": {"type": "float", "default": 3600},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    try:
        if call.params["state"] == "absent":
            return _remove(call)
        copies = _take(call)
    except NovaliteError as error:
        raise HostModuleError(str(error), snapshots=[]) from error
    of_volumes = {entry["uuid"] for entry in call.params["snapshots"] if entry["volume"] is not None}
    new = {
        copy.image_id: f"{copy.how} copy of {'volume' if copy.uuid in of_volumes else 'instance'} {copy.uuid}"
        for copy in copies
        if not copy.error
    }
    result = {
        "changed": bool(new),
        "snapshots": [dataclasses.asdict(copy) for copy in copies],
        "diff": {"before": dict.fromkeys(new), "after": new} if new else {},
    }
    return each_for_itself(result, (copy.error for copy in copies))


def _remove(call: HostCall) -> Result:
    image_ids = [entry["image_id"] for entry in call.params["snapshots"]]
    gone = snapshot.remove(image_ids, call.params["state_dir"], call.check_mode)
    diff = {"before": {"snapshots": gone}, "after": {"snapshots": []}}
    return {"changed": bool(gone), "snapshots": [], "diff": diff if gone else {}}


def _take(call: HostCall) -> list[snapshot.Taken]:
    params, timeout = call.params, call.params["timeout"]
    connection = connect(params["uri"])
    guests = LiveGuests(lambda: connection)

    def backup(taken: snapshot.Snapshot, disk: str, path: str) -> None:
        if taken.volume is None:
            lifecycle_backup.backup(connection, taken.uuid, disk, path, timeout)
        else:
            guests.copy(str(taken.holder), taken.uuid, path, taken.disk_format, False)

    return snapshot.take(
        [snapshot.Snapshot(**entry) for entry in params["snapshots"]],
        params["state_dir"],
        lambda uuid: lifecycle.is_active(connection, uuid),
        backup,
        call.check_mode,
        params["owner"],
        timeout,
    )


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
