# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attachments of volumes: the conditions of their start, the names of disks in the guest, and their outcomes.

An attachment's row is there from the moment it was asked for, so that no name is given twice; `attached_at` says that
the guest has it. As in Nova, attaching and detaching are no task states of the instance, but actions in its log.
"""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._domain.guest import choose_device, own_devices
from ..._errors import InvalidVolumeError, NotFoundError, NovaliteError, RootVolumeError
from ..._json import JsonMapping
from ..._rules.listed_nouns import RESERVED
from ..catalog.volume_types import LOCAL_BACKENDS
from ..db import clock
from ..db.tables import instance
from ..db.tables_migrations import OPEN, migration
from ..db.tables_volumes import volume, volume_attachment, volume_snapshot
from ..instances import actions
from ..queries.catalog.volume_type_records import check_shown
from ..queries.compute import state_rules
from ..queries.compute.state_rules import RULES
from ..queries.jobs.open_jobs import open_job
from ..queries.volumes.volume_views import Attachment, Volume, attachments_by, one_volume, volumes_by
from .volumes import COPIED, begin, swap, write

ATTACH, DETACH = "attach_volume", "detach_volume"  # Nova's names of the actions
_HELD = (RESERVED, "attaching", "in-use", "detaching", "error_attaching", "error_detaching")


def begin_attach(
    connection: sa.Connection,
    volume_id: str,
    instance_uuid: str,
    *,
    project_id: str | None = None,
    device: str | None = None,
    tag: str | None = None,
    delete_on_termination: bool = False,
    readonly: bool = False,
    request_id: str | None = None,
    user_id: str | None = None,
    by_admin: bool = False,
) -> Attachment:
    """Begin to attach a volume; the device name is given now, though the guest gets the disk later. For an instance
    that is shelved, and so on no host, the volume is reserved until that is unshelved: there is nothing more to do.

    Raises NotFoundError for a volume or an instance that the project (None: anybody) does not have, ConflictError for
    a volume that is not available or is on another compute host than the instance, for an instance in a state that
    does not allow it, for a volume of one compute host and an instance whose move may end on either of two, and for a
    device name in use.
    """
    one_volume(connection, volume_id, project_id)
    server = _instance(connection, instance_uuid, project_id)
    row = one_volume(connection, volume_id, project_id, lock=True)  # after the instance, as by every other
    if row.project_id != server.project_id:
        raise NotFoundError(f"Volume {check_shown(volume_id)} could not be found.")
    state_rules.check(connection, RULES[ATTACH], [server], by_admin=by_admin)
    others = volumes_by(connection, instances=[instance_uuid]) if server.host is None else []
    for host in {server.host, *(other.host for other in others)} - {None}:
        _refuse_elsewhere(row, host)
    if row.host is not None or row.backend in LOCAL_BACKENDS:
        _refuse_between_hosts(connection, row, server)
    if server.host is None and tag:
        raise NovaliteError("Attaching tagged volumes is not supported for shelved-offloaded instances.")
    if any(attachment.instance_uuid == instance_uuid for attachment in row.attachments):
        raise InvalidVolumeError(f"Invalid volume: volume {volume_id} already attached to instance {instance_uuid}.")
    begin(connection, row, "attach", ("available",), "attaching" if server.host is not None else RESERVED)
    if row.host is None and row.backend in LOCAL_BACKENDS and server.host is not None:
        write(connection, "volume", row.id, {"host": server.host})
    own = {"tag": tag, "delete_on_termination": delete_on_termination, "readonly": readonly or row.readonly}
    made = _insert(connection, server, row, device, own)
    details = {instance_uuid: {"volume_id": volume_id, "device": made.device}}
    actions.start(connection, ATTACH, details, request_id, user_id=user_id, project_id=server.project_id)
    if server.host is None:
        actions.finish(connection, ATTACH, [(instance_uuid, None, None)])
    return made


def finish_attach(connection: sa.Connection, attachment_id: str, *, error: str | None = None) -> bool:
    """Record how it ended; without `error` the guest has it. A volume that nothing was made of has no host again."""
    attachments = attachments_by(connection, ids=[attachment_id])
    if not attachments or attachments[0].attached_at is not None:
        return False
    attachment = attachments[0]
    now = clock.seconds(connection)
    mine = volume_attachment.c.id == attachment_id
    if error is None:
        swap(connection, attachment.volume_id, ("attaching", "error_attaching", "creating"), "in-use", made=True)
        connection.execute(sa.update(volume_attachment).where(mine).values(attached_at=now))
    else:
        connection.execute(sa.delete(volume_attachment).where(mine))
        swap(connection, attachment.volume_id, ("attaching",), "available", error)
        unbind(connection, [attachment.volume_id])
    actions.finish(connection, ATTACH, [(attachment.instance_uuid, attachment.host, error)], now=now)
    return True


def begin_detach(
    connection: sa.Connection,
    volume_id: str,
    instance_uuid: str | None = None,
    *,
    project_id: str | None = None,
    request_id: str | None = None,
    user_id: str | None = None,
    by_admin: bool = False,
    force: bool = False,
) -> Attachment:
    """Begin to detach a volume from an instance (None: the only one). `force`: of any status, if nothing is under way.
    From one that is shelved, and so on no host, it is detached at once.

    Raises NotFoundError for what is not attached, ConflictError for a root disk, and for a wrong state of either.
    """
    attachment = _attached(one_volume(connection, volume_id, project_id), instance_uuid)
    server = _instance(connection, attachment.instance_uuid, None)
    row = one_volume(connection, volume_id, project_id, lock=True)  # after the instance, as by every other
    attachment = _attached(row, attachment.instance_uuid)
    state_rules.check(connection, RULES[DETACH], [server], by_admin=by_admin)
    if attachment.boot_index == 0:
        raise RootVolumeError("Cannot detach a root device volume")
    allowed = {"in-use", "error_attaching", "error_detaching", *((RESERVED,) if server.host is None else ())}
    if force:
        allowed |= {"available", "error", "error_extending", "error_deleting", "maintenance"}
    if row.is_unmade_copy:
        raise InvalidVolumeError(
            f"Invalid volume: Volume {volume_id} has no data of what it was to be made of: delete its instance instead."
        )
    begin(connection, row, "detach", allowed, "detaching")
    details = {server.uuid: {"volume_id": volume_id, "device": attachment.device}}
    actions.start(connection, DETACH, details, request_id, user_id=user_id, project_id=server.project_id)
    if server.host is None:
        finish_detach(connection, attachment.id)
    return attachment


def check_not_leaving(connection: sa.Connection, row: Volume) -> None:
    """Raise ConflictError while a host is to take the volume from its server, which it does whatever is said since."""
    for holder in row.attachments:
        details = actions.open_details(connection, DETACH, [holder.instance_uuid]).values()
        job = open_job(connection, holder.instance_uuid, "volume_detach", {"attachments": [holder.id]})
        if job is not None or any(detached.get("volume_id") == row.id for detached in details):
            raise InvalidVolumeError(
                f"Invalid volume: Volume {row.id} is being detached from instance {holder.instance_uuid}: wait for "
                "that, and attach it again."
            )


def finish_detach(connection: sa.Connection, attachment_id: str, *, error: str | None = None) -> bool:
    """Record how it ended; after an `error` the guest still has it, as in Nova. Without one nobody has the volume any
    more, also where its status was changed meanwhile, or its job was taken for dead."""
    attachments = attachments_by(connection, ids=[attachment_id])
    if not attachments:
        return False
    attachment = attachments[0]
    if error is None:
        connection.execute(sa.delete(volume_attachment).where(volume_attachment.c.id == attachment_id))
        swap(connection, attachment.volume_id, ("detaching", "in-use", "error_detaching"), "available")
    else:
        swap(connection, attachment.volume_id, ("detaching",), "in-use", error)
    actions.finish(connection, DETACH, [(attachment.instance_uuid, attachment.host, error)])
    return True


def update_attachment(connection: sa.Connection, attachment_id: str, *, delete_on_termination: bool) -> None:
    """Have the volume go with its instance, or stay."""
    mine = volume_attachment.c.id == attachment_id
    connection.execute(sa.update(volume_attachment).where(mine).values(delete_on_termination=delete_on_termination))


def settle(connection: sa.Connection, volume_ids: t.Iterable[str], reason: str) -> list[str]:
    """The job that attached or detached these is dead: nobody knows whether their guests have them.

    The attachment stays, in error, and can be detached: that is done again from the start. Returns what it changed.
    """
    changed = []
    for volume_id in sorted(set(volume_ids)):
        attached = attachments_by(connection, volumes=[volume_id])
        for before, action in (("attaching", ATTACH), ("detaching", DETACH)):
            if swap(connection, volume_id, (before,), f"error_{before}" if attached else "available", reason):
                ended = [(attachment.instance_uuid, attachment.host, reason) for attachment in attached]
                actions.finish(connection, action, ended)
                changed.append(volume_id)
    return changed


def stay(connection: sa.Connection, uuids: t.Iterable[str]) -> None:
    """Have volumes of which copies are being made stay when the deletion of their instances begins. Until it ends, the
    copies may have ended: what hosts are told to remove, and what leaves the ledger, has to be the same."""
    c = volume_attachment.c
    mine = sa.and_(c.instance_uuid.in_(sorted(uuids)), c.volume_id.in_(COPIED))
    connection.execute(sa.update(volume_attachment).where(mine).values(delete_on_termination=False))


def leaving_with(connection: sa.Connection, uuids: t.Iterable[str]) -> list[Volume]:
    """The volumes that go with these instances. One that has snapshots, or is being copied, stays, as in Cinder; and so
    does one with data of an instance that is on no host, for nobody would remove that."""
    gone = attachments_by(connection, instances=uuids)
    to_delete = {attachment.volume_id: attachment.host for attachment in gone if attachment.delete_on_termination}
    snapped = volume_snapshot.c.volume_id
    kept = sa.union(
        sa.select(snapped).where(snapped.in_(sorted(to_delete))),
        COPIED.where(volume.c.source_volume_id.in_(sorted(to_delete))),
    )
    volumes = volumes_by(connection, ids=set(to_delete) - set(connection.execute(kept).scalars()))
    return [
        leaving_volume
        for leaving_volume in volumes
        if leaving_volume.made_at is None or to_delete[leaving_volume.id] is not None
    ]


def release(connection: sa.Connection, uuids: t.Iterable[str]) -> None:
    """Release the volumes of deleted instances: those that were to go with them are deleted, the others are free again.

    The hosts removed the data of those that went when they removed the instance.
    """
    sorted_uuids = sorted(set(uuids))
    gone = attachments_by(connection, instances=sorted_uuids)
    if not gone:
        return
    to_delete = {leaving_volume.id for leaving_volume in leaving_with(connection, sorted_uuids)}
    connection.execute(sa.delete(volume_attachment).where(volume_attachment.c.instance_uuid.in_(sorted_uuids)))
    connection.execute(sa.delete(volume).where(volume.c.id.in_(sorted(to_delete))))
    for row in volumes_by(connection, ids={attachment.volume_id for attachment in gone} - to_delete):
        # one that was to be made of something by a build that never came to it has nothing to offer
        swap(connection, row.id, ("creating", *_HELD), "error" if row.is_unmade_copy else "available")
        unbind(connection, [row.id])


def unbind(connection: sa.Connection, volume_ids: t.Iterable[str]) -> None:
    """Volumes of which nothing is anywhere yet belong to no host."""
    connection.execute(
        sa.update(volume)
        .where(
            volume.c.id.in_(sorted(set(volume_ids))),
            volume.c.made_at.is_(None),
            volume.c.snapshot_id.is_(None),  # a copy is to be where its original is
            volume.c.source_volume_id.is_(None),
        )
        .values(host=None)
    )


def attach_new(
    connection: sa.Connection,
    instance_uuid: str,
    row: Volume,
    *,
    device: str | None = None,
    boot_index: int | None = None,
    tag: str | None = None,
    delete_on_termination: bool = False,
) -> Attachment:
    """Give a volume (available, or just recorded) to an instance that is to be built. Its build attaches it."""
    server = _instance(connection, instance_uuid, None)
    if row.status != "creating":
        begin(connection, row, "attach", ("available",), "attaching")
    own = {"tag": tag, "delete_on_termination": delete_on_termination, "readonly": row.readonly}
    return _insert(connection, server, row, device, {**own, "boot_index": boot_index})


def _insert(
    connection: sa.Connection, server: t.Any, row: Volume, device: str | None, values: JsonMapping
) -> Attachment:
    own = own_devices(server.flavor, server.config_drive)
    others = sa.select(volume_attachment.c.device).where(volume_attachment.c.instance_uuid == server.uuid)
    taken = {*own, *(name.rpartition("/")[2] for name in connection.execute(others).scalars())}
    name = next(iter(own)) if values.get("boot_index") == 0 else choose_device(taken, device)
    made = {
        "id": str(uuid.uuid4()),
        "volume_id": row.id,
        "instance_uuid": server.uuid,
        "device": f"/dev/{name}",
        "created_at": clock.seconds(connection),
        **values,
    }
    connection.execute(sa.insert(volume_attachment).values(**made))
    return attachments_by(connection, ids=[made["id"]])[0]


def _attached(row: Volume, instance_uuid: str | None) -> Attachment:
    """Return what the instance (None: any) has of the volume. Raises NotFoundError."""
    for attachment in row.attachments:
        if instance_uuid in (None, attachment.instance_uuid):
            return attachment
    raise NotFoundError(f"volume_id not found: {check_shown(row.id)}")


def _instance(connection: sa.Connection, instance_uuid: str, project_id: str | None) -> t.Any:
    query = sa.select(instance).where(instance.c.uuid == instance_uuid, instance.c.deleted == 0)
    if project_id is not None:
        query = query.where(instance.c.project_id == project_id)
    # one after the other: two of them at once would choose the same device name
    row = connection.execute(query.with_for_update(key_share=True)).first()
    if row is None:
        raise NotFoundError(f"Instance {check_shown(instance_uuid)} could not be found.")
    return row


def _refuse_between_hosts(connection: sa.Connection, row: Volume, server: t.Any) -> None:
    """Refuse a volume that would be in the storage of one host, while the instance may yet come to be on another."""
    c = migration.c
    two_hosts = (c.status.in_(OPEN), c.dest_host.is_not(None), c.source_host != c.dest_host)
    move = connection.execute(sa.select(migration).where(c.instance_uuid == server.uuid, *two_hosts)).first()
    if move is None:
        return
    other = move.dest_host if server.host == move.source_host else move.source_host
    remedy = "confirm or revert its resize first"
    if move.status == "confirming":
        remedy = "confirm its resize once more first"
    elif server.vm_state != "resized":
        remedy = "run playbooks/reconcile.yml first"
    raise InvalidVolumeError(
        f"Invalid volume: volume {row.id} would be in the storage of the compute host {server.host} alone, and the "
        f"move of instance {server.uuid} may yet end on {other}: {remedy}, or use a volume type with shared storage."
    )


def _refuse_elsewhere(row: Volume, host: str) -> None:
    if row.host not in (None, host):
        raise InvalidVolumeError(
            f"Invalid volume: volume {row.id} is in the storage of the compute host {row.host}, and the instance "
            f"is on {host}: attach it to an instance there, or use a volume type with shared storage."
        )
    allowed = row.options.get("hosts")
    if allowed is not None and host not in allowed:
        raise InvalidVolumeError(
            f"Invalid volume: volume type {row.type} is on {', '.join(allowed)}, and the instance is on {host}."
        )
