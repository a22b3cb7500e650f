# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Work of the compute hosts for volumes, attachments and snapshots that were begun: module arguments, as data.

The status of each says which: there is no other memory of it, so that a run that was cut off can be done again.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._domain.guest import render_volume, volume_of
from ..._host.files import STATE_DIR
from ..._json import JsonObject as Plan
from ..._model.devices import devices_of
from ..._model.whole_servers import domain_name
from ..db.tables import compute_host, instance
from ..queries.volumes.server_backup_rows import ServerBackup
from ..queries.volumes.volume_backup_records import VolumeBackup
from ..queries.volumes.volume_views import (
    Attachment,
    BackupDisk,
    Snapshot,
    Stored,
    Volume,
    attachments_by,
    snapshots_by,
    volumes_by,
)
from . import volume_uploads
from .volume_sources import worker
from .volumes import is_nowhere

# status -> what is under way, as tasks/volume_action.py knows it
VOLUME_WORK = {
    **{"creating": "create", "downloading": "create", "deleting": "delete", "extending": "extend"},
    volume_uploads.UPLOADING: "upload",
    "reverting": "revert",
}
BACKUP_WORK = {"creating": "backup_create", "restoring": "backup_restore", "deleting": "backup_delete"}
SNAPSHOT_WORK = {"creating": "snapshot_create", "deleting": "snapshot_delete"}
_BACKUPS = {"backup_create": "taken", "backup_restore": "restored", "backup_delete": "absent"}
LISTS = ("images", "volumes", "snapshots", "gone", "attach", "detach", "uploads", *_BACKUPS.values())
ATTACHMENT_WORK = {"attaching": "attach", "detaching": "detach"}


def plan(
    connection: sa.Connection,
    *,
    volumes: t.Sequence[Volume] = (),
    snapshots: t.Sequence[Snapshot] = (),
    attachments: t.Iterable[str] = (),
    backups: t.Sequence[VolumeBackup] = (),
    forgotten: t.Sequence[ServerBackup] = (),
    state_dir: str = STATE_DIR,
    limit_to: t.Collection[str] | None = None,
) -> tuple[dict[str, Plan], list[dict[str, str]]]:
    """`({host: plan}, [{"id", "name", "does"} that no host has anything to do for])`.

    `attachments` are ids; `forgotten` are backups of servers that are gone, to be deleted; `limit_to` are the hosts
    that may be chosen for what is shared (None: all). Each plan has LISTS: arguments of image_cache, of volume_disk
    (three times), of volume_attach (twice), of disk_snapshot and of volume_backup (three times); and `work`,
    [{"id", "name", "does"}].
    """
    hosts: dict[str, Plan] = {}
    nowhere: list[dict[str, str]] = []

    def at(host: str | None, does: str, record_id: str, name: str) -> Plan:
        """The plan of the host; for no host one that nobody carries out."""
        plan: Plan = {key: [] for key in (*LISTS, "work")}
        plan = plan if host is None else hosts.setdefault(host, plan)
        (nowhere if host is None else plan["work"]).append({"id": record_id, "name": name, "does": does})
        return plan

    for volume in volumes:
        does = VOLUME_WORK.get(volume.status)
        # the build of its server makes it; a disk of a backup is made by a job of its own
        by_build = does == "create" and volume.attachments and volume.backup_disk is None
        if does is None or by_build:
            continue
        upload = volume_uploads.work_of(connection, volume) if does == "upload" else {}
        nothing = (does == "delete" and is_nowhere(connection, volume)) or upload is None
        mine = at(None if nothing else worker(connection, volume, limit_to), does, volume.id, volume.name)
        if does == "delete":
            # those that go with it go first: their rows hold the volume's
            for snapshot in snapshots_by(connection, volumes=[volume.id]):
                if snapshot.status == "deleting":
                    mine["gone"].append(data_of(snapshot))
                    mine["work"].insert(0, {"id": snapshot.id, "name": snapshot.name, "does": "snapshot_delete"})
            mine["gone"].append(data_of(volume))
            continue
        if does == "revert":
            taken = snapshots_by(connection, volumes=[volume.id])
            source = next((data_of(snapshot) for snapshot in taken if snapshot.status == "restoring"), None)
            mine["volumes"].append({**data_of(volume), "create": False, "restore": True, "source": source})
            continue
        if volume.backup_disk is not None and does == "create" and volume.made_at is None:
            mine["restored"].append(_of_backup(volume, volume.backup_disk))  # which makes it, too
            continue
        _have_made(connection, mine, volume)
        if upload:
            data = {**data_of(volume), "instance_uuid": holder_of(volume)}
            mine["uploads"].append({**upload, "volume": data})
    for snapshot in snapshots:
        does = SNAPSHOT_WORK.get(snapshot.status)
        if does is None:
            continue
        of = volumes_by(connection, ids=[snapshot.volume_id])[0]
        mine = at(worker(connection, of, limit_to), does, snapshot.id, snapshot.name)
        data = data_of(snapshot)
        if does == "snapshot_delete":
            mine["gone"].append(data)
            continue
        if of.made_at is None:
            _have_made(connection, mine, of)
        mine["snapshots"].append({**data, "source": {**data_of(of), "instance_uuid": holder_of(of)}, "create": True})
    for backup in backups:
        does = BACKUP_WORK.get(backup.status)
        if does is None:
            continue
        of_backup = backup.restore_volume_id if does == "backup_restore" else backup.volume_id
        there = [] if does == "backup_delete" else volumes_by(connection, ids=[of_backup or ""])
        host = worker(connection, there[0], limit_to) if there else host_for(connection, backup.host, limit_to)
        mine = at(host, does, backup.id, backup.name or backup.id)
        entry: Plan = {"backup_id": backup.id, "chain": backup.volume_id, "full": not backup.incremental}
        if there:
            _have_made(connection, mine, there[0])
            entry["volume"] = {**data_of(there[0]), "instance_uuid": holder_of(there[0])}
        mine[_BACKUPS[does]].append(entry)
    for gone in forgotten:
        mine = at(host_for(connection, gone.host, limit_to), "server_backup_delete", gone.id, gone.name)
        mine["absent"].append({"backup_id": gone.id, "chain": gone.instance_uuid})
    attachment_ids = sorted(set(attachments))
    attached = [attachment.volume_id for attachment in attachments_by(connection, ids=attachment_ids)]
    for volume in volumes_by(connection, ids=attached):
        for attachment in volume.attachments:
            does = ATTACHMENT_WORK.get(volume.status)
            if attachment.id not in attachment_ids or does is None:
                continue
            mine = at(attachment.host, does, attachment.id, volume.name)
            mine[does].append(plug(connection, volume, attachment, state_dir))
            if does == "attach":
                _have_made(connection, mine, volume)
    return hosts, nowhere


