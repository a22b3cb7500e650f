#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: volume_disk
short_description: Keep the data of volumes and their snapshots on a compute host
version_added: 0.1.0
description:
  - Makes, copies, extends and deletes files (qcow2 or raw, on the host or on a mounted share) and logical volumes.
  - The format is what is declared; the content, which a guest writes, is never asked for it.
  - What a running guest has open is extended and copied by its own QEMU, while it goes on.
  - A new file has no blocks of an old one. A logical volume is written over with zeros before it is removed.
  - Each volume for itself. When one fails, the others are done, and the task fails with RV(volumes) in its result.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.state_dir
  - novalite.cloud.libvirt
  - novalite.cloud.changes.state
options:
  volumes:
    description: The volumes and snapshots.
    type: list
    elements: dict
    required: true
    suboptions:
      id:
        description: UUID of the volume or the snapshot.
        type: str
        required: true
      kind:
        description: Whether it is a volume or the snapshot of one.
        type: str
        choices: [volume, snapshot]
        default: volume
      backend:
        description: Where it is.
        type: str
        choices: [file, lvm, nfs]
        required: true
      options:
        description: The options of its type, C(volume_group) for V(lvm), C(share) for V(nfs).
        type: dict
        default: {}
      format:
        description: The format of the file; V(raw) for a logical volume.
        type: str
        choices: [raw, qcow2]
        required: true
      size_gb:
        description: Its size in GiB. One that is larger is left alone.
        type: int
        default: 0
      create:
        description: Whether it is made when it is not there. Otherwise that is an error, for its data is lost.
        type: bool
        default: true
      source:
        description:
          - What it is made of, C({checksum}) of an image in the cache, or C({id, kind, backend, options, format}) of
            another volume, with C(instance_uuid) where a guest may have that open. Without, it is made empty.
        type: dict
      instance_uuid:
        description: The instance whose guest may have it open.
        type: str
  state:
    description: Whether the data is there.
attributes:
  diff_mode:
    description: Returns what was there and what is, for each volume.
requirements:
  - qemu-img
  - lvm2 and blkdiscard, for logical volumes
seealso:
  - module: novalite.cloud.volume
  - module: novalite.cloud.volume_attach
"""

EXAMPLES = r"""
- name: Make an empty volume of 10 GiB
  novalite.cloud.volume_disk:
    volumes:
      - {id: 6f2b6b1c-7b1e-4d55-9b1e-0b8f0f6d3a11, backend: file, format: qcow2, size_gb: 10}

- name: Delete a logical volume
  novalite.cloud.volume_disk:
    volumes:
      - {id: 6f2b6b1c-7b1e-4d55-9b1e-0b8f0f6d3a12, backend: lvm, options: {volume_group: fast}, format: raw}
    state: absent
"""

RETURN = r"""
volumes:
  description: What became of each.
  returned: always
  type: list
  elements: dict
  contains:
    id:
      description: Its UUID.
      type: str
    path:
      description: Where its data is.
      type: str
    action:
      description: What was done, V(none), V(create), V(copy), V(extend) or V(delete).
      type: str
    error:
      description: Why it is not as it should be, or null.
      type: str
"""

import functools

from ..module_utils._disk.volumes import ensure
from ..module_utils._domain.volumes import LiveGuests
from ..module_utils._errors import NovaliteError
from ..module_utils._host import STATE_DIR
from ..module_utils._host_module import HostCall, HostModuleError, Result, each_for_itself, run_host_module
from ..module_utils._libvirt import DEFAULT_URI, connect

ARGUMENT_SPEC = {
    "volumes": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "id": {"type": "str", "required": True},
            "kind": {"type": "str", "choices": ["volume", "snapshot"], "default": "volume"},
            "backend": {"type": "str", "choices": ["file", "lvm", "nfs"], "required": True},
            "options": {"type": "dict", "default": {}},
            "format": {"type": "str", "choices": ["raw", "qcow2"], "required": True},
            "size_gb": {"type": "int", "default": 0},
            "create": {"type": "bool", "default": True},
            "source": {"type": "dict"},
            "instance_uuid": {"type": "str"},
        },
    },
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
}


def run(call: HostCall) -> Result:
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


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
