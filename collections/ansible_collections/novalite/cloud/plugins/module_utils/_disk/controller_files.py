# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of images on the controller: downloaded for hosts which cannot, once, however many hosts and playbooks ask;
or fetched from a compute host, which need not be trusted with more than its own guests."""

from __future__ import annotations

import os
import typing as t

from .._errors import NovaliteError
from .._host.confined import ANY_SIZE, Limits, run_confined
from .._host.files import make_private, remove_file, sync
from .._host.locks import locked_file
from .._json import JsonObject
from . import layout
from .cache import Image, Rules, checksum_of, fetch_verified
from .inspect import inspect_image

CONVERSION = 3600  # seconds


def downloaded(image: Image, directory: str, rules: Rules) -> str:
    """The path in `directory` of the downloaded `image`, named by its checksum; waits for another run's download. Its
    format is for the host to look at, which has to open it. Raises NovaliteError."""
    key = layout.cache_key(image.checksum)
    path = os.path.join(directory, key)
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        # A lock of its own: this may be another user than root.
        with locked_file(f"{path}.lock", rules.timeout):
            if not os.path.exists(path):
                fetch_verified(image, f"{path}.part", rules)
                os.rename(f"{path}.part", path)
    except OSError as error:
        raise NovaliteError(f"{image} cannot be stored in {directory} on the controller: {error.strerror}") from error
    return path


def received(
    image_id: str,
    directory: str,
    fetch: t.Callable[[str], object],
    size: int,
    disk_format: str = "qcow2",
    wanted_format: str | None = None,
) -> JsonObject:
    """Let `fetch` write the image's file, and make it `directory`/<image id>.

    Returns `source`, `checksum`, `size`, `virtual_size`. With `wanted_format` it is converted here. Raises
    NovaliteError for what is no `disk_format` without a backing file, or has not `size` bytes; nothing is left then.
    """
    path = os.path.join(directory, image_id)
    part = f"{path}.part"
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        make_private(part)
        fetch(part)
        info = inspect_image(part, disk_format, name=f"snapshot {image_id}")
        if os.path.getsize(part) != size:
            raise NovaliteError(f"{os.path.getsize(part)} bytes came of {size}")
        if wanted_format not in (None, disk_format):
            _convert(part, disk_format, str(wanted_format))
        size, checksum = os.path.getsize(part), checksum_of(part)
        sync(part)
        os.rename(part, path)
        return {"source": path, "checksum": checksum, "size": size, "virtual_size": info.virtual_size}
    except OSError as error:
        raise NovaliteError(f"it cannot be stored in {directory}: {error.strerror}") from error
    finally:
        remove_file(part)


def convert_file(path: str, driver: str, made: str, disk_format: str, file_size: int = ANY_SIZE) -> None:
    """Convert the file `path`, which was judged to stand on no other one, into `made`, of at most `file_size` bytes.

    `driver` is QEMU's for it. `made` must exist and be private. Raises CommandError.
    """
    argv = ["qemu-img", "convert", "-f", driver, "-O", disk_format, path, made]
    limits = Limits(memory=2 << 30, cpu=CONVERSION, file_size=file_size)
    run_confined(argv, reads=[path], writes=[made], limits=limits, timeout=float(CONVERSION))


def _convert(path: str, before: str, after: str) -> None:
    made = f"{path}.{after}"
    make_private(made)
    try:
        convert_file(path, before, made, after)
        os.replace(made, path)
    finally:
        remove_file(made)
