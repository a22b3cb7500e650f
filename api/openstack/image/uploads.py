# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Data of images coming in: as a stream into the store, looked at there, and only then the image's."""

from __future__ import annotations

import concurrent.futures
import os

from flask import current_app, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._image_import.foreign_disks import DRIVERS
from ansible_collections.novalite.cloud.plugins.module_utils._image_import.imported import CONVERTED, Foreign, convert
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import (
    image_files,
    image_states,
    image_store,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from ...settings import Settings
from ...web.bodies import Record
from ...web.errors import BadRequestError, TooLargeError, UnsupportedMediaTypeError
from ...web.ledger import home, writing_ledger
from . import transfers
from .blueprint import by_operator

GIB = 1 << 30
SIGN_OF_LIFE = 60.0  # seconds


def check_request(row: Record) -> None:
    """Raise the error for an upload that cannot begin."""
    if request.mimetype != "application/octet-stream":
        raise UnsupportedMediaTypeError("send an image's data as application/octet-stream")
    missing = [name for name in ("disk_format", "container_format") if not row[name]]
    if missing:
        raise BadRequestError(f"Properties {', '.join(missing)} must be set prior to saving data.")


def receive(row: Record, staged: bool) -> None:
    """Take the request's body as the data of the image, or (`staged`) keep it for an import.

    Whatever fails, the image waits for data again. Raises the error that the client is to see.
    """
    number = row["id"]
    with transfers.incoming() as stream:
        with writing_ledger() as connection:
            limit = _limit(image_states.room(connection, row["owner"]))
            if (request.content_length or 0) > limit:
                raise TooLargeError(f"The image is larger than the {limit} bytes that it may have.")
            transfer = image_states.begin(connection, number, "queued", "uploading" if staged else "saving")
        part = image_store.part_of(home(), number, transfer)
        try:
            image = image_store.receive(stream, part, limit, _reporter(number, transfer), request.content_length)
            values = {"size": image.size, "checksum": f"sha256:{image.sha256}", "md5": image.md5}
            if staged:
                image_store.put_in_place(part, image_store.staged_of(home(), number))
                with writing_ledger() as connection:
                    _finish(connection, number, transfer, {**values, "status": "uploading"})
            else:
                settle(row, transfer, part, values)
        except BaseException as error:
            image_store.remove(part)
            with writing_ledger() as connection:
                image_states.give_up(connection, number, transfer, None)
            raise client_error(error) from error


def settle(row: Record, transfer: str, path: str, values: Record) -> None:
    """Look at the file that came in, and make it the image's. Raises NovaliteError for one that is refused."""
    number, name = row["id"], f"The image's data ({row['disk_format']})"
    values = {"disk_format": row["disk_format"], **values}
    if row["disk_format"] in DRIVERS:
        values |= _converted(row, transfer, path, name)
    virtual_size = image_files.inspected(path, values["disk_format"], name)
    final = image_store.file_of(home(), number)
    image_store.put_in_place(path, final)
    try:
        with writing_ledger() as connection:
            active = {"status": "active", "source": final, "virtual_size": virtual_size, "fault": None}
            _finish(connection, number, transfer, {**values, **active})
    except BaseException:
        image_store.remove(final)
        raise


def _converted(row: Record, transfer: str, path: str, name: str) -> Record:
    """Put into the place of a disk of another hypervisor what hosts can start, as Glance's plug-in image_conversion
    does; return what is known of that. While it lasts, the transfer gives signs of life."""
    with writing_ledger() as connection:
        most = min(_limit(image_states.room(connection, row["owner"])), image_store.free(path))
    made, report = f"{path}.{CONVERTED}{image_store.PART}", _reporter(row["id"], transfer)
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            work = pool.submit(convert, Foreign(path, row["disk_format"], name), path, made, most)
            while not concurrent.futures.wait([work], SIGN_OF_LIFE).done:
                report(os.path.getsize(path))
            work.result()
        os.rename(made, path)
    finally:
        image_store.remove(made)
    file = image_store.measured(path)
    return {"disk_format": CONVERTED, "size": file.size, "checksum": f"sha256:{file.sha256}", "md5": file.md5}


def _finish(connection: Connection, number: str, transfer: str, values: Record) -> None:
    image_states.finish(connection, number, transfer, values, by_operator=by_operator())


def client_error(error: BaseException) -> BaseException:
    """Return the error that the client gets for `error`."""
    if isinstance(error, (QuotaError, image_store.TooLargeError)):
        return TooLargeError(str(error))
    refused = isinstance(error, (image_files.ImageRefusedError, image_store.BrokenOffError))
    return BadRequestError(str(error)) if refused or type(error) is NovaliteError else error


def _limit(room: int | None) -> int:
    settings: Settings = current_app.extensions["settings"]
    most = settings.image_max_gigabytes * GIB
    return most if room is None else min(most, room)


def _reporter(number: str, transfer: str) -> image_store.Report:
    def report(size: int) -> None:
        with writing_ledger() as connection:
            image_states.progress(connection, number, transfer, size)

    return report
