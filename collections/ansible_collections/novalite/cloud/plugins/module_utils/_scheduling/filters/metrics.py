# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's MetricsFilter: hosts that report every metric which the weigher is set to use."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "metrics"
NOVA = "MetricsFilter"
RUN_ONCE_PER_REQUEST = True


def concerns(request: Request, options: Options) -> bool:
    """Tell whether metrics are weighed."""
    return bool(options.metrics_weight_setting)


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that does not report a metric of `metrics_weight_setting`."""
    missing = [name for name in options.metrics_weight_setting if name not in host.metrics]
    return f"does not report {', '.join(missing)}" if missing else None
