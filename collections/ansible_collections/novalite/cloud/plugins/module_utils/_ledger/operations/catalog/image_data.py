# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on the data of images: as a stream into the store, looked at there, and only then the image's.

That takes long, and no transaction lasts as long: each of these opens several calls of the same caller, in turn.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import typing as t

from ...._errors import BusyError, NovaliteError, TooLargeError
from ...._image_import.foreign_disks import DRIVERS
from ...._image_import.imported import CONVERTED, Foreign, convert
from ...._json import JsonMapping, JsonObject
from ...catalog import image_files, image_records, image_states, image_store
from ...queries.catalog.image_views import SeenImage
from ..call import Call
from . import images

SIGN_OF_LIFE = 60.0  # seconds
Calls = t.Callable[[], t.ContextManager[Call]]


class Stream(t.Protocol):
    """Data that come in."""

    def read(self, size: int, /) -> bytes: ...


@dataclasses.dataclass(frozen=True)
class Store:
    """Place of the data, in the ledger's home, and the bytes that one image may have at most."""

    home: str | None
    most: int


def check_described(row: SeenImage) -> None:
    """Raise NovaliteError for an image that must be described better before it takes data."""
    missing = [name for name, value in zip(images.UNTIL_DATA, images.formats(row)) if not value]
    if missing:
        raise NovaliteError(f"Properties {', '.join(missing)} must be set prior to saving data.")
    if row["container_format"] == "ova":
        raise NovaliteError(
            "An OVA holds several files and a machine's description: upload its disk (.vmdk in the tar archive) with "
            "container_format 'bare' and disk_format 'vmdk', or ask the operator to import it (import.yml)."
        )


def receive(
    calls: Calls, row: SeenImage, stream: Stream, length: int | None, store: Store, *, staged: bool = False
) -> None:
    """Take a stream of so many bytes (None: any) as the data of the image, or (`staged`) keep it for an import.

    Whatever fails, the image waits for data again. Raises TooLargeError and BrokenOffError, QuotaError,
    ImageRefusedError, ConflictError for an image that has data, NovaliteError for data that are none.
    """
    with calls() as call:
        limit = _limit(call, row, store)
        if (length or 0) > limit:
            raise TooLargeError(f"The image is larger than the {limit} bytes that it may have.")
        after = "uploading" if staged else "saving"
        upload = _Upload(calls, row, store, image_states.begin(call.connection, row["id"], "queued", after))
    part = image_store.part_of(store.home, row["id"], upload.transfer)
    try:
        image = image_store.receive(stream, part, limit, upload.report, length)
        values: JsonObject = {"size": image.size, "checksum": f"sha256:{image.sha256}", "md5": image.md5}
        if staged:
            upload.finish({**values, "status": "uploading"}, part, image_store.staged_of(store.home, row["id"]))
        else:
            upload.settle(part, values)
    except BaseException:
        image_store.remove(part)
        upload.give_up(None)
        raise


def import_staged(calls: Calls, row: SeenImage, request: JsonMapping, store: Store) -> None:
    """Make data that were staged the image's, and keep `request` as the task that this was. What fails then, the image
    says, and waits for other data. Raises ForbiddenError, ConflictError for an image without staged data."""
    with calls() as call:
        images.check_own(call, row)
        transfer = image_states.begin(call.connection, row["id"], "uploading", "importing")
        task = image_records.begin_task(
            call.connection,
            row["id"],
            request,
            project_id=call.project,
            user_id=str(call.user_id),
            request_id=call.request_id,
        )
        row = images.seen(call, row["id"])
    upload = _Upload(calls, row, store, transfer)
    # from here on under another name: whoever loses the image meanwhile neither reads nor removes what others stage
    own = image_store.part_of(store.home, row["id"], transfer)
    message = ""
    try:
        image_store.claim(image_store.staged_of(store.home, row["id"]), own)
        upload.settle(own, {"size": row["size"], "checksum": row["checksum"], "md5": row["md5"]})
    except (NovaliteError, OSError) as error:
        message = str(error) if isinstance(error, NovaliteError) else "the staged data cannot be read"
        image_store.remove(own)
        upload.give_up(message)
    with calls() as call:
        image_records.end_task(call.connection, task, message)


def delete(calls: Calls, find: t.Callable[[Call], SeenImage], home: str | None) -> None:
    """Delete the image that `find` returns, and then its data in the ledger's home unless servers need them. Raises as
    images.delete()."""
    with calls() as call:
        row = find(call)
        images.delete(call, row)
    remove_data(calls, row["id"], home)


def remove_data(calls: Calls, image_id: str, home: str | None) -> None:
    """Remove the data of an image that images.delete() deleted, in a call whose end was written: what is rolled back,
    as in a dry run, needs them."""
    with contextlib.suppress(NovaliteError), calls() as call:  # what is left, image_states.sweep() removes
        image_states.remove_file(call.connection, home, image_id)


@dataclasses.dataclass(frozen=True)
class _Upload:
    """Data of an image that are on their way, as `transfer`."""

    calls: Calls
    row: SeenImage
    store: Store
    transfer: str

    def settle(self, path: str, values: JsonObject) -> None:
        """Look at the file that came in, and make it the image's. Raises NovaliteError for one that is refused."""
        disk_format, name = self.row["disk_format"], f"The image's data ({self.row['disk_format']})"
        if disk_format in DRIVERS:
            values = self._converted(path, name)
            disk_format = CONVERTED
        virtual_size = image_files.inspected(path, disk_format, name)
        final = image_store.file_of(self.store.home, self.row["id"])
        active: JsonObject = {"status": "active", "source": final, "virtual_size": virtual_size, "fault": None}
        self.finish({**values, **active, "disk_format": disk_format}, path, final)

    def _converted(self, path: str, name: str) -> JsonObject:
        """Put into the place of a disk of another hypervisor what hosts can start, as Glance's plug-in image_conversion
        does; return what is known of that. While it lasts, the transfer gives signs of life."""
        with self.calls() as call:
            most = min(_limit(call, self.row, self.store), image_store.free(path))
        made = f"{path}.{CONVERTED}{image_store.PART}"
        try:
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                work = pool.submit(convert, Foreign(path, self.row["disk_format"], name), path, made, most)
                while not concurrent.futures.wait([work], SIGN_OF_LIFE).done:
                    self.report(os.path.getsize(path))
                work.result()
            os.rename(made, path)
        finally:
            image_store.remove(made)
        file = image_store.measured(path)
        return {"size": file.size, "checksum": f"sha256:{file.sha256}", "md5": file.md5}

    def report(self, size: int) -> None:
        """Say that the transfer lives. Raises as image_states.progress(); a ledger that is busy is told the next time,
        which is soon enough for image_states.SILENT."""
        with contextlib.suppress(BusyError), self.calls() as call:
            image_states.progress(call.connection, self.row["id"], self.transfer, size)

    def finish(self, values: JsonObject, path: str, place: str) -> None:
        """Write what the data are, and put their file from `path` in its `place`. One who lost the image, to whom the
        first fails, must not replace the file of another one's upload."""
        with self.calls() as call:
            by_operator = call.permits(images.HOST_MOUNT)
            image_states.finish(call.connection, self.row["id"], self.transfer, values, by_operator=by_operator)
            image_store.put_in_place(path, place)

    def give_up(self, fault: str | None) -> None:
        with self.calls() as call:
            image_states.give_up(call.connection, self.row["id"], self.transfer, fault)


def _limit(call: Call, row: SeenImage, store: Store) -> int:
    room = image_states.room(call.connection, row["owner"])
    return store.most if room is None else min(store.most, room)
