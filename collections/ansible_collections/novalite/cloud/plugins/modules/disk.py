#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: disk
short_description: Keep the disks of instances on a compute host
version_added: 0.1.0
description:
  - Creates C(<state_dir>/instances/<uuid>/) with a C(disk) made from a raw base image in the cache, an ephemeral disk
    C(disk.eph0) and a swap disk C(disk.swap) where they are asked for, copies of the C(kernel) and the C(ramdisk), and
    C(disk.info), which records the format of each disk. A disk's own content is never asked for its format.
  - Files that exist are left alone. If one instance fails, what the call created for all of them is removed.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.state_dir
options:
  disks:
    description: The instances and what their disks are made from.
    type: list
    elements: dict
    required: true
    suboptions:
      uuid:
        description: The UUID of the instance.
        type: str
        required: true
      base:
        description: The checksum of the cached disk image, C(sha256:<hex>). A root disk without one is empty.
        type: str
      virtual_size_gb:
        description:
          - The size of the disk in GiB; 0 for the size of the image. It must hold the image. An empty disk needs one.
        type: int
        default: 0
      kernel:
        description: The checksum of the cached kernel, for guests that are started from one.
        type: str
      ramdisk:
        description: The checksum of the cached ramdisk.
        type: str
      backend:
        description:
          - V(qcow2) makes copy-on-write files on top of the cached images, V(raw) makes sparse copies of them.
          - It cannot be changed while the instance exists.
        type: str
        choices: [qcow2, raw]
        default: qcow2
      preallocation:
        description: V(space) reserves the room for the disks on the host's file system at once.
        type: str
        choices: [none, space]
        default: none
      ephemeral_gb:
        description:
          - The size in GiB of a further disk with an empty ext4 file system, labelled C(ephemeral0); 0 for none.
        type: int
        default: 0
      swap_mb:
        description: The size in MiB of a disk for swapping; 0 for none.
        type: int
        default: 0
      root:
        description: Whether it has a root disk of its own. One that starts from a volume has none.
        type: bool
        default: true
      rescue:
        description:
          - Whether it is the disk, kernel and ramdisk that the instance is rescued with. Its own ones are left alone.
        type: bool
        default: false
      cdroms:
        description:
          - The checksums of the cached ISO images in the CD drives of the instance, in their order; an empty text for
            an empty drive. Each is a copy-on-write file C(disk.cd<drive>-<checksum>) that nobody writes to.
        type: list
        elements: str
        default: []
        version_added: 0.2.0
      to_bin:
        description:
          - With O(state=absent), moves the directory to C(<state_dir>/removed/<date>/<uuid>), as it is, instead.
        type: bool
        default: false
      record:
        description: What the ledger says of the instance, to be kept beside it; see the step V(host_record).
        type: str
  state:
    description:
      - V(absent) removes the directories of the instances with all they hold.
      - V(anew) makes the disks anew and always changes something. The old ones stay until the new ones are there, and
        if one fails, all of them. No guest may be using them.
      - V(emptied) removes for good what was moved away by O(disks[].to_bin), on O(days) and as O(min_free) says.
    type: str
    choices: [present, anew, absent, emptied]
    default: present
  existing:
    description:
      - With O(state=present), the kinds of disks that are not made, for their guests have written to them. The module
        fails, before it makes anything, where one is missing.
    type: list
    elements: str
    choices: [root, ephemeral]
    default: []
    version_added: 0.2.0
  days:
    description: With O(state=emptied), the days that are emptied, such as V(2026-11-01).
    type: list
    elements: str
    default: []
  min_free:
    description: With O(state=emptied), empties the oldest days, too, until so many percent of the file system are free.
    type: int
    default: 0
  wipe:
    description:
      - What to do with the content of the files before they are removed by O(state=absent), O(state=anew) or
        O(state=emptied).
      - V(zero) overwrites all of it, which takes its time, and means nothing on a copy-on-write file system.
      - V(discard) gives the blocks back to the file system, which hands that on to the device where it is mounted with
        C(discard).
    type: str
    choices: [none, discard, zero]
    default: none
