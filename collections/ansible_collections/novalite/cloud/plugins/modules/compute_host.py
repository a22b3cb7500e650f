#!/usr/bin/python
# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: compute_host
short_description: Gather a hypervisor's facts and record it as a compute host, or take it out of the cloud
version_added: 0.1.0
description:
  - Gathers, on the hypervisor and in one task, what the scheduler counts with and what a guest's XML needs to know.
  - An action plug-in of the same name then records it in the ledger on the controller, with the policy options.
  - A hypervisor whose libvirt daemon does not answer is no error. It is recorded as down, with the reason, and the
    scheduler leaves it out. One that cannot be reached at all is left to Ansible's own handling.
  - Every plan for the host names files below its O(state_dir), so another one is refused as long as an instance, a
    claim, a volume or a move that waits for its end is there.
extends_documentation_fragment:
  - novalite.cloud.ledger.home
  - novalite.cloud.ledger.host
  - novalite.cloud.state_dir
  - novalite.cloud.libvirt
  - novalite.cloud.guests_of_host
  - novalite.cloud.host_policy
notes:
  - On x86_64, whether KVM works is found out with a guest that counts to ten million, because some hosts have a
    C(/dev/kvm) that takes every call but interprets its guests a thousand times too slowly. The answer is kept in the
    file C(facts) under O(state_dir) until the host boots again, gets another QEMU or changes the rights of C(/dev/kvm).
attributes:
  check_mode:
    support: full
    description: Facts are gathered, the ledger's transaction is rolled back.
  diff_mode:
    support: full
    description: Shows what the ledger held of this host, and what it holds now, as far as it changed.
  action:
    support: partial
    description: The facts are gathered on the host, the record is written on the controller.
options:
  state:
    description:
      - V(present) looks at the host and records it.
      - V(absent) takes it out of the ledger, without a word to the host, which need not exist any more. Refused as long
        as an instance, a claim, a volume or a move that waits for its end is there. Its places in aggregates and its
        own addresses go with it.
      - A host that is still in the inventory is back with the next look at all hosts, which every launch takes.
    type: str
    choices: [present, absent]
    default: present
  replaced:
    description:
      - Whether the machine of this name is another one than the ledger has, since its hardware was replaced or it was
        installed anew. It is recorded then. Otherwise another machine is refused.
    type: bool
    default: false
  tunnel_address:
    description:
      - The host's address that VXLAN tunnels between compute hosts end at. Defaults to its address in the inventory, if
        that is an address.
    type: str
  room:
    description:
      - What the ledger counts on, as the step V(launch_plan) gives it. The task fails where the host's libvirt
        daemon does not answer, and where guests of others have taken the room meanwhile.
    type: dict
    suboptions:
      count_foreign:
        description: Which guests of others count.
        type: str
        choices: [running, all, none]
        required: true
      instances:
        description: UUIDs of the guests that are not others'.
        type: list
        elements: str
        required: true
      vcpus:
        description: The host's CPUs. Left out, they are not checked.
        type: dict
        suboptions: &share
          used:
            description: How much of it the ledger's instances have, those that are to be built among them.
            type: int
            required: true
          reserved:
            description: How much of it is kept for the host itself.
            type: int
            required: true
          ratio:
            description: How often each of it may be handed out.
            type: float
            required: true
      memory_mb:
        description: The host's memory in MiB. Left out, it is not checked.
        type: dict
        suboptions: *share
      disk_gb:
        description: The host's disk in GiB. Left out, it is not checked.
        type: dict
        suboptions: *share
"""

EXAMPLES = r"""
- name: Record all hypervisors
  hosts: compute
  gather_facts: false
  tasks:
    - name: Gather facts and record the host
      novalite.cloud.compute_host:
        zone: nova
        aggregates: [ssd]
        reserved_memory_mb: 1024

- name: Take a host out of the cloud, whether it still exists or not
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Forget hv2
      novalite.cloud.compute_host:
        name: hv2
        state: absent
