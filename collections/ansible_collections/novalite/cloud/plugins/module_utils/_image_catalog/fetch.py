# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images of the catalogue, brought to the controller: from a mirror or a directory, verified, unpacked.

What is not what its checksums say, or whose checksums are not signed as they should be, is refused, and nothing of it
is kept. "latest" is another file each week: it is kept under its checksum, and the ledger's record does not move.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import posixpath
import tempfile
import typing as t

from .._disk.download import download
from .._disk.download_request import Source
from .._disk.inspect import inspect_image
from .._errors import ImageRefusedError, NovaliteError
from .._host.command import CommandError, run
from .._host.files import opened, sync
from .._host.locks import locked_file
from .._image_import.packed import suffix_of, unpack
from .checksums import Checksum, checksum_of
from .entries import CatalogImage

DIRECTORY = "catalog"  # in the ledger's home
KEYRINGS = ("keyrings", "/usr/share/keyrings")  # the first one in the ledger's home
MAX_TEXT = 4 << 20  # bytes of a file of checksums, or of a signature
MAX_IMAGE = 64 << 30  # bytes, packed or not
TEXT_TIMEOUT, IMAGE_TIMEOUT = 60.0, 3600.0  # seconds
CHUNK = 1 << 20
Report = t.Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Fetched:
    """An image on the controller: its `path`, and what its operator should know (`warnings`)."""

    path: str
    warnings: tuple[str, ...]


def fetch(image: CatalogImage, home: str, report: Report) -> Fetched:
    """Bring `image` into the directory of the catalogue below `home`, unless this version of it is there.

    Raises ImageRefusedError for what is not what its checksums or their signature say, NovaliteError.
    """
    directory = os.path.join(home, DIRECTORY)
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        with (
            locked_file(os.path.join(directory, f"{image.name}.lock"), IMAGE_TIMEOUT),
            tempfile.TemporaryDirectory(prefix=".fetch-", dir=directory) as workplace,
        ):
            checksum, warnings = _checksum(image, home, workplace, report)
            path = os.path.join(directory, f"{image.name}-{checksum.digest[:16]}.{image.disk_format}")
            if not os.path.exists(path):
                os.rename(_verified(image, checksum, workplace, report), path)
                sync(directory)
    except OSError as error:
        raise NovaliteError(f"image '{image.name}' cannot be stored in {directory}: {error.strerror}") from error
    return Fetched(path, warnings)


def _checksum(image: CatalogImage, home: str, workplace: str, report: Report) -> tuple[Checksum, tuple[str, ...]]:
    """Return what the image's file must be, by its checksums, which are signed where that can be known."""
    source, file = image.place_of(image.checksums), posixpath.basename(image.file)
    path = _brought(source, os.path.join(workplace, "checksums"), MAX_TEXT, TEXT_TIMEOUT, report)
    warnings = []
    keyring = _keyring(image, home)
    if image.signature is not None and keyring is not None:
        path = _signed(image, image.signature, keyring, path, workplace, report)
    elif image.signature is not None:
        places = f"{os.path.join(home, KEYRINGS[0])} or {KEYRINGS[1]}"
        warnings.append(f"the signature of {source} was not checked: put {image.keyring} into {places}")
    with open(path, encoding="utf-8", errors="replace") as text:
        alone = image.checksums.startswith(file)
        return checksum_of(text.read(), file, source, alone), tuple(warnings)


def _keyring(image: CatalogImage, home: str) -> str | None:
    for directory in KEYRINGS:
        path = os.path.join(home, directory, image.keyring or "")  # an absolute one stays what it is
        if os.path.isfile(path):
            return path
    return None


def _signed(image: CatalogImage, beside: str, keyring: str, checksums: str, workplace: str, report: Report) -> str:
    """Return the path of those checksums that somebody in `keyring` signed, in the file `beside` the image's. Raises
    ImageRefusedError."""
    signed = os.path.join(workplace, "signed")
    if beside == image.checksums:  # in clear: only what gpgv writes was signed, and not what is around it
        argv = ["gpgv", "--keyring", keyring, "--output", signed, checksums]
    else:
        place = image.place_of(beside)
        signature = _brought(place, os.path.join(workplace, "signature"), MAX_TEXT, TEXT_TIMEOUT, report)
        argv, signed = ["gpgv", "--keyring", keyring, signature, checksums], checksums
    try:
        run(argv)
    except CommandError as error:
        source = image.place_of(image.checksums)
        raise ImageRefusedError(
            f"image '{image.name}' is refused: {source} is not signed by a key of {keyring}: {error}"
        ) from error
    return signed


def _verified(image: CatalogImage, checksum: Checksum, workplace: str, report: Report) -> str:
    """Bring the image's file into `workplace`; return its path once it is verified, unpacked and inspected."""
    source = image.place_of()
    report(f"image '{image.name}': fetching {source}")
    packed = _brought(source, os.path.join(workplace, "image"), MAX_IMAGE, IMAGE_TIMEOUT, report)
    digest = _digest(packed, checksum.algorithm)
    if digest != checksum.digest:
        raise ImageRefusedError(
            f"image '{image.name}' is refused: {source} has the {checksum.algorithm} checksum {digest}, and not "
            f"{checksum.digest} as {image.place_of(image.checksums)} says"
        )
    path, suffix = packed, suffix_of(image.file)
    if suffix is not None:
        path = os.path.join(workplace, "unpacked")
        unpack(packed, suffix, path, f"image '{image.name}', unpacked,")
    inspect_image(path, image.disk_format, name=f"image '{image.name}' from {source}", content="disk")
    sync(path, 0o600)
    return path


def _brought(place: str, path: str, limit: int, timeout: float, report: Report) -> str:
    """Download or copy `place` to `path`, at most `limit` bytes; return `path`."""
    if not place.startswith("/"):
        download(Source(place, place, limit, timeout), path, report)
        return path
    try:
        with (
            opened(place, os.O_RDONLY | os.O_NONBLOCK) as source,  # a FIFO would block
            open(source, "rb", closefd=False) as reader,
            open(path, "xb") as writer,
        ):
            _copied(_chunks(reader), writer, limit, place)
    except OSError as error:
        raise NovaliteError(f"{place} cannot be read: {error.strerror}") from error
    return path


def _chunks(reader: t.IO[bytes]) -> t.Iterator[bytes]:
    return iter(lambda: reader.read(CHUNK), b"")


def _copied(chunks: t.Iterable[bytes], writer: t.IO[bytes], limit: int, name: str) -> None:
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise ImageRefusedError(f"{name} is larger than the {limit} bytes that are accepted")
        writer.write(chunk)


def _digest(path: str, algorithm: str) -> str:
    digest = hashlib.new(algorithm)
    with open(path, "rb") as file:
        for chunk in _chunks(file):
            digest.update(chunk)
    return digest.hexdigest()
