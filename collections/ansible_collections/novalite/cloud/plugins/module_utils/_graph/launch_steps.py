# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of a launch in Nova, and what takes each here.

The numbers are our own, and the methods those of Nova's releases from Diablo to Essex (2011, 2012). "OpenStack Nova
internals of instance launching" tells the release before them: what it numbers are eight arrows between five
components, and its functions have the names of `article`.

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
    """Step of a launch. `number` is ours, None for a step that a launch can do without; `component` is Nova's, `method`
    what runs there. `operations` are the modules, or parts of them, that take the step here, by a call of `kind`. The
    article's arrows of the step are `arrows`, and its functions `article`."""

    number: int | None
    component: str
    method: str
    operations: tuple[str, ...]
    kind: str = IN_PROCESS
    arrows: tuple[int, ...] = ()
    article: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The number as text, a dash for none."""
        return "-" if self.number is None else str(self.number)


STEPS = (
    LaunchStep(
        1, API, "ServersController.create, RunInstances", (REQUEST,), HTTP, arrows=(1,), article=("run_instances",)
    ),
    LaunchStep(2, API, "compute.API.create", ("server",), article=("create",)),
    LaunchStep(3, DATABASE, "create_db_entry_for_new_instance", ("server",)),
    LaunchStep(4, QUEUE, "rpc.cast run_instance", (TAKEN,), JOB, arrows=(2,), article=("rpc.cast",)),
    LaunchStep(5, SCHEDULER, "FilterScheduler._schedule", ("scheduler",)),
    LaunchStep(6, SCHEDULER, "consume_from_instance", ("scheduler",)),
    LaunchStep(7, SCHEDULER, "cast_to_compute_host", ("scheduler",), arrows=(3,), article=("rpc.cast",)),
    LaunchStep(8, COMPUTE, "ComputeManager._run_instance", ("fixed_ip",), arrows=(4,), article=("run_instance",)),
    LaunchStep(9, NETWORK, "allocate_for_instance", ("fixed_ip",), arrows=(5, 6, 7, 8)),
    LaunchStep(10, NETWORK, "fixed_ip_associate_pool", ("fixed_ip",)),
    LaunchStep(13, COMPUTE, "LibvirtConnection.to_xml", ("server_plan",), article=("to_xml",)),
    LaunchStep(None, COMPUTE, "ResourceTracker.instance_claim", ("compute_host",)),
    LaunchStep(15, COMPUTE, "_create_image, _cache_image", ("image_cache", "disk"), article=("_create_image",)),
    LaunchStep(None, COMPUTE, "_setup_block_device_mapping", ("volume_disk",)),
    LaunchStep(
        16, COMPUTE, "disk.inject_data", ("nbd_inject",), article=("inject_data", "_link_device", "_allocate_device")
    ),
    LaunchStep(17, COMPUTE, "_inject_key_into_fs", ("nbd_inject",)),
    LaunchStep(None, COMPUTE, "_create_image (disk.config)", ("config_drive",)),
    LaunchStep(11, NETWORK, "ensure_vlan_bridge", ("bridge",)),
    LaunchStep(12, NETWORK, "update_dhcp", ("dhcp",)),
    LaunchStep(None, NETWORK, "add_snat_rule, ensure_floating_forward", ("router",)),
    LaunchStep(None, NETWORK, "metadata_forward", ("metadata_proxy",)),
    LaunchStep(14, LIBVIRT, "setup_basic_filtering", ("nwfilter",), SOCKET),
    LaunchStep(18, COMPUTE, "prepare_instance_filter", ("firewall",), article=("apply_ruleset",)),
    LaunchStep(19, LIBVIRT, "defineXML, createWithFlags", ("domain",), SOCKET, article=("createXML",)),
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