"""

RETURN = r"""
compute_host:
  description: The facts that were gathered.
  type: dict
  returned: success and O(state=present)
  contains:
    name:
      description: Name of the compute host.
      type: str
    identity:
      description: >-
        What tells the machine from others: C(machine_id) and C(product_uuid), as far as they can be read.
      type: dict
    up:
      description: Whether its libvirt daemon answers and can run guests.
      type: bool
    down_reason:
      description: Why it is not up.
      type: str
    vcpus:
      description: Number of its CPUs.
      type: int
    memory_mb:
      description: Its memory in MiB.
      type: int
    disk_gb:
      description: Size in GiB of the file system that holds O(state_dir).
      type: int
    state_dir:
      description: Where it keeps images, instances and volumes, O(state_dir) as an absolute path.
      type: str
    hypervisor_type:
      description: V(KVM) or V(QEMU).
      type: str
    hypervisor_version:
      description: Version of QEMU, such as 7002022 for 7.2.22.
      type: int
    booted_at:
      description: When it was started, in seconds since the epoch.
      type: int
    clock_ahead:
      description: Seconds, in fives, by which its clock is ahead of the controller's, or (below zero) behind it; left
        out where they agree.
      type: int
    libvirt_version:
      description: Version of libvirt, such as 9000000 for 9.0.0.
      type: int
    arch:
      description: Its architecture.
      type: str
    cpu_model:
      description: Name of its CPU.
      type: str
    traits:
      description: What its CPU, its firmware, its TPMs and its devices can do, by the names of OpenStack's os-traits.
      type: list
      elements: str
    domain_type:
      description: V(kvm) or V(qemu).
      type: str
    antispoof:
      description: What keeps guests from sending under foreign addresses, V(nwfilter) or V(chains).
      type: str
    vnc:
      description: Whether guests get a display.
      type: bool
    domain_type_reason:
      description: Why it is that one, unless KVM was found to work.
      type: str
    emulator:
      description: Path of QEMU.
      type: str
    machine:
      description: The machine type of new guests.
      type: str
    machine_types:
      description: >-
        Machine types that images may ask for (C(hw_machine_type)), each with the firmware that it can have beside a
        BIOS, V(efi) and V(secure), which is Secure Boot.
      type: dict
    tpm:
      description: Versions and models of the TPMs that it can emulate.
      type: list
      elements: str
    disk_buses:
      description: Buses that it can have disks on, as libvirt says.
      type: list
      elements: str
    video_models:
      description: Models of displays that it has, as libvirt says.
      type: list
      elements: str
    cpu_mode:
      description: O(cpu_mode).
      type: str
    cpu_models:
      description: O(cpu_models).
      type: list
      elements: str
    cpu_model_extra_flags:
      description: O(cpu_model_extra_flags).
      type: list
      elements: str
    disk_discard:
      description: O(disk_discard).
      type: str
    numa:
      description: >-
        Its NUMA nodes, each with C(id), C(cpus), C(siblings), the hardware threads of its cores, C(memory_mb) and
        C(pages), how many there are by their size in KiB.
      type: list
      elements: dict
    cpu_shared_set:
      description: O(cpu_shared_set).
      type: str
    cpu_dedicated_set:
      description: O(cpu_dedicated_set).
      type: str
    reserved_huge_pages:
      description: O(reserved_huge_pages).
      type: list
      elements: dict
    security_driver:
      description: What libvirt confines guests with, V(apparmor), V(selinux), or V(none).
      type: str
    disk_cache:
      description: V(none) where the file system of O(state_dir) can do O_DIRECT, V(writethrough) otherwise.
      type: str
    inject_backend:
      description: How files can be injected into an image here, V(nbd), V(fuse) or V(none).
      type: str
    libvirt_daemon:
      description: The daemon that answers for libvirt, V(virtqemud) or V(libvirtd).
      type: str
    libvirt_binding:
      description: Whether the Python that the module runs in has libvirt's binding.
      type: bool
    systemd:
      description: Whether the host was booted with systemd.
      type: bool
    missing_commands:
      description:
        - Commands that the modules of this collection need and that the host does not have. Where any of several will
          do, they are one entry, such as V(genisoimage or mkisofs or xorrisofs).
      type: list
      elements: str
    address:
      description: Its address in the inventory, null when the inventory has a name only.
      type: str
    tunnel_address:
      description: The address that VXLAN tunnels end at.
      type: str
    places:
      description: >-
        Where the host lives, each with C(kind) (V(address), V(gateway), V(client), the ssh client that asked, V(name
        server), V(libvirt network), V(route)), C(cidr) and C(device). What this collection made there is left out.
      type: list
      elements: dict
    shared_routes:
      description: O(shared_routes).
      type: list
      elements: str
    domains:
      description: >-
        All of the host's domains, whoever made them, each with C(uuid), C(name), C(state) (V(running) or V(shutoff)),
        C(vcpus), C(memory_mb) and C(disk_gb), what its disks may come to take of the file system of O(state_dir),
        and C(ledger), the identity of the ledger that made it, if any did.
      type: list
      elements: dict