attributes:
  diff_mode:
    description: Lists the files that are created or removed.
requirements:
  - e2fsprogs and util-linux, for ephemeral and swap disks
"""

EXAMPLES = r"""
- name: Give an instance its disk
  novalite.cloud.disk:
    disks:
      - uuid: 5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41
        base: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
        virtual_size_gb: 10
        ephemeral_gb: 20
        swap_mb: 512

- name: Remove it, and leave nothing of it to read
  novalite.cloud.disk:
    disks:
      - uuid: 5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41
    state: absent
    wipe: zero
"""

RETURN = r"""
disks:
  description: One entry for each instance.
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: The UUID of the instance.
      type: str
      returned: always
    path:
      description: The path of its disk.
      type: str
      returned: when O(state) is V(present) or V(anew)
    created:
      description: The files that were created.
      type: list
      elements: str
      returned: when O(state) is V(present) or V(anew)
    removed:
      description: The files that were removed.
      type: list
      elements: str
      returned: when O(state=absent)
emptied:
  description: The days that were emptied, each with C(day), the number of C(disks), and the C(bytes) that they took.
  returned: when O(state=emptied)
  type: list
  elements: dict
"""

from ..module_utils._disk.overlay import Disk, create_disks, replace_disks
from ..module_utils._disk.removal import empty_bin, remove_disks
from ..module_utils._host.files import STATE_DIR
from ..module_utils._host.module import HostCall, Result, run_host_module
from ..module_utils._host.records import write_records

ARGUMENT_SPEC = {
    "disks": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "uuid": {"type": "str", "required": True},
            "base": {"type": "str"},
            "virtual_size_gb": {"type": "int", "default": 0},
            "kernel": {"type": "str"},
            "ramdisk": {"type": "str"},
            "backend": {"type": "str", "choices": ["qcow2", "raw"], "default": "qcow2"},
            "preallocation": {"type": "str", "choices": ["none", "space"], "default": "none"},
            "ephemeral_gb": {"type": "int", "default": 0},
            "swap_mb": {"type": "int", "default": 0},
            "root": {"type": "bool", "default": True},
            "rescue": {"type": "bool", "default": False},
            "cdroms": {"type": "list", "elements": "str", "default": []},
            "to_bin": {"type": "bool", "default": False},
            "record": {"type": "str"},
        },
    },
    "state": {"type": "str", "choices": ["present", "anew", "absent", "emptied"], "default": "present"},
    "existing": {"type": "list", "elements": "str", "choices": ["root", "ephemeral"], "default": []},
    "days": {"type": "list", "elements": "str", "default": []},
    "min_free": {"type": "int", "default": 0},
    "wipe": {"type": "str", "choices": ["none", "discard", "zero"], "default": "none"},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def run(call: HostCall) -> Result:
    params, check_mode = call.params, call.check_mode
    state, state_dir, wipe = params["state"], params["state_dir"], params["wipe"]
    records = {disk["uuid"]: disk["record"] for disk in params["disks"] if disk["record"] is not None}
    to_bin = {disk["uuid"] for disk in params["disks"] if disk["to_bin"]}
    not_of_disk = ("record", "to_bin")
    disks = [
        Disk(**{name: value for name, value in disk.items() if name not in not_of_disk}) for disk in params["disks"]
    ]
    if state == "emptied":
        return empty_bin(state_dir, params["days"], params["min_free"], check_mode, wipe)
    if state == "present":
        result = create_disks(disks, state_dir, check_mode, params["existing"])
    elif state == "anew":
        result = replace_disks(disks, state_dir, check_mode, wipe)
    else:
        result = remove_disks(disks, state_dir, check_mode, wipe, to_bin)
    if state != "absent" and not check_mode:
        write_records(state_dir, records)
    return result


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
