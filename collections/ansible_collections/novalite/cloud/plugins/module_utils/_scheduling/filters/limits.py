# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's IoOpsFilter, NumInstancesFilter and their siblings for aggregates: not too much on one host."""

from __future__ import annotations

import operator

from ..aggregates import least
from ..kinds import Filter
from ..options import Options
from ..rows import HostState, Request


def _limit(name: str, nova: str, number: str, option: str, what: str, of_aggregates: bool = False) -> Filter:
    """The filter that refuses a host whose `number` has come to the `option`.

    With `of_aggregates`, to the least of the same in the metadata of its aggregates, where one has it.
    """
    number_of, most_of = operator.attrgetter(number), operator.attrgetter(option)

    def passes(host: HostState, request: Request, options: Options) -> str | None:
        here, most = number_of(host), most_of(options)
        if of_aggregates:
            most = least(host, option, most, int)
        return None if here < most else f"has {here} {what}, {most} at most"

    return Filter(name, passes, nova=nova)


_IO_OPS = ("num_io_ops", "max_io_ops_per_host", "disk operations under way")
_INSTANCES = ("num_instances", "max_instances_per_host", "instances")
PLUGINS = (
    _limit("io_ops", "IoOpsFilter", *_IO_OPS),
    _limit("aggregate_io_ops", "AggregateIoOpsFilter", *_IO_OPS, of_aggregates=True),
    _limit("num_instances", "NumInstancesFilter", *_INSTANCES),
    _limit("aggregate_num_instances", "AggregateNumInstancesFilter", *_INSTANCES, of_aggregates=True),
)