def _have_made(connection: sa.Connection, mine: Plan, volume: Volume) -> None:
    mine["images"] += images_for(volume)
    mine["volumes"].append(to_be_made(connection, volume))


def _of_backup(volume: Volume, saved: BackupDisk) -> Plan:
    entry = {"backup_id": saved["backup"], "chain": saved["server"], "disk": saved["disk"]}
    return {**entry, "volume": {**data_of(volume), "instance_uuid": None}}


def host_for(connection: sa.Connection, host: str | None, limit_to: t.Collection[str] | None) -> str | None:
    """The host that works in the store: the one that did before, or another one; all have the same store."""
    names = connection.execute(sa.select(compute_host.c.name).order_by(compute_host.c.name)).scalars().all()
    known = [name for name in names if limit_to is None or name in limit_to]
    return host if host in known else next(iter(known), None)


def data_of(stored: Stored) -> Plan:
    """Return a volume's or snapshot's data for volume_disk."""
    return {
        **{key: getattr(stored, key) for key in ("id", "backend", "options", "format", "size_gb")},
        "kind": "snapshot" if isinstance(stored, Snapshot) else "volume",
    }


def to_be_made(connection: sa.Connection, volume: Volume) -> Plan:
    """The volume with its size; made, of what it is to be made of, if it was not before."""
    return {
        **data_of(volume),
        "instance_uuid": holder_of(volume),
        # a disk of a backup is made by step volume_backup, which has the data
        "create": volume.made_at is None and volume.backup_disk is None,
        "source": _source(connection, volume) if volume.is_unmade_copy else None,
        "size_gb": volume.new_size_gb or volume.size_gb,
    }


def _source(connection: sa.Connection, volume: Volume) -> Plan | None:
    """Return the source of an unmade copy. One that is gone is named, too: its host says that it has no data of it,
    where it would make an empty volume if it were told of none."""
    if volume.snapshot_id is not None:
        snapshots = snapshots_by(connection, ids=[volume.snapshot_id])
        return data_of(snapshots[0]) if snapshots else {**data_of(volume), "id": volume.snapshot_id, "kind": "snapshot"}
    if volume.source_volume_id is not None:
        sources = volumes_by(connection, ids=[volume.source_volume_id])
        if not sources:
            return {**data_of(volume), "id": volume.source_volume_id}
        blank = sources[0].made_at is None
        return None if blank else {**data_of(sources[0]), "instance_uuid": holder_of(sources[0])}
    return None if volume.image is None else {"checksum": volume.image["checksum"]}


def images_for(volume: Volume) -> list[Plan]:
    """Return images that have to be in the host's cache before the volume can be made."""
    image = volume.image
    copied = volume.snapshot_id is not None or volume.source_volume_id is not None
    if image is None or not image["id"] or copied or volume.made_at is not None:
        return []
    return image_files(volume)


def image_files(volume: Volume) -> list[Plan]:
    """The image of the volume, as image_cache takes it."""
    if volume.image is None:
        return []
    file = {key: volume.image[key] for key in ("checksum", "source", "size", "disk_format", "virtual_size")}
    return [{**file, "kind": "disk", "max_virtual_size": volume.size_gb << 30}]


def holder_of(volume: Volume) -> str | None:
    """The instance whose guest may have the volume open."""
    return next((each.instance_uuid for each in volume.attachments if each.attached_at is not None), None)


def plug(connection: sa.Connection, volume: Volume, attachment: Attachment, state_dir: str) -> Plan:
    """Return the arguments for volume_attach."""
    row = connection.execute(
        sa.select(
            instance.c.id,
            instance.c.adopted,
            instance.c.flavor,
            instance.c.image,
            compute_host.c.state_dir,
            compute_host.c.facts,
        )
        .outerjoin(compute_host, compute_host.c.name == instance.c.host)
        .where(instance.c.uuid == attachment.instance_uuid)
    ).one()
    facts = {"disk_cache": "none", **(row.facts or {})}
    disk = {**data_of(volume), "volume_id": volume.id, "device": attachment.device, "readonly": attachment.readonly}
    return {
        **{"id": attachment.id, "volume_id": volume.id, "instance_uuid": attachment.instance_uuid},
        "name": domain_name(row.id, row.adopted),
        "device": attachment.device.rpartition("/")[2],
        "xml": render_volume(volume_of(disk, row.state_dir or state_dir), facts, devices_of(row.flavor, row.image)),
    }
