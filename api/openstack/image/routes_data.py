# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data of images: upload, download, stage and import."""

from __future__ import annotations

import os

from flask import Response, request
from werkzeug.wsgi import wrap_file

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import image_data
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog import image_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import (
    SeenImage,
    image_tasks,
)

from ...web import policy, validation
from ...web.bodies import Answer
from ...web.errors import BadRequestError, ForbiddenError
from ...web.ledger import reading_ledger
from ...web.schemas import TEXT, a_list, an_object
from ...web.services import reads
from ...work.calls import writing_call
from . import transfers, uploads, views
from .blueprint import image, own, seen
from .routes import METHODS

IMPORT = an_object(
    {
        "method": an_object({"name": TEXT}, ["name"], more=True),
        "all_stores": {"type": "boolean"},
        "all_stores_must_succeed": {"type": "boolean"},
        "stores": a_list(TEXT, 10),
    },
    ["method"],
)


@image.put("/images/<image_id>/file", "image:write")
def upload(image_id: str) -> Answer:
    return _take(image_id, staged=False)


@image.put("/images/<image_id>/stage", "image:write")
def stage(image_id: str) -> Answer:
    return _take(image_id, staged=True)


def _take(number: str, staged: bool) -> Answer:
    try:
        with reading_ledger() as connection:
            row = own(connection, number)
        uploads.receive(row, staged)
    except BaseException:
        transfers.drain()
        raise
    return "", 204


@image.get("/images/<image_id>/file", "image:read")
def download(image_id: str) -> Answer:
    with reading_ledger() as connection:
        row = seen(connection, image_id)
    if row["status"] == "deactivated" and not policy.allowed("image:download_deactivated"):
        raise ForbiddenError("The requested image has been deactivated. Image data download is forbidden.")
    if row["status"] not in ("active", "deactivated") or not row["source"]:
        return "", 204
    if "://" in row["source"]:
        raise ForbiddenError("This image's data are at the cloud operator's web server; they are not given out here.")
    response = _sent(row)
    return response, response.status_code


def _sent(row: SeenImage) -> Response:
    missing = f"The data of image {row['id']} are not there."
    if request.method == "HEAD":
        response = Response(mimetype="application/octet-stream")
        size = os.stat(row["source"]).st_size if os.path.exists(row["source"]) else 0
        response.content_length = size
    else:
        try:
            if not image_views.is_intact(row["source"], row["checksum"]):
                raise NotFoundError(f"The data of image {row['id']} are not those that its checksum is of.")
            file = transfers.Outgoing(row["source"])
        except OSError:
            raise NotFoundError(missing) from None
        size = os.fstat(file.fileno()).st_size
        response = Response(wrap_file(request.environ, file, 1 << 20), mimetype="application/octet-stream")
        response.direct_passthrough = True
        response.content_length = size
        response.make_conditional(request.environ, accept_ranges=True, complete_length=size)
    if row["md5"] and response.status_code == 200:
        response.headers["Content-MD5"] = row["md5"]
    return response


# --- Import ---------------------------------------------------------------------------------------------------------


@image.post("/images/<image_id>/import", "image:write")
def import_image(image_id: str) -> Answer:
    with reading_ledger() as connection:
        row = own(connection, image_id)  # before a word about the body
    body = validation.body(IMPORT)
    method = body["method"]["name"]
    if method not in METHODS:
        raise BadRequestError(f"Unknown import method name '{method[:60]}'; there is {', '.join(METHODS)}")
    for store in body.get("stores", []):
        if store != views.STORE:
            raise BadRequestError(f"Unknown store '{store[:60]}'; there is {views.STORE}")
    image_data.import_staged(writing_call, row, body, uploads.store())
    return "", 202


@image.get("/info/import", "image:read")
def show_import_methods() -> Answer:
    shown = {"description": "Import methods available.", "type": "array", "value": list(METHODS)}
    return {"import-methods": shown}, 200


@image.get("/info/stores", "image:read")
def show_stores() -> Answer:
    return {"stores": [{"id": views.STORE, "default": "true", "description": "files on the controller"}]}, 200


# --- Tasks ----------------------------------------------------------------------------------------------------------


@image.get("/images/<image_id>/tasks", "image:read", reads)
def list_tasks(connection: Connection, image_id: str) -> Answer:
    row = seen(connection, image_id)
    return {"tasks": [views.task(task) for task in image_tasks(connection, image_id=row["id"])]}, 200


@image.get("/tasks", "image:tasks", reads)
def list_all_tasks(connection: Connection) -> Answer:
    rows = image_tasks(connection)
    shown = [{key: value for key, value in views.task(row).items() if key != "input"} for row in rows]
    return {"tasks": shown, "first": "/v2/tasks", "schema": "/v2/schemas/tasks"}, 200


@image.get("/tasks/<task_id>", "image:tasks", reads)
def show_task(connection: Connection, task_id: str) -> Answer:
    rows = image_tasks(connection, task=task_id)
    if not rows:
        raise NotFoundError(f"No task found with ID {task_id[:60]}")
    return views.task(rows[0]), 200


@image.post("/tasks", "image:tasks")
def create_task() -> Answer:
    raise BadRequestError("Tasks are made by imports: POST /v2/images/{image_id}/import")
