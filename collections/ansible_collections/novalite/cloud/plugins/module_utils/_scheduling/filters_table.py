# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Our filters. A new one is a file and its line here; nothing else knows them by name."""

from __future__ import annotations

from .filters import (
    aggregate_image_properties_isolation,
    aggregate_instance_extra_specs,
    aggregate_io_ops,
    aggregate_multitenancy_isolation,
    aggregate_num_instances,
    aggregate_type_affinity,
    availability_zone,
    compute,
    compute_capabilities,
    different_host,
    disk,
    image_properties,
    io_ops,
    isolated_hosts,
    json_query,
    metrics,
    num_instances,
    ram,
    requested_host,
    requirements,
    retry,
    same_host,
    server_group_affinity,
    server_group_anti_affinity,
    simple_cidr_affinity,
    traits,
    vcpu,
)

FILTERS = (
    aggregate_image_properties_isolation,
    aggregate_instance_extra_specs,
    aggregate_io_ops,
    aggregate_multitenancy_isolation,
    aggregate_num_instances,
    aggregate_type_affinity,
    availability_zone,
    compute,
    compute_capabilities,
    different_host,
    disk,
    image_properties,
    io_ops,
    isolated_hosts,
    json_query,
    metrics,
    num_instances,
    ram,
    requested_host,
    requirements,
    retry,
    same_host,
    server_group_affinity,
    server_group_anti_affinity,
    simple_cidr_affinity,
    traits,
    vcpu,
)
