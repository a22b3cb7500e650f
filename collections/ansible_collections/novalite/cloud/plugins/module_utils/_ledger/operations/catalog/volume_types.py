# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on types of volumes, for every door."""

from __future__ import annotations

from ...._json import JsonMapping
from ...catalog import volume_types
from ...queries.catalog.volume_type_records import VolumeType
from ..call import Call


def create(call: Call, values: JsonMapping) -> VolumeType:
    """Record a type. Takes and raises what catalog.volume_types.create_type() does."""
    return volume_types.create_type(call.connection, values)


def update(call: Call, row: VolumeType, changes: JsonMapping) -> VolumeType:
    """Change a type. Takes and raises what catalog.volume_types.change_type() does."""
    return volume_types.change_type(call.connection, row.id, changes)


def delete(call: Call, row: VolumeType) -> None:
    """Remove a type. Raises ConflictError for the default one, and while volumes are of it."""
    volume_types.delete_type(call.connection, row.id)


def grant(call: Call, row: VolumeType, project_id: str) -> None:
    """Let a project use a type. Raises ConflictError for a public type, and for a project that has it."""
    volume_types.grant_access(call.connection, row, project_id)


def revoke(call: Call, row: VolumeType, project_id: str) -> None:
    """Have a project use a type no more. Raises ConflictError for a public type, NotFoundError for a project without
    it."""
    volume_types.revoke_access(call.connection, row, project_id)
