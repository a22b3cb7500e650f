# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a launch as "OpenStack Nova internals of instance launching" numbers them, and what takes each here.

Data. The callback `explain`, the call diagram and the test of docs/from-nova.md read this table.
"""

from __future__ import annotations

import dataclasses

# Nova's services, which are the boxes of its boot call diagram; the host's name follows the last two
API = "nova-api"
DATABASE = "database"
QUEUE = "queue"
SCHEDULER = "nova-scheduler"
NETWORK = "nova-network"
COMPUTE = "nova-compute"
LIBVIRT = "libvirt"

# The manner of a call
HTTP, JOB, IN_PROCESS, SSH, SOCKET = "HTTP", "job", "in-process", "ssh", "socket"

# What is recorded of a launch besides the modules that a host runs
REQUEST, TAKEN, TRIP = "request", "job", "host_steps"


@dataclasses.dataclass(frozen=True)
class LaunchStep:
    """Step of a launch. `number` is the article's, None for a step that it lacks; `component` is Nova's, `method` what
    runs there. `operations` are the modules, or parts of them, that take the step here, by a call of `kind`."""

    number: int | None
    component: str
    method: str
    operations: tuple[str, ...]
    kind: str = IN_PROCESS

    @property
    def label(self) -> str:
        """The number as text, a dash for none."""
        return "-" if self.number is None else str(self.number)


STEPS = (
    LaunchStep(1, API, "ServersController.create, RunInstances", (REQUEST,), HTTP),
    LaunchStep(2, API, "compute.API.create", ("server",)),
    LaunchStep(3, DATABASE, "create_db_entry_for_new_instance", ("server",)),
    LaunchStep(4, QUEUE, "rpc.cast run_instance", (TAKEN,), JOB),
    LaunchStep(5, SCHEDULER, "FilterScheduler._schedule", ("scheduler",)),
    LaunchStep(6, SCHEDULER, "consume_from_instance", ("scheduler",)),
    LaunchStep(7, SCHEDULER, "cast_to_compute_host", ("scheduler",)),
    LaunchStep(8, COMPUTE, "ComputeManager._run_instance", ("fixed_ip",)),
    LaunchStep(9, NETWORK, "allocate_for_instance", ("fixed_ip",)),
    LaunchStep(10, NETWORK, "fixed_ip_associate_pool", ("fixed_ip",)),
    LaunchStep(13, COMPUTE, "LibvirtConnection.to_xml", ("server_plan",)),
    LaunchStep(None, COMPUTE, "ResourceTracker.instance_claim", ("compute_host",)),
    LaunchStep(15, COMPUTE, "_create_image, _cache_image", ("image_cache", "disk")),
    LaunchStep(None, COMPUTE, "_setup_block_device_mapping", ("volume_disk",)),
    LaunchStep(16, COMPUTE, "disk.inject_data", ("nbd_inject",)),
    LaunchStep(17, COMPUTE, "_inject_key_into_fs", ("nbd_inject",)),
    LaunchStep(None, COMPUTE, "_create_image (disk.config)", ("config_drive",)),
    LaunchStep(11, NETWORK, "ensure_vlan_bridge", ("bridge",)),
    LaunchStep(12, NETWORK, "update_dhcp", ("dhcp",)),
    LaunchStep(None, NETWORK, "add_snat_rule, ensure_floating_forward", ("router",)),
    LaunchStep(None, NETWORK, "metadata_forward", ("metadata_proxy",)),
    LaunchStep(14, LIBVIRT, "setup_basic_filtering", ("nwfilter",), SOCKET),
    LaunchStep(18, COMPUTE, "prepare_instance_filter", ("firewall",)),
    LaunchStep(19, LIBVIRT, "defineXML, createWithFlags", ("domain",), SOCKET),
    LaunchStep(20, LIBVIRT, "_wait_for_boot", ("domain",), SOCKET),
    LaunchStep(None, COMPUTE, "(none: Nova does not wait for guests)", ("server_wait",)),
    LaunchStep(21, DATABASE, "instance_update", ("launch_record",)),
)
BY_OPERATION = {
    operation: tuple(step for step in STEPS if operation in step.operations)
    for operation in dict.fromkeys(operation for step in STEPS for operation in step.operations)
}
# On the controller, of which the seconds are measured one by one; and on hosts, by the name of the module
CONTROLLER = ("server", "scheduler", "fixed_ip", "server_plan", "launch_record")
HOSTS = frozenset(BY_OPERATION) - {REQUEST, TAKEN, *CONTROLLER}
