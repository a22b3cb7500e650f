# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The actions that make a server's disks anew, or copy them: rebuild, rescue, createImage, createBackup, shelve, and
their ends.

Each is begun here, in one transaction with the job that carries it out. Beside them is what the agent in a guest does,
changePassword, and the ways to a console.
"""

from __future__ import annotations

import functools

from flask import Response
from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import image_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import volume_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import root_volume
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow
from ansible_collections.novalite.cloud.plugins.module_utils._rules import guest_requests

from ....web.addresses import base_url
from ....web.bodies import Answer, Body, Record
from ....web.context import current
from ....web.errors import BadRequestError
from ....web.schemas import NAME, TEXT, Schema, an_object, or_null, wrapped
from ....web.services import takes, writes
from ....work import consoles
from ....work.refusals import refusals_as_bad_requests
from ..blueprint import Version, compute, microversion, since
from . import requests as server_requests
from . import schemas
from . import views as views_servers
from .routes_actions import ACTIONS, Action, power
from .routes_servers import shown
from .schemas import BOOLEAN, METADATA, OPTIONAL_NAME, TRUE

RESCUE = or_null(an_object({"adminPass": TEXT, "rescue_image_ref": NAME}))
CREATE_IMAGE = an_object({"name": NAME, "metadata": METADATA}, ["name"])
CREATE_BACKUP = an_object(
    {
        **{"name": NAME, "metadata": METADATA, "backup_type": {"type": "string", "maxLength": 255}},
        "rotation": {"type": ["integer", "string"], "pattern": "^[0-9]{1,9}$", "minimum": 0, "maximum": 10**9},
    },
    ["name", "backup_type", "rotation"],
)
CHANGE_PASSWORD = an_object({"adminPass": TEXT}, ["adminPass"])


# the protocols and types of remote-consoles; before 2.6, some of them had actions
CONSOLE_TYPES = {
    "vnc": ("novnc", "xvpvnc"),
    "spice": ("spice-html5",),
    "rdp": ("rdp-html5",),
    "serial": ("serial",),
    "mks": ("webmks",),
}
CONSOLE_ACTIONS = {f"os-get{name}Console": CONSOLE_TYPES[name.lower()] for name in ("VNC", "SPICE", "RDP", "Serial")}
REMOTE_CONSOLE = wrapped(
    "remote_console",
    {
        "protocol": {"enum": list(CONSOLE_TYPES)},
        "type": {"enum": sorted({kind for kinds in CONSOLE_TYPES.values() for kind in kinds})},
    },
    ["protocol", "type"],
)


@functools.lru_cache(maxsize=128)
def rebuild_schema(version: Version) -> Schema:
    """Return a rebuild's schema for a microversion, as nova/api/openstack/compute/schemas/servers.py has it."""
    fields: Schema = {
        **schemas.SHOWN,
        "imageRef": NAME,
        "adminPass": TEXT,
        "metadata": METADATA,
        "preserve_ephemeral": BOOLEAN,
        **schemas.personality(version),
        **schemas.later(version, "description", "trusted_image_certificates", "hostname"),
        **({"key_name": OPTIONAL_NAME} if version >= (2, 54) else {}),
        **({"user_data": schemas.USER_DATA} if version >= (2, 57) else {}),
    }
    return an_object(fields, ["imageRef"])


def _with_password(value: Record) -> Record:
    """The request with the password that is going to be, and its hash: made before the ledger is locked for it."""
    request_body = dict(value)
    generated = not request_body.get("adminPass")
    password = server_requests.new_password() if generated else request_body["adminPass"]
    with refusals_as_bad_requests():
        hashed = guest_requests.hashed("this server", password, generated)
    return {**request_body, "adminPass": password, "password_hash": hashed, "password_optional": generated}


def _hashed(value: Record) -> Record:
    """The password's hash in place of the password, as above."""
    with refusals_as_bad_requests():
        return {"password_hash": guest_requests.hashed("this server", value["adminPass"])}


def _rebuild(call: Call, row: InstanceRow, value: Record) -> tuple[Body, int, dict[str, str]]:
    if value.get("preserve_ephemeral") in TRUE:
        raise BadRequestError("The current driver does not support preserving ephemeral partitions.")
    with refusals_as_bad_requests():
        servers.rebuild(call, row, _rebuild_request(call, row, value))
    server = {**shown(call.connection, row, views_servers.rebuilt), "adminPass": value["adminPass"]}
    if microversion() >= (2, 57):
        server["user_data"] = server_listing.user_data_of(call.connection, row.id)
    return {"server": server}, 202, {"Location": views_servers.render_context().href("servers", row.uuid)}


