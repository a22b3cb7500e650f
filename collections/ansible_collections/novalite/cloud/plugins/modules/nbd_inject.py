#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nbd_inject
short_description: Write keys, names, addresses, passwords and files into the disks of stopped instances
version_added: 0.1.0
description:
  - Attaches the disk of each instance, mounts its root file system where nobody else sees it, and writes what is
    missing. A second time nothing is written. What was written is read back.
  - The file system is treated as hostile. No link in it leads out of it, only regular files are touched, and nothing
    of it is ever executed. The format of the disk is the one that M(novalite.cloud.disk) recorded.
  - Instances are worked on in parallel. A disk that a domain was ever defined with is left alone, since its guest may
    have written anything to it that the host's kernel would have to read.
extends_documentation_fragment:
  - novalite.cloud.changes
  - novalite.cloud.state_dir
options:
  instances:
    description: The instances and what must be in them.
    type: list
    elements: dict
    required: true
    suboptions:
      uuid:
        description: The UUID of the instance.
        type: str
        required: true
      disk:
        description: Which of its disks; V(disk.rescue) is the one that it is rescued with.
        type: str
        choices: [disk, disk.rescue]
        default: disk
      keys:
        description: Public keys that the user's C(authorized_keys) must have. Others in it are left alone.
        type: list
        elements: str
        default: []
      user:
        description: The user of the guest, looked up in its own C(/etc/passwd).
        type: str
        default: root
      hostname:
        description: What C(/etc/hostname) must say.
        type: str
      network:
        description:
          - The network interfaces that the guest must configure; what it has is replaced. Left out, it stays as it is.
          - Written as a netplan file, as C(/etc/network/interfaces) or for systemd-networkd, by what the guest has.
        type: dict
        suboptions:
          nics:
            description: The interfaces, in the order of the guest's devices.
            type: list
            elements: dict
            required: true
            suboptions:
              mac:
                description: The MAC address, by which netplan and systemd-networkd find the interface.
                type: str
                required: true
              name:
                description: The name of the interface, for C(/etc/network/interfaces).
                type: str
                required: true
              dhcp:
                description: Whether it gets its addresses by DHCP; O(instances[].network.nics[].ipv4) and
                  O(instances[].network.nics[].ipv6) are not written then.
                type: bool
                default: false
              ipv4:
                description: The IPv4 address, with its default route where this interface has it.
                type: dict
                suboptions: &address
                  address:
                    description: The address.
                    type: str
                    required: true
                  prefix:
                    description: The length of the network's prefix.
                    type: int
                    required: true
                  gateway:
                    description: The router of the default route.
                    type: str
              ipv6:
                description: The IPv6 address, with its default route where this interface has it.
                type: dict
                suboptions: *address
              more_ipv4:
                description: Further IPv4 addresses.
                type: list
                elements: dict
                default: []
                suboptions: *address
              dns:
                description: Addresses of name servers.
                type: list
                elements: str
                default: []
              mtu:
                description: The MTU in bytes.
                type: int
      volume:
        description:
          - The volume that it starts from, with C(id), C(backend), C(options) and C(format) as
            the step V(volume_disk) takes them. Without, its own root disk is written to.
        type: dict
      password_hash:
        description:
          - The crypt(5) hash that the user's line in C(/etc/shadow) must have.
        type: str
      password_optional:
        description: Go on without the password where the guest has no such line.
        type: bool
        default: false
      partition:
        description:
          - The number of the partition with the root file system; V(0) for a file system on the whole disk.
          - V(inspect), the default, finds it from the partition table and the headers of the file systems. Nothing is
            mounted to find out.
        type: str
        default: inspect
      files:
        description: Files that the guest must have, owned by root. Missing parents are created.
        type: list
        elements: dict
        default: []
        suboptions:
          path:
            description: The absolute path in the guest.
            type: str
            required: true
          content:
            description: The content, base64 encoded, at most 256 KiB.
            type: str
            required: true
          mode:
            description: The mode in octal.
            type: str
            default: '0644'
  backend:
    description:
      - How disks are attached. V(nbd) is the kernel's nbd driver, as in Nova; V(fuse) is qemu-storage-daemon and a
        loop device.
      - V(auto) takes V(nbd) where the kernel has it, else V(fuse).
    type: str
    choices: [auto, nbd, fuse]
    default: auto
attributes:
  check_mode:
    description: Attaches the disks read-only and says what would be written.
  diff_mode:
    description: Shows keys, host names and network configuration; of files and passwords only mode, owner and length.
