# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The scheduler's settings, under Nova's names and with Nova's defaults (34.0.0: nova/conf/scheduler.py)."""

from __future__ import annotations

import dataclasses
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping

# Nova's defaults, without PCI; `ranges`, lest a network cuts a host off; then Placement's part (capacity,
# zone, traits), which is a filter here; then those that act only when a request asks for it, since a hint that is taken
# and then ignored is a trap. `json` is not among them, as in Nova: with it, whoever may launch can ask after anything
# that is known about a host.
ENABLED_FILTERS = (
    "retry",
    "requested_host",
    "compute",
    "other_ledger",
    "ranges",
    "availability_zone",
    "traits",
    "compute_capabilities",
    "image_properties",
    "hardware",
    "same_host",
    "different_host",
    "simple_cidr_affinity",
    "requirements",
    "server_group_anti_affinity",
    "server_group_affinity",
    "pci_passthrough",
    "numa_topology",
    "vcpu",
    "ram",
    "disk",
)
ENABLED_WEIGHERS = (
    "cpu",
    "ram",
    "disk",
    "io_ops",
    "build_failure",
    "soft_affinity",
    "soft_anti_affinity",
    "num_instances",
    "hypervisor_version",
    "metrics",
    "pci",
    "rank",
)


@dataclasses.dataclass(frozen=True)
class Options:
    """Options to filter, weigh and choose hosts. A multiplier below zero turns a weigher around: it packs.

    An aggregate's metadata overrides, for its hosts, each multiplier by its name, and `max_io_ops_per_host` and
    `max_instances_per_host` where the filters aggregate_io_ops and aggregate_num_instances are enabled.
    """

    enabled_filters: t.Sequence[str] = ENABLED_FILTERS
    enabled_weighers: t.Sequence[str] = ENABLED_WEIGHERS
    plugin_paths: t.Sequence[str] = ()  # files, or directories of files, that hold filters and weighers of the user's

    host_subset_size: int = 1  # draw among so many of the best
    shuffle_best_same_weighed_hosts: bool = False  # draw among those that are as good as the best

    max_io_ops_per_host: int = 8
    max_instances_per_host: int = 50
    isolated_images: t.Sequence[str] = ()  # ids
    isolated_hosts: t.Sequence[str] = ()
    restrict_isolated_hosts_to_isolated_images: bool = True
    aggregate_image_properties_isolation_namespace: str | None = None
    aggregate_image_properties_isolation_separator: str = "."

    cpu_weight_multiplier: float = 1.0
    ram_weight_multiplier: float = 1.0
    disk_weight_multiplier: float = 1.0
    io_ops_weight_multiplier: float = -1.0
    build_failure_weight_multiplier: float = 1_000_000.0  # subtracted
    soft_affinity_weight_multiplier: float = 1.0
    soft_anti_affinity_weight_multiplier: float = 1.0
    num_instances_weight_multiplier: float = 0.0
    hypervisor_version_weight_multiplier: float = 1.0
    metrics_weight_multiplier: float = 1.0
    pci_weight_multiplier: float = 1.0
    rank_weight_multiplier: float = 1_000_000.0  # ours: who gives a rank means it before all else

    weight_multipliers: t.Mapping[str, float] = dataclasses.field(default_factory=dict)  # of the user's weighers

    metrics_weight_setting: t.Mapping[str, float] = dataclasses.field(default_factory=dict)  # metric -> ratio
    metrics_required: bool = True  # without a metric of the setting: an error; else the weight below
    metrics_weight_of_unavailable: float = -10_000.0

    @classmethod
    def of(cls, settings: JsonMapping | None) -> Options:
        """The defaults with `settings`; None is "not given". NovaliteError names a setting that is none."""
        known = {field.name for field in dataclasses.fields(cls)}
        for name in settings or {}:
            if name not in known:
                raise NovaliteError(f"there is no scheduler option {name!r}; take one of: {', '.join(sorted(known))}")
        return cls(**{name: value for name, value in (settings or {}).items() if value is not None})