def _rebuild_request(call: Call, row: InstanceRow, value: Record) -> Record:
    """The body in the words of servers.rebuild()."""
    connection = call.connection
    root = root_volume(connection, row.uuid)
    image_id = value["imageRef"].lower()
    if root is not None and microversion() < (2, 93) and (root.image is None or root.image["id"] != image_id):
        raise BadRequestError("Unable to rebuild with a different image for a volume-backed server.")
    rebuild_request: Record = {
        **server_requests.column_values(value),
        "reimage": microversion() >= (2, 93),
        "image": lookups.image_by_id(connection, image_id, row.project_id),
        "password_hash": value["password_hash"],
        "password_optional": value["password_optional"],
    }
    if "metadata" in value:
        rebuild_request["metadata"] = value["metadata"]
    if "key_name" in value:
        key = value["key_name"]
        # of the server's user, as in Nova, whoever rebuilds it; of the caller where a playbook made the server
        user_id = row.user_id or call.user_id
        rebuild_request["key"] = key and lookups.keypair_by_name(connection, key, row.project_id, user_id)
    if "user_data" in value:
        rebuild_request |= {"user_data": value["user_data"] or "", "user_data_encoding": "base64"}
        server_requests.check_base64(rebuild_request["user_data"])
    if value.get("personality"):
        rebuild_request["files"] = server_requests.files(value["personality"])
    return rebuild_request


def _rescue(call: Call, row: InstanceRow, value: Record) -> Answer:
    if microversion() < (2, 87) and volume_views.from_volumes(call.connection, [row.uuid]):
        raise BadRequestError(f"Instance {row.uuid} cannot be rescued: Cannot rescue a volume-backed instance")
    with refusals_as_bad_requests():
        servers.rescue(call, row, value.get("rescue_image_ref"), value["password_hash"])
    return {"adminPass": value["adminPass"]}, 200


def _create_image(call: Call, row: InstanceRow, value: Record) -> Answer | Response:
    with refusals_as_bad_requests():
        details = image_views.details_of(value["name"], value.get("metadata"), call.user_id)
        servers.create_image(call, row, details)
    return _image_made(details)


def _create_backup(call: Call, row: InstanceRow, value: Record) -> Answer | Response:
    rotation: image_views.Rotation = {"type": value["backup_type"], "count": int(value["rotation"])}
    with refusals_as_bad_requests():
        details = image_views.details_of(value["name"], value.get("metadata"), call.user_id, rotation)
        servers.create_image(call, row, details)
    if microversion() < (2, 45) and not rotation["count"]:
        return Response(status=202)  # the image goes as soon as it is made
    return _image_made(details)


def _image_made(details: image_views.Details) -> Answer | Response:
    if microversion() >= (2, 45):
        return {"image_id": details["image_id"]}, 202
    location = f"{base_url()}/image/v2/images/{details['image_id']}"
    return Response(status=202, headers={"Location": location})


def _change_password(call: Call, row: InstanceRow, value: Record) -> None:
    servers.change_password(call, [row.uuid], value["password_hash"])


def _console(call: Call, row: InstanceRow, value: Record) -> Body:
    if microversion() > (2, 5):
        raise NotFound()
    return {"console": {"type": value["type"], "url": _console_url(call.connection, row, value["type"])}}


def _console_url(connection: Connection, row: InstanceRow, kind: str) -> str:
    with refusals_as_bad_requests():
        return consoles.url_of(connection, row, kind)


@compute.post(
    "/servers/<server_id>/remote-consoles", "compute:server-consoles", since("2.6"), takes(REMOTE_CONSOLE), writes
)
def create_remote_console(connection: Connection, console_request: Record, server_id: str) -> Answer:
    row = server_listing.instance_row(connection, server_id, current().reach)
    protocol = console_request["protocol"]
    if console_request["type"] not in CONSOLE_TYPES[protocol] or (protocol == "mks" and microversion() < (2, 8)):
        raise BadRequestError(f"Invalid console type {console_request['type']}")
    url = _console_url(connection, row, console_request["type"])
    return {"remote_console": {**console_request, "url": url}}, 200


def _shelve(call: Call, row: InstanceRow, value: Record) -> None:
    servers.begin(call, "shelve", [row.uuid], {"user_id": call.user_id})


@functools.lru_cache(maxsize=128)
def unshelve_schema(version: Version) -> Schema:
    if version < (2, 77):
        return {}
    zone: Schema = {"availability_zone": NAME if version < (2, 91) else or_null(NAME)}
    if version < (2, 91):
        return or_null(an_object(zone, ["availability_zone"]))
    return or_null({**an_object({**zone, "host": NAME}), "minProperties": 1})


def _unshelve(call: Call, row: InstanceRow, value: Record) -> None:
    where = value if microversion() >= (2, 77) else {}
    with refusals_as_bad_requests():
        servers.begin(call, "unshelve", [row.uuid], where)


ACTIONS.update(
    {
        "shelve": Action("compute:servers:shelve", {}, _shelve),
        "shelveOffload": Action("compute:servers:shelve_offload", {}, power("shelveOffload")),
        "unshelve": Action("compute:servers:unshelve", unshelve_schema, _unshelve),
        "rebuild": Action("compute:servers:rebuild", rebuild_schema, _rebuild, _with_password),
        "rescue": Action("compute:servers:rescue", RESCUE, _rescue, _with_password),
        "unrescue": Action("compute:servers:unrescue", {}, power("unrescue")),
        "createImage": Action("compute:servers:create_image", CREATE_IMAGE, _create_image),
        "createBackup": Action("compute:servers:create_image", CREATE_BACKUP, _create_backup),
        "changePassword": Action("compute:servers:change_password", CHANGE_PASSWORD, _change_password, _hashed),
        **{
            name: Action(
                "compute:server-consoles", an_object({"type": {"enum": list(kinds)}}, ["type"]), _console, status=200
            )
            for name, kinds in CONSOLE_ACTIONS.items()
        },
    }
)
