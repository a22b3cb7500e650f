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
  - Brings images into C(<state_dir>/_base/<sha256>) of a compute host, each once, however many instances and
    playbooks ask for it at the same time.
  - An image is fetched from a URL by the host itself, or pushed from a path on the controller. Its size and checksum
    are verified. A disk image must be what its declared format says, on its own (no backing file, data file or
    encryption), and is converted to a sparse raw file.
  - An image that is in the cache already costs one module call.
options:
  images:
    description: The images that must be in the cache.
    type: list
    elements: dict
    required: true
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
        description: The size of the source in bytes. No more is ever read.
        type: int
        required: true
      kind:
        description: What the image is for. Kernels and ramdisks are stored as they are.
        type: str
        choices: [disk, kernel, ramdisk]
        default: disk
      disk_format:
        description: The declared format of a disk image. Formats are never guessed.
        type: str
        choices: [qcow2, raw]
      virtual_size:
        description: The size in bytes that a guest would see, if it was registered. Another size is an error.
        type: int
      max_virtual_size:
        description: The greatest size in bytes that a guest may see; 0 for no such limit. A larger image is refused.
        type: int
        default: 0
      staged:
        description: Where the source was put on the host. The action plug-in sets this.
        type: path
  state_dir:
    description: The directory of novalite's state on the compute host.
    type: path
    default: /var/lib/novalite
attributes:
  check_mode:
    support: full
    description: Says what would be fetched and changes nothing. Sources on the controller must exist.
  diff_mode:
    support: full
    description: Lists the images that are fetched.
requirements:
  - qemu-img
author:
  - novalite contributors (@novalite)
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
"""

RETURN = r"""
refused:
  description: Whether an image is not what was declared, so that no other host would take it either.
  returned: failure
  type: bool
images:
  description: One entry for each image.
  returned: success
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
missing:
  description: Images whose source is on the controller and that were not pushed yet.
  returned: success
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
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._disk.cache import Image, ensure_images
from ..module_utils._errors import ImageRefusedError, NovaliteError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "images": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "checksum": {"type": "str", "required": True},
                    "source": {"type": "str", "required": True},
                    "size": {"type": "int", "required": True},
                    "kind": {"type": "str", "choices": ["disk", "kernel", "ramdisk"], "default": "disk"},
                    "disk_format": {"type": "str", "choices": ["qcow2", "raw"]},
                    "virtual_size": {"type": "int"},
                    "max_virtual_size": {"type": "int", "default": 0},
                    "staged": {"type": "path"},
                },
            },
            "state_dir": {"type": "path", "default": "/var/lib/novalite"},
        },
        supports_check_mode=True,
    )
    try:
        images = [Image(**image) for image in module.params["images"]]
        result = ensure_images(images, module.params["state_dir"], module.check_mode)
    except NovaliteError as error:
        module.fail_json(msg=str(error), refused=isinstance(error, ImageRefusedError))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
