# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Where the data of a volume, or of a snapshot, is on a compute host. Pure: the controller writes it into domains."""

from __future__ import annotations

import os
import re
import typing as t
import uuid as uuids

from .._errors import NovaliteError

VOLUMES, SNAPSHOTS, SHARES = "volumes", "snapshots", "shares"
_SAFE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,62}\Z")


def volume_path(one: t.Mapping[str, t.Any], state_dir: str) -> str:
    """The path of `one`: its `id`, `backend` (file, lvm, nfs), `options` of its type, and `kind` (volume, snapshot).

    Raises NovaliteError for what could lead anywhere else.
    """
    kind = one.get("kind") or "volume"
    try:
        plain = str(uuids.UUID(one["id"])) == one["id"]
    except ValueError:
        plain = False
    if not plain or kind not in ("volume", "snapshot"):
        raise NovaliteError(f"'{one['id']}' is not the id of a volume")
    if one["backend"] == "file":
        return os.path.join(state_dir, VOLUMES if kind == "volume" else SNAPSHOTS, one["id"])
    if one["backend"] == "lvm":
        return f"/dev/{_safe(one, 'volume_group')}/{lv_name(one)}"
    if one["backend"] == "nfs":
        name = one["id"] if kind == "volume" else f"snapshot-{one['id']}"
        return os.path.join(state_dir, SHARES, _safe(one, "share"), name)
    raise NovaliteError(f"volume {one['id']}: its back end '{one['backend']}' is none of file, lvm, nfs")


def lv_name(one: t.Mapping[str, t.Any]) -> str:
    """The name of its logical volume: Cinder's for a volume; LVM keeps "snapshot" for its own."""
    return f"{'volume' if (one.get('kind') or 'volume') == 'volume' else 'copy'}-{one['id']}"


def _safe(one: t.Mapping[str, t.Any], option: str) -> str:
    value = str((one.get("options") or {}).get(option) or "")
    if not _SAFE_NAME.match(value):
        raise NovaliteError(f"volume {one['id']}: {option} '{value[:70]}' is no name")
    return value
