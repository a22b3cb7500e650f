# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the data of a volume, or of a snapshot, is on a compute host. Pure: the controller writes it into domains."""

from __future__ import annotations

import os
import re
import uuid as uuids

from .._errors import NovaliteError
from .._json import JsonMapping

VOLUMES, SNAPSHOTS, SHARES = "volumes", "snapshots", "shares"
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,62}\Z")


def volume_path(volume: JsonMapping, state_dir: str) -> str:
    """The path of `volume`: its `id`, `backend` (file, lvm, nfs), `options` of its type, and `kind` (volume, snapshot).

    Raises NovaliteError for what could lead anywhere else.
    """
    kind = volume.get("kind") or "volume"
    try:
        plain = str(uuids.UUID(volume["id"])) == volume["id"]
    except ValueError:
        plain = False
    if not plain or kind not in ("volume", "snapshot"):
        raise NovaliteError(f"'{volume['id']}' is not the id of a volume")
    if volume["backend"] == "file":
        return os.path.join(state_dir, VOLUMES if kind == "volume" else SNAPSHOTS, volume["id"])
    if volume["backend"] == "lvm":
        return f"/dev/{_safe(volume, 'volume_group')}/{lv_name(volume)}"
    if volume["backend"] == "nfs":
        name = volume["id"] if kind == "volume" else f"snapshot-{volume['id']}"
        return os.path.join(state_dir, SHARES, _safe(volume, "share"), name)
    raise NovaliteError(f"volume {volume['id']}: its back end '{volume['backend']}' is none of file, lvm, nfs")


def lv_name(volume: JsonMapping) -> str:
    """The name of its logical volume: Cinder's for a volume; LVM keeps "snapshot" for its own."""
    return f"{'volume' if (volume.get('kind') or 'volume') == 'volume' else 'copy'}-{volume['id']}"


def _safe(volume: JsonMapping, option: str) -> str:
    value = str((volume.get("options") or {}).get(option) or "")
    if not _SAFE_NAME.match(value):
        raise NovaliteError(f"volume {volume['id']}: {option} '{value[:70]}' is no name")
    return value
