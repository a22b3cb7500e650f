# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A stack's servers as they shall be, and the servers of their names as they are, in a form that can be compared."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonObject
from ..._model.instance import File
from ..._model.rows import InstanceRow
from ..._rules import guest_requests, server_requests
from ..._rules.server_requests import ServerRequest
from ..._stack.document import Server, Stack
from ..db.tables import instance, server_group, server_group_member
from ..queries.compute.instance_rows import instance_rows
from ..queries.compute.views import instances_by
from .stack_marks import METADATA_KEY


class Live(t.TypedDict):
    """A server that there is, in the form in which a document's is compared with it; `row` has what is not shown."""

    uuid: str
    row: InstanceRow
    mine: bool
    vm_state: str
    launched_at: int | None
    flavor: str
    image: str
    image_id: str
    key: str | None
    availability_zone: str | None
    hostname: str
    networks: list[dict[str, str | None]]
    security_groups: list[str]
    metadata: dict[str, str]
    user_data: str | None
    files: list[File] | None
    config_drive: bool
    server_group: str | None


def live_servers(connection: sa.Connection, stack: Stack, project_id: str) -> dict[str, Live]:
    """Return, by name, the project's servers that the document names or that the stack made (`mine`)."""
    named = {server.name for server in stack.servers}
    mine = sa.and_(instance.c.project_id == project_id, instance.c.deleted == 0)
    seen = connection.execute(sa.select(instance.c.name, instance.c.uuid, instance.c.metadata).where(mine)).all()
    uuids = [row.uuid for row in seen if row.name in named or row.metadata.get(METADATA_KEY) == stack.name]
    rows = {row.uuid: row for row in instance_rows(connection, instance.c.uuid.in_(uuids))} if uuids else {}
    groups = _server_groups(connection, uuids)
    return {
        server["name"]: {
            "uuid": server["uuid"],
            "row": rows[server["uuid"]],
            "mine": server["metadata"].get(METADATA_KEY) == stack.name,
            "vm_state": server["vm_state"],
            "launched_at": server["launched_at"],
            "flavor": server["flavor"]["name"],
            "image": server["image"]["name"],
            "image_id": server["image"]["id"],
            "key": server["key"] and server["key"]["name"],
            "availability_zone": server["availability_zone"],
            "hostname": server["hostname"],
            "networks": [{"name": nic["network"]["name"], "fixed_ip": nic["ip"]} for nic in server["nics"]],
            "security_groups": [group["name"] for group in server["security_groups"]],
            "metadata": server["metadata"],
            "user_data": rows[server["uuid"]].user_data,
            "files": rows[server["uuid"]].files,
            "config_drive": rows[server["uuid"]].config_drive,
            "server_group": groups.get(server["uuid"]),
        }
        for server in instances_by(connection, uuids=uuids)
    }


def _server_groups(connection: sa.Connection, uuids: t.Sequence[str]) -> dict[str, str]:
    member = server_group_member
    query = (
        sa.select(member.c.instance_uuid, server_group.c.name)
        .join(server_group, server_group.c.id == member.c.group_id)
        .where(member.c.instance_uuid.in_(uuids))
    )
    return {row.instance_uuid: row.name for row in connection.execute(query)} if uuids else {}


def checked(stack: Stack, server: Server) -> ServerRequest:
    """`server` as the module `server` would take it. Raises NovaliteError with the place in the document. Without its
    password, which is hashed when the server is made: that takes a while, and cannot be compared."""
    entry = {key: value for key, value in server.fields.items() if key != "admin_password"}
    try:
        return server_requests.expand([{**entry, "name": server.name}])[0]
    except NovaliteError as error:
        raise stack.error(str(error), server.where) from None


def desired_server(server: Server, request: ServerRequest, live: Live | None) -> JsonObject:
    """Return the document's server in the form of live_servers(); of hints, the server group alone. Other hints, and a
    password, count when the server is made: nobody can tell afterwards what became of them."""
    guest = request.guest
    config_drive = guest.config_drive
    if live is not None:
        config_drive = guest_requests.requested_config_drive(guest, live["row"])
    values: JsonObject = {
        "flavor": request.flavor,
        "image": request.image,
        "key": request.key,
        "availability_zone": request.availability_zone,
        "hostname": request.hostname,
        "networks": [{"name": nic.name, "fixed_ip": nic.fixed_ip} for nic in request.networks or ()],
        "security_groups": list(request.security_groups),
        "metadata": request.metadata,
        "user_data": guest.user_data,
        "files": guest.file_records,
        "config_drive": config_drive,
    }
    desired = {field: value for field, value in values.items() if field in server.fields}
    if live is not None and desired.get("image") == live["image_id"]:
        desired["image"] = live["image"]
    group = request.hints.get("group")
    if group is not None:
        desired["server_group"] = group
    return desired


def launched_with(stack: Stack, server: Server) -> JsonObject:
    """Return the arguments of the module `server` that make it: the document's, and the mark of the stack."""
    metadata = {**server.fields.get("metadata", {}), METADATA_KEY: stack.name}
    return {**server.fields, "name": server.name, "metadata": metadata}
