# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances as EC2's clients see them: with what they alone say about one, and for a while after it is gone.

Requests that carry a client token, sent again, do nothing again.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._json import JsonMapping, JsonObject
from ..db import clock
from ..db.tables import instance, instance_security_group, keypair, security_group
from ..db.tables_ec2 import ec2_instance, ec2_keypair, ec2_request
from ..queries import server_listing
from ..queries.lookups import keypairs_seen
from ..queries.subnet_records import subnet_ids
from ..queries.volume_views import Attachment, attachments_by
from ..volumes.server_volumes import LAUNCHED_FROM

Record = JsonObject

REMEMBERED = 3600  # seconds for which one that was terminated is still shown, as Amazon does
DEFAULTS: JsonMapping = {
    "client_token": "",
    "launch_index": 0,
    "disable_api_termination": False,
    "disable_api_stop": False,
    "http_tokens": "optional",
    "shutdown_behavior": "stop",
}
KEPT = 24 * 3600  # seconds that a token is remembered, as long as Amazon's at least
MAX_TOKEN = 64  # characters
_BATCH = 500  # of the variables that one statement may have


class OtherRequestError(ConflictError):
    """A client's token that stands for another request."""


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


def write_attributes(connection: sa.Connection, uuid: str, values: JsonMapping) -> None:
    """Keep these of an instance."""
    done = connection.execute(sa.update(ec2_instance).where(ec2_instance.c.instance_uuid == uuid).values(**values))
    if not done.rowcount:
        connection.execute(sa.insert(ec2_instance).values(**{"instance_uuid": uuid, **DEFAULTS, **values}))


def made_fingerprints(connection: sa.Connection, project_id: str, user_id: str) -> dict[tuple[str, str], str]:
    """EC2's fingerprints of the key pairs that were made here, by (user, name); "": shared by all of the project."""
    c = ec2_keypair.c
    query = sa.select(ec2_keypair).where(c.user_id.in_(["", user_id]), c.project_id.in_(["", project_id]))
    return {(row.user_id, row.name): row.fingerprint for row in connection.execute(query)}


def keep_fingerprint(connection: sa.Connection, user_id: str, name: str, fingerprint: str) -> None:
    values = {"user_id": user_id, "project_id": "", "name": name, "fingerprint": fingerprint}
    connection.execute(sa.insert(ec2_keypair).values(**values))


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


def repeated(
    connection: sa.Connection, project_id: str, action: str, token: str, parameters: JsonMapping
) -> list[str] | None:
    """Return what an earlier request with this token made; None if there was none: remember() then takes the result,
    and others with the token wait until this transaction ends. Raises OtherRequestError if `parameters` are not what
    that request had."""
    now = clock.seconds(connection)
    connection.execute(sa.delete(ec2_request).where(ec2_request.c.created_at < now - KEPT))
    hashed = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()
    made = connection.execute(
        sa.text(
            "INSERT INTO ec2_request (project_id, action, token, request_hash, result, created_at)"
            " VALUES (:project_id, :action, :token, :hashed, '[]', :now) ON CONFLICT DO NOTHING"
        ),
        {"project_id": project_id, "action": action, "token": token, "hashed": hashed, "now": now},
    )
    if made.rowcount:
        return None
    row = connection.execute(sa.select(ec2_request).where(*_of_token(project_id, action, token))).one()
    if row.request_hash != hashed:
        raise OtherRequestError(
            "The client token you have provided is associated with a request that is not the same as this one."
        )
    return t.cast("list[str]", row.result)


def remember(connection: sa.Connection, project_id: str, action: str, token: str, result: list[str]) -> None:
    """Record the result of the first request with this token, for those that repeat it."""
    connection.execute(sa.update(ec2_request).where(*_of_token(project_id, action, token)).values(result=result))


def _of_token(project_id: str, action: str, token: str) -> tuple[sa.ColumnElement[bool], ...]:
    return ec2_request.c.project_id == project_id, ec2_request.c.action == action, ec2_request.c.token == token
