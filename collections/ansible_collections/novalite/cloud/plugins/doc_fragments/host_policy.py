# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    # What the operator of a compute host decides for the scheduler
    DOCUMENTATION = r"""
options:
  shared_routes:
    description:
      - Destinations of routes of the host, such as C(10.0.0.0/8), of which networks may have a part. Otherwise no
        network gets a range in which the host lives, be it by an address, a gateway or a route.
    type: list
    elements: str
    default: []
  zone:
    description:
      - Availability zone. Left as it is by default, V(nova) for a new host.
      - An aggregate with a zone that the host is in (M(novalite.cloud.aggregate)) goes before V(nova). It is an error
        if it is another zone than one that is given here.
    type: str
  aggregates:
    description: Names of the host aggregates that it belongs to. Left as they are by default, none for a new host.
    type: list
    elements: str
  enabled:
    description:
      - Whether the scheduler may choose it. Left as it is by default, V(true) for a new host.
      - What M(novalite.cloud.compute_service) decided stays when this is left out, and is overruled when it is given.
    type: bool
  disabled_reason:
    description: Why it is not enabled.
    type: str
  reserved_vcpus:
    description: CPUs that are kept for the host itself. Left as they are by default, V(0) for a new host.
    type: int
  reserved_memory_mb:
    description: MiB of memory that are kept for the host itself. Left as they are by default, V(512) for a new host.
    type: int
  reserved_disk_gb:
    description: GiB of disk that are kept for the host itself. Left as they are by default, V(0) for a new host.
    type: int
  count_foreign:
    description:
      - Which guests count as using the host that are not in the ledger, because somebody else made them. Left as it is
        by default, V(running) for a new host.
      - With V(running), those that run count with their vCPUs, memory and disks, and those that are off with their
        disks alone. V(all) counts those that are off as if they ran. V(none) counts nobody.
      - What was kept for them with O(reserved_vcpus), O(reserved_memory_mb) and O(reserved_disk_gb) is kept beside
        that. Take it back, or use V(none), lest they are counted twice.
    type: str
    choices: [running, all, none]
  cpu_ratio:
    description: Virtual CPUs that are handed out for each CPU. Left as it is by default, V(4.0) for a new host.
    type: float
  ram_ratio:
    description: Memory that is handed out for each MiB. Left as it is by default, V(1.0) for a new host.
    type: float
  disk_ratio:
    description: Disk that is handed out for each GiB. Left as it is by default, V(1.0) for a new host.
    type: float
"""
