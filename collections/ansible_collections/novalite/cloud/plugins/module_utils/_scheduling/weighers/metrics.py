# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's MetricsWeigher: a sum of what hosts measure, each times its ratio in `metrics_weight_setting`."""

from __future__ import annotations

import typing as t

from ..._errors import NovaliteError
from ..aggregates import least
from ..options import Options
from ..rows import HostState, Request

NAME = "metrics"
NOVA = "MetricsWeigher"


def concerns(request: Request, options: Options) -> bool:
    """Tell whether metrics to weigh were set."""
    return bool(options.metrics_weight_setting)


def weigh(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    """The sum for each host. NovaliteError for a host without a metric when `metrics_required`.

    Otherwise such a host gets `metrics_weight_of_unavailable`, which puts it last.
    """
    return [_weight(host, options) for host in hosts]


def _weight(host: HostState, options: Options) -> float:
    total = 0.0
    for name, ratio in options.metrics_weight_setting.items():
        if name in host.metrics:
            total += host.metrics[name] * ratio
        elif options.metrics_required:
            raise NovaliteError(
                f"compute host '{host.name}' does not report the metric {name!r}: enable the filter metrics, or set "
                "metrics_required=false"
            )
        elif ratio and least(host, "metrics_weight_multiplier", options.metrics_weight_multiplier, float):
            return options.metrics_weight_of_unavailable
    return total
