# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The arguments of modules that ask the scheduler. Written out in the documentation fragment `scheduling`, too."""

from __future__ import annotations

from .._json import JsonObject

# The fields of options.Options. Left out is left to the defaults there.
SCHEDULING_ARGUMENTS: JsonObject = {
    "options": {
        "type": "dict",
        "default": {},
        "options": {
            "enabled_filters": {"type": "list", "elements": "str"},
            "enabled_weighers": {"type": "list", "elements": "str"},
            "plugin_paths": {"type": "list", "elements": "path"},
            "host_subset_size": {"type": "int"},
            "shuffle_best_same_weighed_hosts": {"type": "bool"},
            "max_io_ops_per_host": {"type": "int"},
            "max_instances_per_host": {"type": "int"},
            "isolated_images": {"type": "list", "elements": "str"},
            "isolated_hosts": {"type": "list", "elements": "str"},
            "restrict_isolated_hosts_to_isolated_images": {"type": "bool"},
            "aggregate_image_properties_isolation_namespace": {"type": "str"},
            "aggregate_image_properties_isolation_separator": {"type": "str"},
            "cpu_weight_multiplier": {"type": "float"},
            "ram_weight_multiplier": {"type": "float"},
            "disk_weight_multiplier": {"type": "float"},
            "io_ops_weight_multiplier": {"type": "float"},
            "build_failure_weight_multiplier": {"type": "float"},
            "soft_affinity_weight_multiplier": {"type": "float"},
            "soft_anti_affinity_weight_multiplier": {"type": "float"},
            "num_instances_weight_multiplier": {"type": "float"},
            "hypervisor_version_weight_multiplier": {"type": "float"},
            "metrics_weight_multiplier": {"type": "float"},
            "rank_weight_multiplier": {"type": "float"},
            "weight_multipliers": {"type": "dict"},
            "metrics_weight_setting": {"type": "dict"},
            "metrics_required": {"type": "bool"},
            "metrics_weight_of_unavailable": {"type": "float"},
        },
    },
    "limit_to": {"type": "list", "elements": "str"},
}
