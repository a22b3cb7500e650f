# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Status that a server shows for its state, and the states that a status stands for (nova/api/openstack/common.py)."""

from __future__ import annotations

import typing as t

_RESIZING = dict.fromkeys(
    ("resize_prep", "resize_migrating", "resize_migrated", "resize_finish", "resizing_live"), "RESIZE"
)
# vm_state -> {task_state: status}; "default" for any other task
_STATUS: dict[str, dict[str, str]] = {
    "active": {
        "default": "ACTIVE",
        **dict.fromkeys(("rebooting", "reboot_pending", "reboot_started"), "REBOOT"),
        **dict.fromkeys(("rebooting_hard", "reboot_pending_hard", "reboot_started_hard"), "HARD_REBOOT"),
        "updating_password": "PASSWORD",
        **dict.fromkeys(("rebuilding", "rebuild_block_device_mapping", "rebuild_spawning"), "REBUILD"),
        "migrating": "MIGRATING",
        **_RESIZING,
    },
    "building": {"default": "BUILD"},
    "stopped": {"default": "SHUTOFF", **_RESIZING, "rebooting_hard": "HARD_REBOOT", "rebuilding": "REBUILD"},
    "resized": {"default": "VERIFY_RESIZE", "resize_reverting": "REVERT_RESIZE"},
    "paused": {"default": "PAUSED", "rebooting_hard": "HARD_REBOOT", "migrating": "MIGRATING"},
    "suspended": {"default": "SUSPENDED", "rebooting_hard": "HARD_REBOOT"},
    "rescued": {"default": "RESCUE"},
    "error": {"default": "ERROR", "rebuilding": "REBUILD", "rebooting_hard": "HARD_REBOOT"},
    "deleted": {"default": "DELETED"},
    "soft-delete": {"default": "SOFT_DELETED"},
    "shelved": {"default": "SHELVED"},
    "shelved_offloaded": {"default": "SHELVED_OFFLOADED"},
}


def status_of(vm_state: str, task_state: str | None) -> str:
    states = _STATUS.get(vm_state, {"default": "UNKNOWN"})
    return states.get(task_state or "default", states["default"])


def silence(seconds: int | None) -> str:
    """The sentence for an instance at which a run is that gave no sign of life for so long; empty for None."""
    return "" if seconds is None else f"no sign of life for {seconds // 60} min"


class States(t.NamedTuple):
    """The states behind statuses, as server_listing.Query takes them."""

    states: list[tuple[str, tuple[str | None, ...] | None]]
    not_task_states: dict[str, tuple[str, ...]]


def states_of(statuses: t.Iterable[str]) -> States:
    """Return the states of statuses, which may be in upper or lower case; an unknown status stands for no state."""
    upper_statuses = {status.upper() for status in statuses}
    states: list[tuple[str, tuple[str | None, ...] | None]] = []
    others: dict[str, tuple[str, ...]] = {}
    for vm_state, of_vm in _STATUS.items():
        tasks = tuple(task for task, status in of_vm.items() if status in upper_statuses)
        if "default" in tasks:
            states.append((vm_state, None))
            others[vm_state] = tuple(task for task, status in of_vm.items() if status not in upper_statuses)
        elif tasks:
            states.append((vm_state, tasks))
    return States(states, others)
