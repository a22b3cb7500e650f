# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks of servers that are to run again when their host dies: those that die with it, and those that do not."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._healing.nouns import COPIED, LOCAL, LOCKED
from ..._healing.recovery import refused_when_asked
from ..db.tables import instance
from ..db.tables_images import replica
from ..db.tables_volumes import volume, volume_attachment, volume_type

SHARED = ("nfs",)  # backends of volumes that every host reaches, and whose files QEMU locks there


def kinds(connection: sa.Connection, flavors: t.Mapping[str, t.Mapping[str, t.Any]]) -> dict[str, str]:
    """Return the kind of the disks of each server, by its UUID; `flavors` has its flavor."""
    shared = (
        sa.select(volume_attachment.c.instance_uuid)
        .join(volume, volume.c.id == volume_attachment.c.volume_id)
        .join(volume_type, volume_type.c.id == volume.c.type_id)
        .where(volume_attachment.c.boot_index == 0, volume_type.c.backend.in_(SHARED))
        .where(volume_attachment.c.instance_uuid.in_(sorted(flavors)))
    )
    roots = set(connection.scalars(shared)) if flavors else set()
    copies = sa.select(replica.c.instance_uuid).where(
        replica.c.every.is_not(None), replica.c.instance_uuid.in_(sorted(flavors))
    )
    own = dict.fromkeys(connection.scalars(copies) if flavors else (), COPIED)
    return {
        uuid: LOCKED if uuid in roots and not flavor["ephemeral_gb"] else own.get(uuid, LOCAL)
        for uuid, flavor in flavors.items()
    }


def check(connection: sa.Connection, uuids: t.Collection[str]) -> None:
    """Raise NovaliteError for the first of these servers that is promised what its disks cannot keep."""
    c = instance.c
    query = sa.select(c.uuid, c.name, c.flavor, c.ha_rebuild).where(c.ha, c.uuid.in_(sorted(set(uuids)))).order_by(c.id)
    rows = connection.execute(query).all()
    disks = kinds(connection, {row.uuid: row.flavor for row in rows})
    for row in rows:
        if reason := refused_when_asked(True, disks[row.uuid], row.ha_rebuild):
            raise NovaliteError(f"'{row.name}': {reason}")


def local_volume(connection: sa.Connection, uuid: str) -> str | None:
    """The name of a volume of the instance that no other host has."""
    return local_volumes(connection, instance_uuid=uuid).get(uuid)


def local_volumes(connection: sa.Connection, **equals: str) -> dict[str, str]:
    """The name of a volume that its host has alone, by instance: of all, or of attachments that have these values."""
    query = (
        sa.select(volume_attachment.c.instance_uuid, volume.c.name)
        .join(volume, volume_attachment.c.volume_id == volume.c.id)
        .where(volume.c.host.is_not(None), *(volume_attachment.c[name] == value for name, value in equals.items()))
        .order_by(volume.c.id.desc())
    )
    return {row.instance_uuid: row.name for row in connection.execute(query)}
