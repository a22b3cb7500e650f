# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on images, for every door."""

from __future__ import annotations

import typing as t

from ..._rules.volume_asks import VolumeRequest
from ..compute import volume_images
from .call import Call


def register_snapshots(call: Call, name: str, description: str, snapshots: t.Sequence[VolumeRequest]) -> str:
    """Record an image of these snapshots of volumes; return its id. Raises as volume_images.register()."""
    return volume_images.register(call.connection, call.project, name, description, snapshots)
