# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of volumes."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_snapshots

from ...openstack.compute.tasks import tell
from ...web.context import Caller
from ...web.host_names import host_name_mask
from .. import filters, ids, volumes
from ..blueprint import writes
from ..common import Asked, Body, tags_for
from ..faults import as_codes
from ..parameters import TAG_SPECIFICATIONS, TEXTS, Ignored, Text

KIND = "snapshot"
SNAPSHOT_FILTERS = filters.like(
    "snapshot-id volume-id volume-size status progress owner-id description encrypted start-time storage-tier"
)


@filters.describes(
    "DescribeSnapshots",
    "volume:read",
    "snapshotSet",
    "snapshotId",
    SNAPSHOT_FILTERS,
    SnapshotId=TEXTS,
    Owner=TEXTS,
    RestorableBy=TEXTS,
)
def describe_snapshots(connection: Connection, caller: Caller, asked: Asked) -> t.Iterable[Body]:
    known = volumes.snapshots_of_project(connection, caller.project)
    # the names are read where there is something to hide
    hidden = host_name_mask(connection, caller.reach if any(row.fault for row in known.values()) else None)
    rows = ids.find_all("snap", asked["SnapshotId"], known) if "SnapshotId" in asked else list(known.values())
    owners = [*asked.get("Owner", []), *asked.get("RestorableBy", [])]
    if owners and not {"self", "all", caller.project} & set(owners):
        rows = []  # of others none is seen
    return (volumes.snapshot(row, hidden) for row in rows)


@writes(
    "CreateSnapshot",
    "volume:write",
    {"VolumeId": Text(), "Description": Text(), "TagSpecification": TAG_SPECIFICATIONS, "Location": Ignored()},
    ["VolumeId"],
)
def create_snapshot(connection: Connection, caller: Caller, asked: Asked) -> Body:
    """Also while an instance has the volume: as if its power had failed, which is Amazon's promise, too."""
    tags = tags_for(asked, KIND)[KIND]
    row = ids.find("vol", asked["VolumeId"], volumes.of_project(connection, caller.project))
    with as_codes({ConflictError: "IncorrectState", QuotaError: "SnapshotLimitExceeded"}):
        made = volume_snapshots.create_snapshot(
            connection,
            caller.project,
            {
                "volume_id": row.id,
                "name": tags.get("Name"),
                "description": asked.get("Description"),
                "metadata": tags,
                "user_id": caller.user_id,
                "force": True,
            },
        )
    tell(connection, "volume_snapshot_create", volumes.holders(row), caller.project, {"snapshots": [made.id]})
    return volumes.snapshot(made)


@writes("DeleteSnapshot", "volume:write", {"SnapshotId": Text()}, ["SnapshotId"])
def delete_snapshot(connection: Connection, caller: Caller, asked: Asked) -> None:
    row = ids.find("snap", asked["SnapshotId"], volumes.snapshots_of_project(connection, caller.project))
    if row.status != "deleting":
        with as_codes({ConflictError: "InvalidSnapshot.InUse"}):
            volume_snapshots.begin_delete_snapshot(connection, row.id, project_id=caller.project)
        held = volumes.of_project(connection, caller.project).get(ids.of("vol", row.volume_id))
        instances = volumes.holders(held) if held else []
        tell(connection, "volume_snapshot_delete", instances, caller.project, {"snapshots": [row.id]})
