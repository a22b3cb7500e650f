#!/usr/bin/python

# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: image
short_description: Manage the images that instances start from
version_added: 0.1.0
description:
  - Makes, changes and removes image records in the ledger. The files stay where they are. Hypervisors fetch them once,
    verify their checksum, and keep them in a cache.
  - The format of an image is declared, never guessed. A local file is read, and must be what was declared, without a
    backing file or external data.
  - An instance carries a copy of its image's record from its launch on. To change or remove one touches no instance.
  - An image that was protected through the Image API is not removed.
extends_documentation_fragment:
  - novalite.cloud.ledger
  - novalite.cloud.ledger.state
  - novalite.cloud.nouns.image
options:
  images:
    description:
      - The images, by name.
      - What is left out of an existing image stays as it is.
    type: list
    elements: dict
    required: true
  project:
    description:
      - Name of the project that the images belong to, and that alone sees them.
      - Without it they are public. Every project sees them.
    type: str
seealso:
  - module: novalite.cloud.image_cache
"""

EXAMPLES = r"""
- name: Have an image with its own boot loader, and one that is started with a kernel
  novalite.cloud.image:
    images:
      - name: debian-12
        source: https://cloud.example.com/debian-12-generic-amd64.qcow2
        checksum: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
        disk_format: qcow2
        min_disk_gb: 3
      - name: ami-tiny
        source: /srv/images/tiny.raw
        disk_format: raw
        kernel: /srv/images/vmlinuz
        ramdisk: /srv/images/initrd.gz
        cmdline: root=/dev/vda console=ttyS0
"""

RETURN = r"""
images:
  description:
    - The images that were named, as they are now. Empty with O(state=absent).
    - Each has what O(images) can say of one, under the same names, but O(images[].any_content).
  returned: success
  type: list
  elements: dict
  contains:
    id:
      description: UUID of the image.
      type: str
    size:
      description: Size of the file in bytes. 0 for a URL.
      type: int
    virtual_size:
      description: Size of the disk in the file, in bytes. 0 for a URL.
      type: int
    kernel:
      description: C(source), C(checksum) and C(size) of the kernel, or null.
      type: dict
    ramdisk:
      description: C(source), C(checksum) and C(size) of the RAM disk, or null.
      type: dict
appliances:
  description: What the descriptors of OVAs among the images say of the machines.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Name of the image of the disk that the machine boots from.
      type: str
    vcpus:
      description: Number of processors.
      type: int
    memory_mib:
      description: Memory in MiB.
      type: int
    networks:
      description: Name of the network of each interface.
      type: list
      elements: str
    disks:
      description: C(file) and C(disk_format) of each disk, the one that it boots from first.
      type: list
      elements: dict
    uefi:
      description: Whether it starts by UEFI.
      type: bool
files:
  description: The files of these images, each once, as M(novalite.cloud.image_cache) takes them.
  returned: success
  type: list
  elements: dict
"""

from ..module_utils._ledger_module import run_module


def main() -> None:
    run_module(DOCUMENTATION)


if __name__ == "__main__":
    main()
