# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # How the operator of a compute host has its guests
    DOCUMENTATION = r"""
options:
  domain_type:
    description:
      - What accelerates the guests. V(auto) is V(kvm) where it works and V(qemu), which is slow, otherwise.
    type: str
    choices: [auto, kvm, qemu]
    default: auto
  antispoof:
    description:
      - What keeps guests from sending under addresses that are not theirs. V(nwfilter) is libvirt's network filters,
        V(chains) is C(ebtables) in one transaction by M(novalite.cloud.firewall), which makes a start quicker.
      - A guest that runs keeps what it was started with.
    type: str
    choices: [nwfilter, chains]
    default: nwfilter
  vnc:
    description:
      - Whether guests get a display, which the console in a browser shows. It is on a Unix socket of libvirt's, and on
        no port. The image property C(hw_video_model) says which; with V(none) there its guests have no display.
      - A guest that runs keeps what it was started with.
    type: bool
    default: true
  cpu_mode:
    description:
      - The CPU of its guests, as Nova's option of the same name. V(host-model) is the host's own as far as libvirt
        knows it, V(host-passthrough) the host's own as it is, V(maximum) all that QEMU can emulate, V(custom) the first
        of O(cpu_models), and V(none) QEMU's. By default V(host-model) with KVM, and V(none) without.
      - A running server moves only to hosts with the same O(cpu_mode), O(cpu_models) and O(cpu_model_extra_flags).
      - A guest that runs keeps what it was started with.
    type: str
    choices: [host-model, host-passthrough, maximum, custom, none]
  cpu_models:
    description: With O(cpu_mode=custom), a name of libvirt's, such as V(Skylake-Server). The first one counts.
    type: list
    elements: str
    default: []
  cpu_model_extra_flags:
    description: Features that its guests' CPU has beside those of the model, V(pcid) or V(+pcid), or lacks, V(-vmx).
    type: list
    elements: str
    default: []
  disk_discard:
    description:
      - What becomes of the blocks that a guest gives back. With V(unmap) the host's file system gets them, with
        V(ignore) it does not, as in Nova (C(hw_disk_discard)). Left out, QEMU decides, which ignores them.
      - A guest that runs keeps what it was started with.
    type: str
    choices: [ignore, unmap]
  cpu_shared_set:
    description:
      - The host's CPUs, such as C(0-3,^2), that guests share which have none of their own. Left out, these are all, or
        none where there is a O(cpu_dedicated_set).
    type: str
    default: ''
  cpu_dedicated_set:
    description:
      - The host's CPUs that guests get for themselves (C(hw:cpu_policy=dedicated)), none of them in O(cpu_shared_set).
        Left out, there are none.
    type: str
    default: ''
  reserved_huge_pages:
    description: Huge pages that are not for guests, by NUMA node and size.
    type: list
    elements: dict
    default: []
    suboptions:
      node:
        description: The NUMA node.
        type: int
        required: true
      size:
        description: Size of a page in KiB.
        type: int
        required: true
      count:
        description: How many pages.
        type: int
        required: true
"""
