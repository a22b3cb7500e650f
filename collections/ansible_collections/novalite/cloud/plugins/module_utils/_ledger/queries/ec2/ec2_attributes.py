# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attributes and tags that only the EC2 API knows. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...._json import JsonMapping, JsonObject
from ...._rules.volume_mappings import LAUNCHED_FROM
from ...db import clock
from ...db.tables import instance, instance_security_group, keypair, security_group
from ...db.tables_ec2 import ec2_instance, ec2_keypair
from ...db.tables_ec2 import ec2_tag as table
from ..compute import server_listing
from ..lookups import keypairs_seen
from ..network.subnet_records import subnet_ids
from ..volumes.volume_views import Attachment, attachments_by

Record = JsonObject
Tags = dict[str, str]
REMEMBERED = 3600  # seconds for which one that was terminated is still shown, as Amazon does
DEFAULTS: JsonMapping = {
    "client_token": "",
    "launch_index": 0,
    "disable_api_termination": False,
    "disable_api_stop": False,
    "http_tokens": "optional",
    "shutdown_behavior": "stop",
}
_BATCH = 500  # of the variables that one statement may have


def instance_ids(connection: sa.Connection, project_id: str) -> dict[int, str]:
    """{number: UUID} of the project's instances, with those that were just terminated, oldest first."""
    recently = clock.seconds(connection) - REMEMBERED
    query = (
        sa.select(instance.c.id, instance.c.uuid)
        .where(
            instance.c.project_id == project_id,
            sa.or_(instance.c.deleted == 0, sa.func.coalesce(instance.c.terminated_at, 0) >= recently),
        )
        .order_by(instance.c.id)
    )
    return {row.id: row.uuid for row in connection.execute(query)}


def load(connection: sa.Connection, numbers: t.Sequence[int]) -> list[Record]:
    """The records of server_listing, each with the groups' `group_records` (uuid, name), the attachments of `volumes`,
    EC2's own as `ec2`, the `subnet_id` of each of its interfaces, and as `image_id` also the image that named the
    volumes which an instance starts from."""
    all_records: list[Record] = []
    for start in range(0, len(numbers), _BATCH):
        some = numbers[start : start + _BATCH]
        records = server_listing.load(connection, some)
        groups = _groups(connection, some)
        uuids = [record["uuid"] for record in records]
        own, volumes = attributes(connection, uuids), _attachments(connection, uuids)
        launched_from = _launched_from(connection, some)
        nics = [nic for record in records for nic in record["nics"]]
        subnets = subnet_ids(connection, {nic["network_uuid"] for nic in nics})
        for nic in nics:
            nic["subnet_id"] = subnets.of(nic["network_uuid"], nic["ip"])
        for record in records:
            record["group_records"] = groups.get(record["id"], [])
            record["volumes"] = volumes.get(record["uuid"], [])
            record["ec2"] = own.get(record["uuid"], DEFAULTS)
            record["image_id"] = launched_from.get(record["id"], record["image_id"])
        all_records += records
    return all_records


def attributes(connection: sa.Connection, uuids: t.Collection[str]) -> dict[str, Record]:
    """Return what EC2's clients set on these instances, by UUID; those without settings are left out (DEFAULTS)."""
    rows = connection.execute(sa.select(ec2_instance).where(ec2_instance.c.instance_uuid.in_(list(uuids)))).mappings()
    return {row["instance_uuid"]: dict(row) for row in rows}


def made_fingerprints(connection: sa.Connection, project_id: str, user_id: str) -> dict[tuple[str, str], str]:
    """EC2's fingerprints of the key pairs that were made here, by (user, name); "": shared by all of the project."""
    c = ec2_keypair.c
    query = sa.select(ec2_keypair).where(c.user_id.in_(["", user_id]), c.project_id.in_(["", project_id]))
    return {(row.user_id, row.name): row.fingerprint for row in connection.execute(query)}


def has_keypair(connection: sa.Connection, project_id: str, user_id: str, name: str) -> bool:
    """Tell whether the user may launch with a key pair of this name; of "" as a project, whether it is the user's."""
    query = keypairs_seen(project_id, user_id).where(keypair.c.name == name)
    return connection.execute(query.limit(1)).first() is not None


def _attachments(connection: sa.Connection, uuids: t.Sequence[str]) -> dict[str, list[Attachment]]:
    attachments_by_instance: dict[str, list[Attachment]] = {}
    for attachment in attachments_by(connection, instances=uuids) if uuids else ():
        attachments_by_instance.setdefault(attachment.instance_uuid, []).append(attachment)
    return attachments_by_instance


def _launched_from(connection: sa.Connection, numbers: t.Sequence[int]) -> dict[int, str]:
    image = instance.c.image[("properties", LAUNCHED_FROM)].as_string()
    rows = connection.execute(sa.select(instance.c.id, image).where(instance.c.id.in_(list(numbers))))
    return {number: image_id for number, image_id in rows if image_id}


def _groups(connection: sa.Connection, numbers: t.Sequence[int]) -> dict[int, list[Record]]:
    link = instance_security_group
    query = (
        sa.select(link.c.instance_id, security_group.c.uuid, security_group.c.name)
        .join(security_group, security_group.c.id == link.c.group_id)
        .where(link.c.instance_id.in_(list(numbers)))
        .order_by(security_group.c.id)
    )
    groups_by_instance: dict[int, list[Record]] = {}
    for row in connection.execute(query):
        groups_by_instance.setdefault(row.instance_id, []).append({"uuid": row.uuid, "name": row.name})
    return groups_by_instance


def tags_of(connection: sa.Connection, project_id: str) -> dict[str, Tags]:
    """{resource: its tags} of all that the project has tagged."""
    tags_by_resource: dict[str, Tags] = {}
    query = sa.select(table).where(table.c.project_id == project_id).order_by(table.c.resource, table.c.key)
    for row in connection.execute(query):
        tags_by_resource.setdefault(row.resource, {})[row.key] = row.value
    return tags_by_resource
