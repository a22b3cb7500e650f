# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""States of an instance on its way to a host: a new one that is built, a shelved one that is built again.

Both go through the same launch. They differ in their states, in the action of the log that the launch belongs to, and
in what a failure leaves: a new instance is ERROR and gives back all that it holds, a shelved one stays shelved.
"""

from __future__ import annotations

import dataclasses

from .._json import JsonMapping

SHELVED, OFFLOADED = "shelved", "shelved_offloaded"  # vm_states: on its host, on none
DELETING = "deleting"
BUILD_TIMEOUT = 600  # seconds without a sign of life, after which a run is taken for dead


@dataclasses.dataclass(frozen=True)
class Build:
    """`waiting` is the task state without a host, `placed` the one with it; `failed` the vm_state after a failure."""

    action: str
    vm_states: frozenset[str]
    task_states: frozenset[str] | None  # None: all but `deleting`
    waiting: str
    placed: str
    failed: str

    def holds(self, vm_state: str, task_state: str | None) -> bool:
        """Tell whether an instance in these states is being built this way."""
        if vm_state not in self.vm_states:
            return False
        return task_state != DELETING if self.task_states is None else task_state in self.task_states


CREATE = Build("create", frozenset({"building"}), None, "scheduling", "networking", "error")
UNSHELVE = Build(
    "unshelve",
    frozenset({SHELVED, OFFLOADED}),
    frozenset({"unshelving", "spawning"}),
    "unshelving",
    "spawning",
    OFFLOADED,
)
BUILDS = (CREATE, UNSHELVE)


def build_of(vm_state: str, task_state: str | None) -> Build | None:
    """The way on which an instance in these states is; None for one that is not being built."""
    return next((build for build in BUILDS if build.holds(vm_state, task_state)), None)


def is_troubled(record: JsonMapping) -> bool:
    """Tell whether an instance failed, or the run that is at it is dead."""
    return record["silent_for"] is not None or (record["vm_state"] == "error" and record["task_state"] is None)


def may_be_silent(record: JsonMapping, dead_since: float) -> bool:
    """Tell whether something is done to an instance of which nothing was heard since then, in seconds since the epoch:
    the run that is at it is dead, unless a job waits or runs for it."""
    under_way = bool(record["task_state"] or build_of(record["vm_state"], None))
    return under_way and bool(record["updated_at"] <= dead_since)
