#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image_cache
short_description: Keep guest images in the cache of a compute host
version_added: 0.1.0
description:
  - Brings images into C(<state_dir>/_base/<sha256>.raw) of a compute host, each once, however many instances
    and playbooks ask for it at the same time.
  - An image is fetched from a URL by the host itself, or pushed from a path on the controller. Its size and checksum
    are verified. A disk image must be what its declared format says, on its own (no backing file, data file or
    encryption), and is converted to a sparse raw file.
  - A download that was interrupted goes on where it stopped, in the same run or in a later one. Its progress is logged
    on the host.
  - An image that is in the cache already costs one module call.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.state_dir
options:
  images:
    description: The images that must be in the cache. Required for O(state=present).
    type: list
    elements: dict
    suboptions:
      checksum:
        description: The SHA-256 digest of the source as C(sha256:<hex>). It names the image in the cache.
        type: str
        required: true
      source:
        description: An C(http://) or C(https://) URL, or a path on the controller.
        type: str
        required: true
      size:
        description: The size of the source in bytes. No more is ever read. 0 where it is not known.
        type: int
        default: 0
      kind:
        description: What the image is for. Kernels and ramdisks are stored as they are.
        type: str
        choices: [disk, kernel, ramdisk]
        default: disk
      disk_format:
        description: The declared format of a disk image. Formats are never guessed.
        type: str
        choices: [qcow2, raw, iso]
      virtual_size:
        description: The size in bytes that a guest would see, 0 where it is not known. Another size is an error.
        type: int
      max_virtual_size:
        description: The greatest size in bytes that a guest may see; 0 for no such limit. A larger image is refused.
        type: int
        default: 0
      staged:
        description: Where the source was put on the host. The action plug-in sets this.
        type: path
  max_image_gb:
    description: The most, in GiB, that is read of an image whose size is not known.
    type: int
    default: 64
  timeout:
    description: Seconds that a download may take. What came is kept for the next run.
    type: int
    default: 3600
  download_by:
    description:
      - Who downloads what URLs name.
      - V(controller) is for hosts without a way to the servers. The controller downloads each image once, for all
        hosts, into O(controller_dir), and pushes it once to each host that misses it.
    type: str
    choices: [host, controller]
    default: host
  controller_dir:
    description:
      - The directory on the controller for its downloads. Files in it are named by their SHA-256, and may be removed at
        any time.
      - Defaults to C(images) in the ledger's home, which the variable C(novalite_home) names, then the environment
        variable E(NOVALITE_HOME) of the C(ansible-playbook) process.
    type: path
  state:
    description:
      - V(evicted) removes files from the cache that no disk on this host stands on, those that were not used for
        O(max_age) seconds, then the least recently used until the cache has O(max_cache_gb).
      - What was used within the last ten minutes stays in any case.
    type: str
    choices: [present, evicted]
    default: present
  max_age:
    description: For O(state=evicted), seconds since the last use, at least 600.
    type: int
    default: 86400
  max_cache_gb:
    description: For O(state=evicted), what the files of the cache may take on the disk, in GiB. No limit by default.
    type: int
attributes:
  check_mode:
    description: Says what would be fetched and changes nothing. Sources on the controller must exist.
  diff_mode:
    description: Lists the images that are fetched.
requirements:
  - qemu-img
"""

EXAMPLES = r"""
- name: Keep the image of a guest in the cache
  novalite.cloud.image_cache:
    images:
      - checksum: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
        source: https://images.example.org/debian-12.qcow2
        size: 346816512
        disk_format: qcow2
        virtual_size: 3221225472

- name: Remove what was not used for a week, and all but 100 GiB
  novalite.cloud.image_cache:
    state: evicted
    max_age: 604800
    max_cache_gb: 100
"""

RETURN = r"""
refused:
  description: Whether an image is not what was declared, so that no other host would take it either.
  returned: failure
  type: bool
images:
  description: One entry for each image.
  returned: when O(state=present)
  type: list
  elements: dict
  contains:
    checksum:
      description: The checksum that was asked for.
      type: str
      returned: always
    path:
      description: The path in the cache.
      type: str
      returned: always
    status:
      description: V(cached) if it was there, V(fetched) if this call brought it, V(absent) if it is not there.
      type: str
      returned: always
    bytes:
      description: The size of what was downloaded.
      type: int
      returned: after a download
    seconds:
      description: How long the download took.
      type: float
      returned: after a download
    resumed_from:
      description: How many of the bytes an earlier run had left.
      type: int
      returned: after a download
missing:
  description: Images that the controller has to push and that were not pushed yet.
  returned: when O(state=present)
  type: list
  elements: dict
  contains:
    checksum:
      description: The checksum that was asked for.
      type: str
      returned: always
    source:
      description: The path on the controller.
      type: str
      returned: always
    size:
      description: The declared size in bytes.
      type: int
      returned: always
    staged:
      description: Where to put the source on the host; null in check mode.
      type: str
      returned: always
evicted:
  description: The files that were removed.
  returned: when O(state=evicted)
  type: list
  elements: dict
  contains:
    name:
      description: The image's SHA-256 in hex digits, or kind and size of an empty disk.
      type: str
      returned: always
    bytes:
      description: What it took on the disk.
      type: int
      returned: always
    age:
      description: Seconds since its last use.
      type: int
      returned: always
kept:
  description: C(count) and C(bytes) of the files that are left.
  returned: when O(state=evicted)
  type: dict
"""

from ..module_utils._disk.cache import Image, Rules, ensure_images
from ..module_utils._disk.evict import GRACE, evict
from ..module_utils._errors import ImageRefusedError, NovaliteError
from ..module_utils._host.files import STATE_DIR
from ..module_utils._host.module import HostCall, HostModuleError, Result, run_host_module

GIB = 1 << 30
ARGUMENT_SPEC = {
    "images": {
        "type": "list",
        "elements": "dict",
        "options": {
            "checksum": {"type": "str", "required": True},
            "source": {"type": "str", "required": True},
            "size": {"type": "int", "default": 0},
            "kind": {"type": "str", "choices": ["disk", "kernel", "ramdisk"], "default": "disk"},
            "disk_format": {"type": "str", "choices": ["qcow2", "raw", "iso"]},
            "virtual_size": {"type": "int"},
            "max_virtual_size": {"type": "int", "default": 0},
            "staged": {"type": "path"},
        },
    },
    "max_image_gb": {"type": "int", "default": 64},
    "timeout": {"type": "int", "default": 3600},
    "download_by": {"type": "str", "choices": ["host", "controller"], "default": "host"},
    "controller_dir": {"type": "path"},
    "state": {"type": "str", "choices": ["present", "evicted"], "default": "present"},
    "max_age": {"type": "int", "default": 86400},
    "max_cache_gb": {"type": "int"},
    "state_dir": {"type": "path", "default": STATE_DIR},
}
SPEC_RULES = {"required_if": [("state", "present", ["images"])]}


def _ensure(call: HostCall) -> Result:
    params = call.params
    images = [Image(**image) for image in params["images"]]
    rules = Rules(
        max_size=params["max_image_gb"] * GIB,
        timeout=params["timeout"],
        pushed=params["download_by"] == "controller",
        report=call.log,
    )
    return ensure_images(images, params["state_dir"], call.check_mode, rules)


def _evict(call: HostCall) -> Result:
    params, limit = call.params, call.params["max_cache_gb"]
    max_bytes = None if limit is None else limit * GIB
    return evict(params["state_dir"], max(params["max_age"], GRACE), max_bytes, call.check_mode)


def run(call: HostCall) -> Result:
    try:
        return _evict(call) if call.params["state"] == "evicted" else _ensure(call)
    except NovaliteError as error:
        raise HostModuleError(str(error), refused=isinstance(error, ImageRefusedError)) from error


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run, **SPEC_RULES)


if __name__ == "__main__":
    main()
