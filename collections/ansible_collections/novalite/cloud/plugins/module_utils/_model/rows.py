# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows that many rooms decide on: the columns that they read, and their types. Times are seconds since the epoch."""

from __future__ import annotations

import typing as t

from .instance import Adopted, Fault, File, Flavor, Image


class StateRow(t.Protocol):
    """State of an instance just now."""

    uuid: str
    name: str
    host: str | None
    vm_state: str
    task_state: str | None
    deleted: int  # its id once it is deleted


class InstanceRow(StateRow, t.Protocol):
    """A row of the table `instance`."""

    id: int
    project_id: str
    user_id: str | None
    display_name: str | None
    hostname: str
    flavor: Flavor
    image: Image
    key_name: str | None
    availability_zone: str | None
    metadata: dict[str, str]
    power_state: int
    fault: Fault | None
    attempts: list[str]
    updated_at: int
    launched_at: int | None
    user_data: str | None
    config_drive: bool
    files: list[File] | None
    password_hash: str | None
    password_optional: bool
    locked: bool
    locked_reason: str | None
    rescue_image: Image | None
    disk_image: Image | None
    cdroms: list[Image | None] | None
    adopted: Adopted | None
    tags: list[str]


class MoveRow(t.Protocol):
    """A row of the table `migration`."""

    id: int
    uuid: str
    instance_uuid: str
    type: str
    status: str
    source_host: str
    dest_host: str | None
    old_flavor: Flavor
    new_flavor: Flavor
    old_vm_state: str
    reason: str | None
    message: str | None


class NetworkRow(t.Protocol):
    """Columns that find a network's addresses and name it; `owner` is "" of a public one."""

    id: int
    uuid: str
    owner: str
    name: str
    cidr: str | None
