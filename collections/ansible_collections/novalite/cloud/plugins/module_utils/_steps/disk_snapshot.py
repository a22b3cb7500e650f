# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `disk_snapshot`: make images of this host's instances and volumes, and bring them to the controller.

Copies the root disk of each instance, as it is at one moment, into a qcow2 image that stands on no other file, and
fetches it into `controller_dir`, where it bears the id of the image. The disk of a guest that runs, or is paused, is
copied by a backup job of QEMU, which keeps what the guest overwrites meanwhile. It is what the guest would find after
its power was cut off. The disk of a guest that is off, or suspended, is read by qemu-img. The format of a disk is the
recorded one, and what comes out is inspected as a foreign image would be. Each instance is for itself. The task fails
when one of them fails, after all others were done, and returns what became of each all the same. Needs qemu-utils on
the host.
"""

from __future__ import annotations

import dataclasses

from .._domain import lifecycle, lifecycle_backup
from .._domain.volumes import LiveGuests
from .._errors import NovaliteError
from .._host.files import STATE_DIR
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, HostModuleError, Result, each_for_itself
from .._snapshots import image_snapshots as snapshot

ARGUMENT_SPEC = {
    "snapshots": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "uuid": {"type": "str", "required": True},
            # Id of the image, a UUID. One that is on the controller already is left alone.
            "image_id": {"type": "str", "required": True},
            # Format of the image. One of an instance is a qcow2.
            "disk_format": {"type": "str", "choices": ["qcow2", "raw"], "default": "qcow2"},
            # Data of the volume that the image is of, instead of an instance, as `volume_disk` takes it.
            # `snapshots[].uuid` is the volume's then.
            "volume": {"type": "dict"},
        },
    },
    # `present` makes the images. `absent` removes from the host what was not fetched; the task does so itself.
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    # The controller's directory of images. By default `images` in the ledger's home.
    "controller_dir": {"type": "path"},
    # Number of the host's user who may read the copies. The task sets it where it logs in as another than root.
    "owner": {"type": "int"},
    # Seconds that one copy may take.
    "timeout": {"type": "float", "default": 3600},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `snapshots`: one entry for each of `snapshots`, in the same order; `uuid` (UUID of the instance), `image_id` (id
      of the image), `path` (where the copy was on the host), `how` (`live`, `cold`, or `none` where nothing was
      copied), `size` (bytes of the file), `virtual_size` (bytes of the disk in it), `source` (where the file is on the
      controller), `checksum` (of the file on the controller), `error` (why there is no image, or null)
    """
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
