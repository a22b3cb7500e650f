# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `volume_disk`: keep the data of volumes and their snapshots on a compute host.

Makes, copies, extends and deletes files (qcow2 or raw, on the host or on a mounted share) and logical volumes. The
format is what is declared; the content, which a guest writes, is never asked for it. What a running guest has open is
extended and copied by its own QEMU, while it goes on. A new file has no blocks of an old one. A logical volume is
written over with zeros before it is removed. Each volume for itself. When one fails, the others are done, and the task
fails with `volumes` in its result. Needs qemu-img, lvm2 and blkdiscard, for logical volumes.
"""

from __future__ import annotations

import functools

from .._disk.volumes import ensure
from .._domain.volumes import LiveGuests
from .._errors import NovaliteError
from .._host.files import STATE_DIR
from .._host.libvirt_connection import DEFAULT_URI, connect
from .._host.module import HostCall, HostModuleError, Result, each_for_itself

ARGUMENT_SPEC = {
    "volumes": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            # UUID of the volume or the snapshot.
            "id": {"type": "str", "required": True},
            # Whether it is a volume or the snapshot of one.
            "kind": {"type": "str", "choices": ["volume", "snapshot"], "default": "volume"},
            "backend": {"type": "str", "choices": ["file", "lvm", "nfs"], "required": True},
            # The options of its type, `volume_group` for `lvm`, `share` for `nfs`.
            "options": {"type": "dict", "default": {}},
            # The format of the file; `raw` for a logical volume.
            "format": {"type": "str", "choices": ["raw", "qcow2"], "required": True},
            # Its size in GiB. One that is larger is left alone.
            "size_gb": {"type": "int", "default": 0},
            # Whether it is made when it is not there. Otherwise that is an error, for its data is lost.
            "create": {"type": "bool", "default": True},
            # Whether it gets the data of `source` although it is there.
            "restore": {"type": "bool", "default": False},
            # What it is made of, `{checksum}` of an image in the cache, or `{id, kind, backend, options, format}` of
            # another volume, with `instance_uuid` where a guest may have that open. Without, it is made empty.
            "source": {"type": "dict"},
            # The instance whose guest may have it open.
            "instance_uuid": {"type": "str"},
        },
    },
    # Whether the data is there.
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
    """Return `changed`, and
    * `volumes`: what became of each; `id` (its UUID), `path` (where its data is), `action` (what was done, `none`,
      `create`, `copy`, `restore`, `extend` or `delete`), `error` (why it is not as it should be, or null)
    """
    params = call.params
    guests = LiveGuests(functools.partial(connect, params["uri"]))
    try:
        volumes = ensure(params["volumes"], params["state"], params["state_dir"], guests, call.check_mode)
    except NovaliteError as error:
        raise HostModuleError(str(error), volumes=[]) from error
    changed = [volume for volume in volumes if volume.action != "none" and volume.error is None]
    result: Result = {
        "changed": bool(changed),
        "volumes": [
            {"id": volume.id, "path": volume.path, "action": volume.action, "error": volume.error} for volume in volumes
        ],
    }
    if call.diff and changed:
        result["diff"] = {
            "before": {volume.id: volume.before for volume in changed},
            "after": {volume.id: volume.after for volume in changed},
        }
    return each_for_itself(result, (volume.error for volume in volumes))