requirements:
  - Linux 5.8 or newer
  - qemu-utils (qemu-nbd, qemu-storage-daemon)
"""

EXAMPLES = r"""
- name: Let the owner of an instance in
  novalite.cloud.nbd_inject:
    instances:
      - uuid: 5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41
        keys:
          - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGdldCB5b3VyIG93biBrZXkgZnJvbSBzc2gta2V5Z2Vu me@example.org
        hostname: web-1
        files:
          - path: /etc/motd
            content: "{{ 'Welcome' | b64encode }}"
"""

RETURN = r"""
backend:
  description: How the disks were attached.
  returned: success
  type: str
instances:
  description: One entry for each instance.
  returned: success
  type: list
  elements: dict
  contains:
    uuid:
      description: The UUID of the instance.
      type: str
      returned: always
    changed:
      description: Whether something was written.
      type: bool
      returned: always
    written:
      description: The paths in the guest that were written.
      type: list
      elements: str
      returned: always
"""

import base64
import binascii

from ..module_utils._disk.partition import INSPECT
from ..module_utils._errors import NovaliteError
from ..module_utils._guest.guest_network import nics_of
from ..module_utils._guest.inject import File, Request
from ..module_utils._guest.session import inject_all
from ..module_utils._host.files import STATE_DIR
from ..module_utils._host.module import HostCall, Result, run_host_module
from ..module_utils._json import JsonObject

ADDRESS = {
    "address": {"type": "str", "required": True},
    "prefix": {"type": "int", "required": True},
    "gateway": {"type": "str"},
}
NIC = {
    "mac": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
    "dhcp": {"type": "bool", "default": False},
    "ipv4": {"type": "dict", "options": ADDRESS},
    "ipv6": {"type": "dict", "options": ADDRESS},
    "more_ipv4": {"type": "list", "elements": "dict", "default": [], "options": ADDRESS},
    "dns": {"type": "list", "elements": "str", "default": []},
    "mtu": {"type": "int"},
}
ARGUMENT_SPEC = {
    "instances": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "uuid": {"type": "str", "required": True},
            "disk": {"type": "str", "choices": ["disk", "disk.rescue"], "default": "disk"},
            # Public keys; the option's name alone would make Ansible warn about a missing no_log.
            "keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
            "user": {"type": "str", "default": "root"},
            "hostname": {"type": "str"},
            "partition": {"type": "str", "default": "inspect"},
            "network": {
                "type": "dict",
                "options": {"nics": {"type": "list", "elements": "dict", "required": True, "options": NIC}},
            },
            "volume": {"type": "dict"},
            "password_hash": {"type": "str", "no_log": True},
            "password_optional": {"type": "bool", "default": False, "no_log": False},
            "files": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "str", "required": True},
                    "content": {"type": "str", "required": True, "no_log": True},
                    "mode": {"type": "str", "default": "0644"},
                },
            },
        },
    },
    "backend": {"type": "str", "choices": ["auto", "nbd", "fuse"], "default": "auto"},
    "state_dir": {"type": "path", "default": STATE_DIR},
}


def _file(path: str, content: str, mode: str) -> File:
    try:
        return File(path, base64.b64decode(content, validate=True), int(mode, 8))
    except binascii.Error:
        raise NovaliteError(f"file {path}: its content is not base64") from None
    except ValueError:
        raise NovaliteError(f"file {path}: mode '{mode}' is not octal") from None


def _partition(text: str) -> int | str:
    if text == INSPECT:
        return text
    if not (text.isascii() and text.isdigit()):
        raise NovaliteError(f"partition '{text[:40]}' is not a number; use 0 for the whole disk, or {INSPECT}")
    return int(text)


def _request(instance: JsonObject) -> Request:
    files = tuple(_file(**file) for file in instance["files"])
    network = instance["network"]
    return Request(
        uuid=instance["uuid"],
        keys=tuple(instance["keys"]),
        user=instance["user"],
        hostname=instance["hostname"],
        partition=_partition(instance["partition"]),
        files=files,
        nics=() if network is None else nics_of(network),
        password_hash=instance["password_hash"],
        password_optional=instance["password_optional"],
        volume=instance["volume"],
        disk=instance["disk"],
    )


def run(call: HostCall) -> Result:
    requests = [_request(instance) for instance in call.params["instances"]]
    return inject_all(requests, call.params["state_dir"], call.params["backend"], call.check_mode)


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