policy:
  description: The options of policy that were given, to be recorded with the facts.
  type: dict
  returned: success and O(state=present)
"""

import platform
import time

from ..module_utils._domain.usage import Room, shortage
from ..module_utils._drift.host_facts import gather
from ..module_utils._host.files import STATE_DIR
from ..module_utils._host.libvirt_connection import DEFAULT_URI
from ..module_utils._host.module import HostCall, HostModuleError, Result, run_host_module
from ..module_utils._model import cpu_mode

_SHARE = {
    "type": "dict",
    "options": {
        "used": {"type": "int", "required": True},
        "reserved": {"type": "int", "required": True},
        "ratio": {"type": "float", "required": True},
    },
}
# What is asked of the host itself, and what its operator decides. The action plug-in sends the former only.
FACT_ARGUMENTS = {
    "name": {"type": "str"},
    "state_dir": {"type": "path", "default": STATE_DIR},
    "uri": {"type": "str", "default": DEFAULT_URI},
    "domain_type": {"type": "str", "choices": ["auto", "kvm", "qemu"], "default": "auto"},
    "room": {
        "type": "dict",
        "options": {
            "count_foreign": {"type": "str", "choices": ["running", "all", "none"], "required": True},
            "instances": {"type": "list", "elements": "str", "required": True},
            "vcpus": _SHARE,
            "memory_mb": _SHARE,
            "disk_gb": _SHARE,
        },
    },
}
GUEST_ARGUMENTS = ("antispoof", "vnc", *cpu_mode.OPTIONS, "disk_discard")  # how the operator has its guests
POLICY_ARGUMENTS = {
    "zone": {"type": "str"},
    "aggregates": {"type": "list", "elements": "str"},
    "enabled": {"type": "bool"},
    "disabled_reason": {"type": "str"},
    "reserved_vcpus": {"type": "int"},
    "reserved_memory_mb": {"type": "int"},
    "reserved_disk_gb": {"type": "int"},
    "count_foreign": {"type": "str", "choices": ["running", "all", "none"]},
    "cpu_ratio": {"type": "float"},
    "ram_ratio": {"type": "float"},
    "disk_ratio": {"type": "float"},
}
ARGUMENT_SPEC = {
    **FACT_ARGUMENTS,
    **POLICY_ARGUMENTS,
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "replaced": {"type": "bool", "default": False},
    "tunnel_address": {"type": "str"},
    "antispoof": {"type": "str", "choices": ["nwfilter", "chains"], "default": "nwfilter"},
    "shared_routes": {"type": "list", "elements": "str", "default": []},
    "cpu_shared_set": {"type": "str", "default": ""},
    "cpu_dedicated_set": {"type": "str", "default": ""},
    "reserved_huge_pages": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {key: {"type": "int", "required": True} for key in ("node", "size", "count")},
    },
    "vnc": {"type": "bool", "default": True},
    "cpu_mode": {"type": "str", "choices": list(cpu_mode.MODES)},
    "cpu_models": {"type": "list", "elements": "str", "default": []},
    "cpu_model_extra_flags": {"type": "list", "elements": "str", "default": []},
    "disk_discard": {"type": "str", "choices": ["ignore", "unmap"]},
    # As in the documentation fragment `ledger`, of which a hypervisor can make nothing.
    "home": {"type": "path"},
    "ledger_url": {"type": "str", "no_log": True},
}


def run(call: HostCall) -> Result:
    params = call.params
    if params["state"] == "absent":
        raise HostModuleError("state=absent is the controller's work: use novalite.cloud.compute_host in a task")
    name = params["name"] or platform.node()
    facts = gather(name, params["state_dir"], params["uri"], params["domain_type"], call.check_mode)
    facts = {**facts, **{option: params[option] for option in GUEST_ARGUMENTS}}
    if params["room"]:
        lacking = shortage(facts, Room.of(params["room"])) if facts["up"] else facts["down_reason"]
        if lacking:
            raise HostModuleError(f"{name} cannot take what was planned for it: {lacking}", compute_host=facts)
    return {"changed": False, "compute_host": facts, "clock": time.time()}


def main() -> None:
    run_host_module(ARGUMENT_SPEC, run)


if __name__ == "__main__":
    main()
